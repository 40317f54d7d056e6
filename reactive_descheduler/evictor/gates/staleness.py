"""Staleness: nothing goes while a stream that decisions rest on has been silent for too long.

Silence may mean that nothing happens, so some of it is allowed. A watch that is known to have
failed is another matter: until it has caught up nothing goes, as the cause may be gone by now.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from typing import ClassVar

from reactive_descheduler.api.changes import Action, At, On
from reactive_descheduler.api.eviction import Held
from reactive_descheduler.framework.gate import OpenGate

LOOK_AGAIN = timedelta(seconds=1)


class StalenessGate(OpenGate):
    """`ages`: seconds since each needed stream gave a sign of life. `cut_off`: those that failed
    and have not caught up. Budgets are in neither."""

    NAME: ClassVar[str] = "stale"

    def __init__(
        self,
        ages: Callable[[], Mapping[str, float]],
        cut_off: Callable[[], Collection[str]] = tuple,
        *,
        max_age: timedelta,
    ) -> None:
        self._ages = ages
        self._cut_off = cut_off
        self.max_age = max_age
        """A reload of the policy sets another."""

    def closed(self, now: datetime, /) -> Held | None:
        reason = self._reason()
        if reason is None:
            return None
        return Held(self.NAME, reason, (On(Action.STREAM_FRESH, None), At(now + LOOK_AGAIN)))

    def _reason(self) -> str | None:
        limit = self.max_age.total_seconds()
        stale = {kind: age for kind, age in self._ages().items() if age > limit}
        if stale:
            told = ", ".join(f"{kind} for {age:.0f} s" for kind, age in sorted(stale.items()))
            return f"no sign of life on the watch of {told}"
        cut_off = ", ".join(sorted(self._cut_off()))
        return f"the watch of {cut_off} was cut off and has not caught up" if cut_off else None
