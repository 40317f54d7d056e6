"""`strategies`: the table of strategies, with their arguments and defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reactive_descheduler.cli.group import Command
from reactive_descheduler.cli.options import output_option
from reactive_descheduler.cli.output import print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Iterator


@click.command("strategies", cls=Command)
@output_option
def command(output: str) -> None:
    """List the strategies.

    Of candidates that cannot all go now, those of the lower urgency number go first.
    """
    found = list(_strategies())
    if output == "json":
        print_json(found)
        return
    print_table(
        ("name", "phase", "urgency"),
        [(str(each["name"]), str(each["phase"]), str(each["urgency"])) for each in found],
    )
    for each in found:
        if arguments := each["arguments"]:
            assert isinstance(arguments, list)
            click.echo()
            columns = ("argument", "type", "default", "meaning")
            rows = [tuple(argument.values()) for argument in arguments]
            print_table(columns, rows, title=str(each["name"]))


def _strategies() -> Iterator[dict[str, object]]:
    from reactive_descheduler.config.table import rows
    from reactive_descheduler.strategies import IN_TREE

    for entry in IN_TREE:
        spec = entry.spec
        yield {
            "name": spec.name,
            "phase": ", ".join(sorted(spec.extension_points)),
            "urgency": entry.urgency,
            "arguments": [
                {
                    "name": row.path,
                    "type": row.type,
                    "default": row.default.strip("`"),
                    "meaning": row.meaning,
                }
                for row in rows(spec.arguments)
            ],
        }
