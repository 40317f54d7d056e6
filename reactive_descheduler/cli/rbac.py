"""`rbac`: the least rights that a policy needs, to be applied with kubectl."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from reactive_descheduler.cli.group import Command, Option
from reactive_descheduler.cli.options import (
    corrections_option,
    input_name,
    policy_input_option,
    read_input,
)
from reactive_descheduler.cli.output import print_json

if TYPE_CHECKING:
    from reactive_descheduler.app.rbac import Rule
    from reactive_descheduler.config.corrections import Corrections

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"


class _NameType(click.ParamType[str]):
    """A name as the API server takes it for a kind of object."""

    name = "name"

    def __init__(self, pattern: str, *, longest: int, such_as: str) -> None:
        self._pattern = re.compile(pattern)
        self._longest = longest
        self._such_as = such_as

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        text = str(value)
        if len(text) > self._longest or not self._pattern.fullmatch(text):
            self.fail(f"{text!r} is no name such as {self._such_as}", param, ctx)
        return text


@click.command("rbac", cls=Command)
@policy_input_option
@click.option(
    "--namespace",
    cls=Option,
    type=_NameType(_LABEL, longest=63, such_as="kube-system"),
    default="kube-system",
    show_default=True,
    metavar="NAME",
    help="Where the service account is.",
)
@click.option(
    "--service-account",
    cls=Option,
    type=_NameType(rf"{_LABEL}(\.{_LABEL})*", longest=253, such_as="reactive-descheduler"),
    default="reactive-descheduler",
    show_default=True,
    metavar="NAME",
    help="Its name, and that of the role and its binding.",
)
@click.option(
    "--dry-run", cls=Option, is_flag=True, help="Leave out the right to evict, for `run --dry-run`."
)
@corrections_option
@click.option(
    "-o",
    "--output",
    cls=Option,
    type=click.Choice(["yaml", "json"]),
    default="yaml",
    show_default=True,
    help="With a comment for each rule, or for programs.",
)
def command(
    *,
    policy_config_file: str,
    namespace: str,
    service_account: str,
    dry_run: bool,
    corrections: Corrections | None,
    output: str,
) -> None:
    """Print the ClusterRole that a policy needs, and its binding to a service account.

    Where it asks a Prometheus with the token of a Secret, a Role for that Secret alone as well.
    Exactly what this policy makes the descheduler ask for; another policy may need more or less.
    No cluster is asked, and nothing is applied.
    """
    from reactive_descheduler.app.rbac import (
        cluster_role,
        cluster_role_binding,
        needed_rules,
        roles,
    )
    from reactive_descheduler.config.load import load_policy
    from reactive_descheduler.strategies import PLUGINS

    text = read_input(policy_config_file)
    source = input_name(policy_config_file)
    policy = load_policy(text, source=source, plugins=PLUGINS, corrections=corrections)
    rules = needed_rules(policy, dry_run=dry_run)
    role = cluster_role(rules, name=service_account)
    binding = cluster_role_binding(name=service_account, namespace=namespace)
    if output == "json":
        named = roles(rules, name=service_account, namespace=namespace)
        print_json({"apiVersion": "v1", "kind": "List", "items": [role, binding, *named]})
    else:
        everywhere = tuple(rule for rule in rules if not rule.namespace)
        more = (
            _yaml(each, (rule,)) if "rules" in each else _dump(each)
            for rule in rules
            for each in roles((rule,), name=service_account, namespace=namespace)
        )
        click.echo("---\n".join((_yaml(role, everywhere), _dump(binding), *more)), nl=False)


def _yaml(role: dict[str, object], rules: tuple[Rule, ...]) -> str:
    """Return the role with the reason of each rule above it."""
    head = {key: value for key, value in role.items() if key != "rules"}
    # A rule of the document has no place for its reason, so each is written by itself.
    listed = (f"# {rule.reason}\n{_dump([rule.document()])}" for rule in rules)
    return f"{_dump(head)}rules:\n{''.join(listed)}"


def _dump(document: object) -> str:
    import yaml

    return yaml.safe_dump(document, sort_keys=False, default_flow_style=None)
