"""Clock: nothing goes for a while after the wall clock jumped, since every age may be wrong.

A machine that boots with a wrong clock, a corrected time server, a laptop that woke: all of them
settle within a minute, and then ages are right again. And after the process stood still (stopped,
frozen with its container, starved) what it missed comes first: its timers are due at once, while
the changes of that time still wait on their sockets.
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
STILL = 2.0
"""Seconds without a look from which on the process stood still; it looks every second."""
CATCH_UP = 2.0
"""Seconds for taking in what came meanwhile, or for noticing that a connection is lost."""


class ClockGate(OpenGate):
    NAME: ClassVar[str] = "clock"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = self._measure()
        self._until = clock.monotonic()
        self._reason = ""
        self._looked: float | None = None
        self.jumps = 0

    def look(self) -> timedelta | None:
        """Compare the clocks; return by how much the wall clock jumped since the last look."""
        still = self._stood_still()
        self._looked = self._clock.monotonic()
        if still > STILL:
            self._hold(CATCH_UP, f"the process stood still for {still:.0f} s: catching up")
        offset = self._measure()
        jump, self._offset = offset - self._offset, offset
        if abs(jump) < JUMP:
            return None
        self.jumps += 1
        self._hold(HOLD, f"the wall clock jumped by {jump.total_seconds():+.0f} s: waiting for it")
        return jump

    def closed(self, now: datetime, /) -> Held | None:
        # Small steps between looks add up to nothing; a jump is seen here before anything is sent.
        if abs(self._measure() - self._offset) >= JUMP:
            return Held(self.NAME, "the wall clock just jumped", (At(now + timedelta(seconds=1)),))
        if self._stood_still() > STILL:
            return Held(self.NAME, "the process stood still", (At(now + timedelta(seconds=1)),))
        left = self._until - self._clock.monotonic()
        if left <= 0:
            return None
        return Held(self.NAME, self._reason, (At(now + timedelta(seconds=left)),))

    def _hold(self, seconds: float, reason: str) -> None:
        until = self._clock.monotonic() + seconds
        if until > self._until:
            self._until, self._reason = until, reason

    def _stood_still(self) -> float:
        """Return the seconds since the last look; 0 where nobody looks, as in a single pass."""
        return 0.0 if self._looked is None else self._clock.monotonic() - self._looked

    def _measure(self) -> timedelta:
        """Return wall clock minus monotonic clock: constant but for jumps."""
        epoch = self._clock.now().timestamp() - self._clock.monotonic()
        return timedelta(seconds=epoch)
