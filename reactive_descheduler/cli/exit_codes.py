"""Exit codes of every command, in one place: for `--help`, the docs and the code."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    meaning: str

    def __new__(cls, value: int, meaning: str) -> ExitCode:
        """Make a member that carries its line of help."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    OK = 0, "It did what it was asked to, or was stopped by a signal as a daemon is."
    FAILURE = 1, "It failed while it ran; a pass: a strategy or a request ended with an error."
    USAGE = 2, "Wrong usage, or an input that cannot be used: flags, policy, dump, file."
    UNREACHABLE = 3, "The API server cannot be reached, or does not allow what is needed."
    INTERRUPTED = 130, "It was interrupted from the keyboard."


def table() -> str:
    """Return the codes, a line each."""
    return "\n".join(f"{code.value:>4}  {code.meaning}" for code in ExitCode)
