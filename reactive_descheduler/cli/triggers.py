"""`triggers`: which change makes which strategy look at what, out of the strategies themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reactive_descheduler.cli.group import Command
from reactive_descheduler.cli.options import output_option
from reactive_descheduler.cli.output import print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCOPES = {
    "all": "every Pod",
    "node": "the Pods on that node",
    "pod": "that Pod",
    "owner": "the Pods of its owners",
    "constraint": "the constraints that count it",
    "namespaces": "the namespaces that anti-affinity joins",
}


@click.command("triggers", cls=Command)
@output_option
def command(output: str) -> None:
    """List what each strategy subscribes to.

    A narrowed trigger looks only at what the change can flip, for instance at Pods that do not
    tolerate a node's new taints. Beside these, a Pod that was refused or is not due yet is looked
    at again when what it waits for happens; `plan` tells what that is.
    """
    found = list(_triggers())
    if output == "json":
        print_json(found)
        return
    print_table(
        ("strategy", "action", "when a", "looks at", "narrowed"),
        [
            (
                str(each["strategy"]),
                str(each["action"]),
                str(each["description"]),
                str(each["scopeDescription"]),
                "yes" if each["narrowed"] else "no",
            )
            for each in found
        ],
    )


def _triggers() -> Iterator[dict[str, object]]:
    """Yield one row for each action of each subscription, in the order of the declarations."""
    from reactive_descheduler.app.wording import describe_action
    from reactive_descheduler.strategies import IN_TREE

    for entry in IN_TREE:
        for subscription in entry.events:
            for action in subscription.action:
                yield {
                    "strategy": entry.spec.name,
                    "action": action.name,
                    "description": describe_action(action),
                    "scope": subscription.scope.value,
                    "scopeDescription": _SCOPES[subscription.scope.value],
                    "narrowed": subscription.narrow is not None,
                }
