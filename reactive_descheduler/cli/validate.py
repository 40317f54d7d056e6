"""`validate`: every mistake in a policy file, with its place and what would mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from reactive_descheduler.cli.exit_codes import ExitCode
from reactive_descheduler.cli.group import Command, Option
from reactive_descheduler.cli.options import (
    corrections_option,
    input_name,
    output_option,
    read_input,
)
from reactive_descheduler.cli.output import print_json, print_table, warn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reactive_descheduler.api.errors import Problem
    from reactive_descheduler.config.corrections import Corrections
    from reactive_descheduler.config.loaded import LoadedPolicy


@click.command("validate", cls=Command)
@click.argument("file", metavar="FILE", required=False)
@click.option(
    "-f",
    "--policy-config-file",
    cls=Option,
    metavar="FILE",
    help="FILE, given as the other commands take it.",
)
@corrections_option
@output_option
def command(
    *,
    file: str | None,
    policy_config_file: str | None,
    corrections: Corrections | None,
    output: str,
) -> ExitCode:
    """Check a policy FILE (`-` is standard input).

    Prints every mistake with path, line and a hint, and exits with 2 if there is one; otherwise
    which corrections are in force. No cluster is asked, so a PriorityClass that is named is not
    looked up.
    """
    from reactive_descheduler.api.errors import PolicyError
    from reactive_descheduler.config.load import load_policy
    from reactive_descheduler.strategies import PLUGINS

    name = _the_one(file, policy_config_file)
    text = read_input(name)
    try:
        policy = load_policy(
            text, source=input_name(name), plugins=PLUGINS, corrections=corrections
        )
    except PolicyError as refusal:
        if output == "table":
            raise
        print_json({"valid": False, "errors": _problems(refusal.problems)})
        return ExitCode.USAGE
    if output == "json":
        print_json(_valid(policy))
    else:
        _tell(policy)
    return ExitCode.OK


def _the_one(argument: str | None, option: str | None) -> str:
    context = click.get_current_context()
    given = context.get_parameter_source("policy_config_file") is ParameterSource.COMMANDLINE
    if argument is not None and option is not None and given:
        raise click.UsageError("FILE and --policy-config-file are the same: give one")
    name = argument if argument is not None else option
    if name is None:
        raise click.UsageError("Missing argument 'FILE'")
    return name


def _problems(problems: Iterable[Problem]) -> list[dict[str, object]]:
    return [problem._asdict() for problem in problems]


def _valid(policy: LoadedPolicy) -> dict[str, object]:
    from reactive_descheduler.config.doubts import all_warnings

    return {
        "valid": True,
        "warnings": _problems(all_warnings(policy)),
        "corrections": sorted(policy.corrections),
        "profiles": [
            {
                "name": profile.name,
                "deschedule": [plugin.name for plugin in profile.deschedule],
                "balance": [plugin.name for plugin in profile.balance],
            }
            for profile in policy.profiles
        ],
    }


def _tell(policy: LoadedPolicy) -> None:
    from reactive_descheduler.config.corrections import Correction
    from reactive_descheduler.config.doubts import all_warnings

    for problem in all_warnings(policy):
        warn(problem.told(policy.source))
    click.echo(f"{policy.source}: valid")
    for profile in policy.profiles:
        names = [plugin.name for plugin in (*profile.deschedule, *profile.balance)]
        click.echo(f"profile {profile.name!r}: {', '.join(names) or 'no strategy'}")
    click.echo()
    print_table(
        ("correction", "in force", "what happens"),
        [
            (each, "yes", each.ours) if each in policy.corrections else (each, "no", each.upstream)
            for each in Correction
        ],
    )
