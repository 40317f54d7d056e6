"""Turns an exception into what a person reads on standard error, and into an exit code."""

from __future__ import annotations

from typing import NamedTuple

import click

from reactive_descheduler.api.errors import (
    AddressError,
    ApiStatusError,
    ClientError,
    DeschedulerError,
    PolicyError,
    SnapshotError,
)
from reactive_descheduler.cli.exit_codes import ExitCode

_UNAUTHORIZED, _FORBIDDEN = 401, 403


class Failure(NamedTuple):
    code: ExitCode
    lines: list[str]
    hint: str


def explain(error: BaseException) -> Failure:
    """Say what went wrong, in a line (a refused policy: a line for each mistake) and a hint."""
    error = _innermost(error)
    match error:
        case click.exceptions.Abort() | KeyboardInterrupt():
            return Failure(ExitCode.INTERRUPTED, ["interrupted"], "")
        case click.exceptions.NoArgsIsHelpError():
            return Failure(ExitCode.USAGE, [error.format_message()], "")
        case click.UsageError():
            return _usage(error)
        case click.ClickException():
            return Failure(ExitCode.USAGE, [f"error: {error.format_message()}"], "")
        case PolicyError():
            return Failure(ExitCode.USAGE, [f"error: {line}" for line in _lines(error)], error.hint)
        case SnapshotError() | AddressError():
            return Failure(ExitCode.USAGE, [f"error: {_one_line(error)}"], error.hint)
        case ClientError():
            hint = error.hint or _hint(error)
            return Failure(ExitCode.UNREACHABLE, [f"error: {_one_line(error)}"], hint)
        case DeschedulerError():
            return Failure(ExitCode.FAILURE, [f"error: {_one_line(error)}"], error.hint)
        case FileNotFoundError() | IsADirectoryError() | PermissionError():
            return Failure(ExitCode.USAGE, [f"error: {_os_error(error)}"], "")
        case OSError():
            return Failure(ExitCode.FAILURE, [f"error: {_os_error(error)}"], "")
        case _:
            line = f"error: {type(error).__name__}: {_one_line(error)}"
            return Failure(ExitCode.FAILURE, [line], "this is a bug; --debug shows where")


def _innermost(error: BaseException) -> BaseException:
    """Return what a task group wrapped, where it wrapped one thing alone."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _usage(error: click.UsageError) -> Failure:
    path = error.ctx.command_path if error.ctx is not None else "reactive-descheduler"
    return Failure(ExitCode.USAGE, [f"error: {error.format_message()}"], f"try {path} --help")


def _hint(error: ClientError) -> str:
    match error:
        case ApiStatusError(status=status) if status == _UNAUTHORIZED:
            return "the API server does not accept these credentials; check the kubeconfig"
        case ApiStatusError(status=status) if status == _FORBIDDEN:
            return "these credentials lack a permission; see the RBAC rules in deploy/"
        case _:
            return ""


def _lines(error: PolicyError) -> list[str]:
    return str(error).splitlines() or [f"{error.source}: refused"]


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _os_error(error: OSError) -> str:
    if error.filename is None:
        return _one_line(error)
    return f"{error.filename}: {error.strerror}"
