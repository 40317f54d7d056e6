"""The garbage collector's schedule, in one object.

Views of the cluster's objects never form cycles, and there are a hundred thousand of them: walking
them is a pause of up to half a second for nothing. So what survives is frozen out of the
collector's sight at short intervals, and only looked at when a pause hurts no one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import anyio

from reactive_descheduler.kit.clock import Clock

THRESHOLDS = (10_000, 2, 1_000)
"""Of the first, small enough that what evaluations leave behind (a pass over everything makes
millions of objects) is walked in parts of some 10 ms; in all, high enough that filling the cache at
start sees no full collection."""
EVENTS = 1_000
"""Watch events after which the young are collected and frozen: about 1 ms, where waiting for the
interpreter to do it after 50,000 would cost 100."""
INTERVAL = 1.0
"""Seconds after which the same is done for fewer events."""
YOUNG = 1
FULL = 2


class GarbageCollector(Protocol):
    """What is needed of the standard library's `gc` module, which fits."""

    def set_threshold(self, threshold0: int, threshold1: int, threshold2: int, /) -> None: ...
    def collect(self, generation: int = ..., /) -> int: ...
    def get_count(self) -> tuple[int, int, int]: ...
    def freeze(self) -> None: ...
    def unfreeze(self) -> None: ...


class CollectorStatistics(NamedTuple):
    pending_events: int
    """Watch events since the last collection."""
    collections: int
    longest_pause: float
    """Seconds, since the caches were synced."""


class Collector:
    """Drives the collector through the life of the process: `started`, `synced`, then `note` for
    each batch of watch events beside `run`, and `resync` at each resync.

    `on_pause` is told of each pause: its cause (`sync`, `young`, `resync`) and its seconds.
    """

    def __init__(
        self, collector: GarbageCollector, clock: Clock, *, on_pause: Callable[[str, float], None]
    ) -> None:
        self._gc = collector
        self._clock = clock
        self._on_pause = on_pause
        self._pending = 0
        self._collections = 0
        self._longest = 0.0

    def started(self) -> None:
        """Call once after the imports: they stay for good, so they need no second look."""
        self._gc.freeze()
        self._gc.set_threshold(*THRESHOLDS)

    def synced(self) -> None:
        """Call when the caches are filled for the first time."""
        self._collect("sync", FULL)
        self._longest = 0.0

    def note(self, events: int) -> None:
        """Count watch events; collects on the spot after a thousand."""
        self._pending += events
        if self._pending >= EVENTS:
            self._collect("young", YOUNG)

    async def run(self) -> None:
        """Collect after each second that had events, or much work without any. Never returns.

        Apart from `note`, so that the millisecond falls beside the way of an event, not on it.
        """
        while True:
            await anyio.sleep(INTERVAL)
            if self._pending or self._gc.get_count()[YOUNG]:
                self._collect("young", YOUNG)

    def resync(self) -> None:
        """Look at everything once more; call while no eviction is under way, it takes up to
        100 ms."""
        self._collect("resync", FULL, thaw=True)

    def statistics(self) -> CollectorStatistics:
        return CollectorStatistics(self._pending, self._collections, self._longest)

    def _collect(self, cause: str, generation: int, *, thaw: bool = False) -> None:
        started = self._clock.monotonic()
        if thaw:
            self._gc.unfreeze()
        self._gc.collect(generation)
        self._gc.freeze()
        pause = self._clock.monotonic() - started
        self._pending = 0
        self._collections += 1
        self._longest = max(self._longest, pause)
        self._on_pause(cause, pause)
