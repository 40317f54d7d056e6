"""Settle: the candidate's cause must have stood for a while without a break.

The greatest danger of a fast descheduler is acting on a cause that is about to vanish.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import ClassVar

from reactive_descheduler.api.changes import At
from reactive_descheduler.api.eviction import Candidate, Cause, Held
from reactive_descheduler.framework.gate import OpenGate


class SettleGate(OpenGate):
    """`settle_of`: how long this candidate's cause has to stand. `began`: since when it stands."""

    NAME: ClassVar[str] = "settle"

    def __init__(
        self,
        *,
        settle_of: Callable[[Candidate], timedelta],
        began: Callable[[Cause], datetime | None],
    ) -> None:
        self.settle_of = settle_of
        """A reload of the policy sets another."""
        self._began = began

    def check(self, candidate: Candidate, now: datetime, /) -> Held | None:
        wait = self.settle_of(candidate)
        if not wait:
            return None
        began = self._began(candidate.cause)
        due = (now if began is None else began) + wait
        if due <= now:
            return None
        reason = f"its cause has to stand for {wait.total_seconds():g} s"
        return Held(self.NAME, reason, (At(due),))
