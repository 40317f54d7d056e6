"""The group of all commands: lazy, with environment twins for flags and one place for failures."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

import click

from reactive_descheduler.cli.exit_codes import ExitCode, table
from reactive_descheduler.cli.failures import explain

ENVIRONMENT_PREFIX = "REACTIVE_DESCHEDULER_"


class Entry(NamedTuple):
    """A command that is not loaded yet."""

    module: str
    """In this package; it holds a click command named `command`."""
    about: str


class Option(click.Option):
    """An option that also reads REACTIVE_DESCHEDULER_<FLAG>; the command line goes first."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Name the variable after the first long flag."""
        flags: Sequence[str] = args[0]
        flag = next(each for each in flags if each.startswith("--"))
        kwargs.setdefault("envvar", variable(flag))
        super().__init__(*args, **kwargs)


def variable(flag: str) -> str:
    """Return the environment twin of a flag."""
    return ENVIRONMENT_PREFIX + flag.removeprefix("--").replace("-", "_").upper()


def switch(*flags: str, help: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Return an option that is on or off, written as Go's flags are: `--flag`, `--flag=false`."""
    return click.option(
        *flags,
        cls=Option,
        type=click.BOOL,
        is_flag=False,
        flag_value="true",
        default=False,
        metavar="[=BOOL]",
        help=help,
    )


def _set_debug(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    root = context.find_root().command
    if value and isinstance(root, Program):
        root.debug = True


def _debug() -> Option:
    """Make the option that every command and the program itself take."""
    return Option(
        ["--debug"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_set_debug,
        help="Show the traceback of a failure.",
    )


class Command(click.Command):
    """A command; its function returns nothing or an ExitCode."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Add what every command takes."""
        super().__init__(*args, **kwargs)
        self.params.append(_debug())


class Program(click.Group):
    """All commands."""

    def __init__(self, commands: Mapping[str, Entry]) -> None:
        super().__init__(
            name="reactive-descheduler",
            help="An event-driven Kubernetes descheduler: evicts misplaced Pods the moment the"
            " cluster changes.",
            epilog=f"Each flag can be set as {ENVIRONMENT_PREFIX}<FLAG> instead, such as"
            f" {variable('--dry-run')}=true.\n\n\b\nExit codes:\n{table()}",
            context_settings={
                "help_option_names": ["-h", "--help"],
                "token_normalize_func": _with_hyphens,
                "max_content_width": 100,
            },
            params=[_debug()],
        )
        self._entries = dict(commands)
        self.debug = False
        """Whether a failure shows its traceback; kept here, for the context ends before."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self._entries.get(cmd_name)
        if entry is None:
            return None
        found = import_module(f"{__package__}.{entry.module}").command
        assert isinstance(found, click.Command)
        return found

    def about(self, name: str) -> str:
        """Return what the list of commands says of one."""
        return self._entries[name].about

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.about) for name, entry in self._entries.items()])

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Run a command and exit. A failure is one line and a hint on standard error."""
        kwargs["standalone_mode"] = False
        self.debug = False
        try:
            code = super().main(*args, **kwargs)
        except BrokenPipeError:
            # Whoever read the output has seen enough; the interpreter must not flush into it again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = ExitCode.FAILURE
        except Exception as error:
            code = _failed(error, debug=self.debug)
        sys.exit(code or ExitCode.OK)


def _with_hyphens(token: str) -> str:
    return token.replace("_", "-")


def _failed(error: Exception, *, debug: bool) -> int:
    failure = explain(error)
    if debug:
        import traceback

        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    for line in failure.lines:
        click.echo(line, err=True)
    if failure.hint:
        click.echo(f"hint: {failure.hint}", err=True)
    return failure.code
