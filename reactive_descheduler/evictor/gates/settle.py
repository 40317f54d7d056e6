"""Settle: the candidate's cause must have stood for a while without a break.

The greatest danger of a fast descheduler is acting on a cause that is about to vanish.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import ClassVar, NamedTuple

from reactive_descheduler.api.changes import At
from reactive_descheduler.api.eviction import Candidate, Cause, Held
from reactive_descheduler.framework.gate import OpenGate


class SettleTimes(NamedTuple):
    default: timedelta
    transient: timedelta
    """For taints that pass by themselves."""
    transient_taints: tuple[str, ...]
    """Keys of such taints; `*` stands for anything."""
    of_strategy: Mapping[str, timedelta]
    """Where a strategy has a time of its own, it holds for every cause of it."""


class SettleGate(OpenGate):
    NAME: ClassVar[str] = "settle"

    def __init__(
        self,
        times: SettleTimes,
        *,
        began: Callable[[Cause], datetime | None],
        is_transient: Callable[[Cause], bool],
    ) -> None:
        self._times = times
        self._began = began
        self._is_transient = is_transient

    def check(self, candidate: Candidate, now: datetime, /) -> Held | None:
        wait = self._wait(candidate)
        if not wait:
            return None
        cause = candidate.cause
        began = self._began(cause)
        due = (now if began is None else began) + wait
        if due <= now:
            return None
        kind = "a cause that often passes by itself" if self._is_transient(cause) else "its cause"
        reason = f"{kind} has to stand for {wait.total_seconds():g} s"
        return Held(self.NAME, reason, (At(due),))

    def _wait(self, candidate: Candidate) -> timedelta:
        own = self._times.of_strategy.get(candidate.key.strategy)
        if own is not None:
            return own
        if self._is_transient(candidate.cause):
            return max(self._times.transient, self._times.default)
        return self._times.default
