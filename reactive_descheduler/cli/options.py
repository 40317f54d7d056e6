"""Options and inputs that several commands share."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import click

from reactive_descheduler.cli.group import Option

if TYPE_CHECKING:
    from reactive_descheduler.config.corrections import Corrections
    from reactive_descheduler.config.feature_gates import FeatureGates

STDIN = "-"


def _no_standard_input(_: click.Context, parameter: click.Parameter, value: str) -> str:
    if value == STDIN:
        raise click.BadParameter("has to be a file: standard input is read once", param=parameter)
    return value


policy_file_option = click.option(
    "--policy-config-file",
    cls=Option,
    required=True,
    metavar="FILE",
    callback=_no_standard_input,
    help="The DeschedulerPolicy, YAML or JSON; a file, since it is read again and again.",
)
"""For the daemon, which takes up its changes."""
policy_input_option = click.option(
    "-f",
    "--policy-config-file",
    cls=Option,
    required=True,
    metavar="FILE",
    help="The DeschedulerPolicy, YAML or JSON; `-` is standard input.",
)
"""For commands that read it once."""
output_option = click.option(
    "-o",
    "--output",
    cls=Option,
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="For people, or for programs.",
)


class CorrectionsType(click.ParamType["Corrections"]):
    """`all`, `none`, or names with commas between."""

    name = "names"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Corrections:
        from reactive_descheduler.config.corrections import parse_corrections

        if value == DIFF:
            self.fail("diff is for plan alone: it compares, and nothing runs by it", param, ctx)
        try:
            return parse_corrections(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


DIFF: Final = "diff"


class ComparedCorrectionsType(click.ParamType["Corrections | Literal['diff']"]):
    """The same, or `diff`."""

    name = "names"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Corrections | Literal["diff"]:
        return DIFF if value == DIFF else CorrectionsType().convert(value, param, ctx)


corrections_option = click.option(
    "--corrections",
    cls=Option,
    type=CorrectionsType(),
    metavar="all|none|NAME,...",
    help="Where to differ from upstream; goes before the policy's own setting.",
)
compared_corrections_option = click.option(
    "--corrections",
    cls=Option,
    type=ComparedCorrectionsType(),
    metavar="all|none|diff|NAME,...",
    help="Where to differ from upstream; goes before the policy's own setting. diff: show what"
    " upstream would do differently, and which correction decides.",
)


class FeatureGatesType(click.ParamType["FeatureGates"]):
    """Names with true or false, with commas between."""

    name = "feature gates"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> FeatureGates:
        from reactive_descheduler.config.feature_gates import parse_feature_gates

        if isinstance(value, frozenset):
            return value
        try:
            return parse_feature_gates(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


feature_gates_option = click.option(
    "--feature-gates",
    cls=Option,
    type=FeatureGatesType(),
    default="",
    metavar="NAME=BOOL,...",
    help="Upstream's feature gates; there is EvictionsInBackground, off by default.",
)


class TimeType(click.ParamType[datetime]):
    """A time as RFC 3339 writes it; without an offset it is UTC."""

    name = "time"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        try:
            found = datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{value!r} is no time such as 2026-01-31T12:00:00Z", param, ctx)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def read_input(name: str) -> bytes:
    """Read a file, or standard input for `-`.

    Raises:
        ClickException: it cannot be read.
    """
    try:
        return sys.stdin.buffer.read() if name == STDIN else Path(name).read_bytes()
    except OSError as error:
        raise click.ClickException(f"{name}: {error.strerror}") from error


def input_name(name: str) -> str:
    """Return how messages name an input."""
    return "standard input" if name == STDIN else name
