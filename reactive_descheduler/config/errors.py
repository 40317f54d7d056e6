"""What is wrong with a document, and where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Path = tuple[str | int, ...]
"""Way from the root of a document to a value: keys, and indexes of lists."""


def path_text(path: Path) -> str:
    """Write a path as users know it: `profiles[0].plugins.deschedule`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


@dataclass(frozen=True, slots=True)
class Finding:
    """A mistake at a place in plain data, before a file and its lines are known."""

    path: Path
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake at a place in a file."""

    source: str
    """The file as the user named it; empty where there is none."""
    path: str
    """As `path_text` writes it; empty for the document as a whole."""
    line: int | None
    """First line is 1; None where no line is known."""
    message: str
    hint: str = ""

    def __str__(self) -> str:
        """Write `file:line: path: message (hint)`, leaving out what is not known."""
        line = "" if self.line is None else str(self.line)
        place = ":".join(part for part in (self.source, line) if part)
        text = ": ".join(part for part in (place, self.path, self.message) if part)
        return f"{text} ({self.hint})" if self.hint else text


class PolicyError(Exception):
    """A policy cannot be used; retrying without changing it does not help.

    Raised with every mistake found, never only the first, so that one look mends them all.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        """Keep the problems in the order of the file."""
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))
