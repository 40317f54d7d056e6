"""The only source of now, of monotonic time and of sleep.

Everything that decides by time takes a Clock, so that tests run on virtual time: `LoopClock`
follows the event loop's own clock, which is real in production and virtual under test.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """Return the wall clock, aware, in UTC. It may jump."""

    def monotonic(self) -> float:
        """Return seconds on a clock that never jumps; only differences mean something."""


class SystemClock:
    """The machine's clocks. `monotonic` is the event loop's own, so that timers and reckoning
    agree."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class LoopClock:
    """A wall clock that starts at `start` and moves with the running event loop; `shift` makes it
    jump."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._origin = asyncio.get_running_loop().time()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.monotonic() - self._origin)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def shift(self, by: timedelta) -> None:
        self._start += by


class ManualClock:
    """A clock that moves only when told, for decisions without an event loop (`plan`, property
    tests)."""

    def __init__(self, start: datetime) -> None:
        self._now = start
        self._monotonic = 0.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds

    def shift(self, by: timedelta) -> None:
        """Let the wall clock jump."""
        self._now += by
