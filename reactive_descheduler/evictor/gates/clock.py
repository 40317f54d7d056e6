"""Clock: after the wall clock jumped nothing goes for a while, since every age may be wrong.

A machine that boots with a wrong clock, a corrected time server, a laptop that woke: all of them
settle within a minute, and then ages are right again.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar

from reactive_descheduler.api.changes import At
from reactive_descheduler.api.eviction import Held
from reactive_descheduler.framework.gate import OpenGate
from reactive_descheduler.kit.clock import Clock

JUMP = timedelta(seconds=2)
"""More than a slewing time daemon moves the clock between two looks."""
HOLD = 60.0
"""Seconds."""


class ClockGate(OpenGate):
    NAME: ClassVar[str] = "clock"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = self._measure()
        self._until = clock.monotonic()
        self._jump = timedelta()
        self.jumps = 0

    def look(self) -> timedelta | None:
        """Compare the clocks; return by how much the wall clock jumped since the last look."""
        offset = self._measure()
        jump, self._offset = offset - self._offset, offset
        if abs(jump) < JUMP:
            return None
        self.jumps += 1
        self._jump = jump
        self._until = self._clock.monotonic() + HOLD
        return jump

    def closed(self, now: datetime, /) -> Held | None:
        # Small steps between looks add up to nothing; a jump is seen here before anything is sent.
        if abs(self._measure() - self._offset) >= JUMP:
            return Held(self.NAME, "the wall clock just jumped", (At(now + timedelta(seconds=1)),))
        left = self._until - self._clock.monotonic()
        if left <= 0:
            return None
        reason = f"the wall clock jumped by {self._jump.total_seconds():+.0f} s: waiting for it"
        return Held(self.NAME, reason, (At(now + timedelta(seconds=left)),))

    def _measure(self) -> timedelta:
        """Return wall clock minus monotonic clock: constant but for jumps."""
        epoch = self._clock.now().timestamp() - self._clock.monotonic()
        return timedelta(seconds=epoch)
