"""Permission: after a 403 by RBAC nothing more is sent, but one request in a while to see."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import ClassVar

from reactive_descheduler.api.changes import At, ClusterEvent
from reactive_descheduler.api.eviction import Answer, Candidate, EvictionOutcome, Held
from reactive_descheduler.framework.gate import OpenGate

TRY_AGAIN = timedelta(seconds=60)
_TELLS_NOTHING = frozenset(
    {
        Answer.DRY_RUN,
        Answer.OBSERVED,
        Answer.UNKNOWN,
        Answer.SERVER_ERROR,
        Answer.THROTTLED,
    }
)
"""Given without, or before, a look at our permissions: an overloaded API server refuses first."""


class PermissionGate(OpenGate):
    NAME: ClassVar[str] = "permission"

    def __init__(self) -> None:
        self._until: datetime | None = None
        self.refusal = ""
        """What the API server said; empty while it lets us evict. Readiness tells it."""

    def closed(self, now: datetime, /) -> Held | None:
        if self._until is None or now >= self._until:
            return None
        return Held(self.NAME, f"not allowed to evict: {self.refusal}", (At(self._until),))

    def take(self, candidate: Candidate, now: datetime, /) -> None:
        if self.refusal:
            self._until = now + TRY_AGAIN  # this one is the trial; the others wait for its answer

    def give_back(self, candidate: Candidate, now: datetime, /) -> None:
        if self.refusal:
            self._until = now  # the trial was not sent: the next candidate is it

    def on_jump(self, by: timedelta, /) -> None:
        if self._until is not None:
            self._until += by

    def on_outcome(self, outcome: EvictionOutcome, now: datetime, /) -> Iterable[ClusterEvent]:
        if outcome.answer is Answer.FORBIDDEN:
            self.refusal = outcome.message
            self._until = now + TRY_AGAIN
        elif outcome.answer not in _TELLS_NOTHING:
            self.refusal = ""
            self._until = None
        return ()
