"""What commands print: tables for people, JSON for programs, warnings beside both."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

import click

TIME = "%Y-%m-%dT%H:%M:%SZ"
_UNBOUNDED = 1_000_000
"""Columns of a console that is none, so that nothing is cut or folded in a pipe."""


def print_json(data: object) -> None:
    import orjson

    text = orjson.dumps(data, option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z)
    click.echo(text.decode())


def with_camel_keys(data: Mapping[str, object]) -> dict[str, object]:
    """Return plain data with keys spelt as in Kubernetes documents, `nodesLookedAt`."""
    return {_camel(key): _camel_inside(value) for key, value in data.items()}


def _camel_inside(value: object) -> object:
    if isinstance(value, dict):
        return with_camel_keys(value)
    if isinstance(value, list | tuple):
        return [_camel_inside(item) for item in value]
    return value


def _camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(map(str.capitalize, rest))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "") -> None:
    """Print a table. On a terminal long cells go on in the next line; elsewhere a row is a line."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    on_terminal = sys.stdout.isatty()
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column.upper(), overflow="fold", no_wrap=not on_terminal)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    if title:
        click.secho(title, bold=True)
    console = Console(
        file=sys.stdout, width=None if on_terminal else _UNBOUNDED, highlight=False, soft_wrap=False
    )
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def print_section(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    click.echo()
    print_table(columns, rows, title=title)


def full_name(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if name else "-"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def warn(message: str) -> None:
    click.echo(f"warning: {message}", err=True)
