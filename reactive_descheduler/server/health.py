"""Named health checks, answered as Kubernetes' own components answer them.

*Live* says that a restart would not help; *ready* says that the process does its work: caches
synced, requests allowed. A warm standby is ready.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple


class Check(NamedTuple):
    """One named question. `ask` returns why not, or None when all is well; it must not block."""

    name: str
    ask: Callable[[], str | None]


class Answered(NamedTuple):
    name: str
    reason: str | None
    """Why not; None: well."""


class Report(NamedTuple):
    """The answers of one probe, in the order of the checks."""

    probe: str
    answers: tuple[Answered, ...]

    @property
    def well(self) -> bool:
        return all(answer.reason is None for answer in self.answers)

    def text(self) -> str:
        """Return the long form: a line a check, then the whole."""
        lines = [
            f"[+]{name} ok" if reason is None else f"[-]{name} failed: {reason}"
            for name, reason in self.answers
        ]
        return "\n".join([*lines, f"{self.probe} check {'passed' if self.well else 'failed'}", ""])


class Health:
    """All checks of the process. Each probe begins with `ping`: well if it can be asked."""

    def __init__(self, *, live: Sequence[Check] = (), ready: Sequence[Check] = ()) -> None:
        self._probes = {"livez": live, "readyz": (*live, *ready), "healthz": live}

    def ask(self, probe: str, *, exclude: Collection[str] = ()) -> Report:
        """Ask the checks of `livez`, `readyz` or `healthz` (upstream's name for live), leaving out
        those named in `exclude`."""
        asked = [check for check in self._probes[probe] if check.name not in exclude]
        return Report(probe, (Answered("ping", None), *map(_answer, asked)))


def _answer(check: Check) -> Answered:
    try:
        return Answered(check.name, check.ask())
    except Exception as error:  # a check that cannot tell has not said that all is well
        return Answered(check.name, f"{type(error).__name__}: {error}")
