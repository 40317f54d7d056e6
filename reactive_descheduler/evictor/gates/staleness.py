"""Staleness: nothing goes while a stream that decisions rest on has been silent for too long."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import ClassVar

from reactive_descheduler.api.changes import Action, At, On
from reactive_descheduler.api.eviction import Held
from reactive_descheduler.framework.gate import OpenGate

LOOK_AGAIN = timedelta(seconds=1)


class StalenessGate(OpenGate):
    """`ages`: seconds since each needed stream gave a sign of life. Budgets are not among them."""

    NAME: ClassVar[str] = "stale"

    def __init__(self, ages: Callable[[], Mapping[str, float]], *, max_age: timedelta) -> None:
        self._ages = ages
        self.max_age = max_age
        """A reload of the policy sets another."""

    def closed(self, now: datetime, /) -> Held | None:
        limit = self.max_age.total_seconds()
        stale = {kind: age for kind, age in self._ages().items() if age > limit}
        if not stale:
            return None
        told = ", ".join(f"{kind} for {age:.0f} s" for kind, age in sorted(stale.items()))
        reason = f"no sign of life on the watch of {told}"
        return Held(self.NAME, reason, (On(Action.STREAM_FRESH, None), At(now + LOOK_AGAIN)))
