"""Writes the tables of docs/cli.md out of the commands.

To do so: `python tests/unit/cli/cli_reference.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import click

from reactive_descheduler.cli import program
from reactive_descheduler.cli.exit_codes import ExitCode

PAGE = Path(__file__).parents[3] / "docs" / "cli.md"
_TABLE = re.compile(r"(<!-- table: ([a-z-]+( [a-z-]+)*) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def written(page: str) -> str:
    """Return the page with each of its tables as the code has it now."""
    return _TABLE.sub(lambda found: f"{found[1]}{_table(found[2])}\n{found[5]}", page)


def commands() -> list[str]:
    """Return the name of every command."""
    return program.list_commands(click.Context(program))


def documented(page: str) -> list[str]:
    """Return the commands whose options the page has a table of."""
    return [found[2].partition(" ")[2] for found in _TABLE.finditer(page) if " " in found[2]]


def _table(name: str) -> str:
    if name == "exit-codes":
        rows = [(f"`{code.value}`", code.meaning) for code in ExitCode]
        return _markdown(("code", "meaning"), rows)
    context = click.Context(program)
    if name == "commands":
        abouts = [(f"`{each}`", program.about(each)) for each in commands()]
        return _markdown(("command", "what it does"), abouts)
    command = program.get_command(context, name.partition(" ")[2])
    assert command is not None
    options = [_row(each) for each in command.params if _shown(each)]
    return _markdown(("flag", "default", "meaning"), options)


def _shown(parameter: click.Parameter) -> bool:
    return (
        isinstance(parameter, click.Option)
        and not parameter.hidden
        and "--debug" not in parameter.opts
    )


def _row(option: click.Parameter) -> tuple[str, str, str]:
    assert isinstance(option, click.Option)
    kind = "" if option.is_flag else f" {option.make_metavar(click.Context(program))}"
    flags = ", ".join(f"`{flag}`" for flag in option.opts)
    default = "required" if option.required else _default(option)
    return f"{flags}{_escaped(kind)}", default, _escaped(option.help or "")


def _default(option: click.Option) -> str:
    found = option.to_info_dict()["default"]
    return "" if found in (None, "", False) else f"`{found}`"


def _markdown(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
