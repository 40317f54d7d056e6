from __future__ import annotations

import gc
from datetime import UTC, datetime

import anyio

from reactive_descheduler.kit.clock import LoopClock, ManualClock
from reactive_descheduler.kit.collector import (
    THRESHOLDS,
    Collector,
    CollectorStatistics,
    GarbageCollector,
)

START = datetime(2026, 1, 1, tzinfo=UTC)


class FakeGc:
    """Takes a second of the clock for each generation that it walks."""

    def __init__(self, clock: ManualClock | None = None) -> None:
        self.did: list[str] = []
        self.collections = 0
        """Of the youngest, by the interpreter itself."""
        self._clock = clock

    def set_threshold(self, *thresholds: int) -> None:
        self.did.append(f"thresholds {thresholds}")

    def get_count(self) -> tuple[int, int, int]:
        return (0, self.collections, 0)

    def collect(self, generation: int = 2) -> int:
        self.did.append(f"collect {generation}")
        if self._clock:
            self._clock.advance(generation)
        return 0

    def freeze(self) -> None:
        self.did.append("freeze")

    def unfreeze(self) -> None:
        self.did.append("unfreeze")


def test_the_real_one_fits() -> None:
    real: GarbageCollector = gc
    assert callable(real.freeze)


def test_the_life_of_a_process() -> None:
    clock, pauses = ManualClock(START), list[tuple[str, float]]()
    fake = FakeGc(clock)
    collector = Collector(fake, clock, on_pause=lambda cause, s: pauses.append((cause, s)))
    collector.started()
    assert fake.did == ["freeze", f"thresholds {THRESHOLDS}"]
    fake.did.clear()
    collector.synced()
    assert fake.did == ["collect 2", "freeze"]
    fake.did.clear()
    collector.note(999)
    assert fake.did == []
    collector.note(1)
    assert fake.did == ["collect 1", "freeze"]
    fake.did.clear()
    collector.note(7)
    assert collector.statistics() == CollectorStatistics(7, 2, 1.0)
    collector.resync()
    assert fake.did == ["unfreeze", "collect 2", "freeze"]
    assert pauses == [("sync", 2.0), ("young", 1.0), ("resync", 2.0)]


async def test_a_second_with_events_collects_and_an_idle_one_does_not() -> None:
    fake = FakeGc()
    collector = Collector(fake, LoopClock(START), on_pause=lambda cause, s: None)
    async with anyio.create_task_group() as group:
        group.start_soon(collector.run)
        await anyio.sleep(2.5)
        assert fake.did == []
        collector.note(1)
        await anyio.sleep(5)
        group.cancel_scope.cancel()
    assert fake.did == ["collect 1", "freeze"]


async def test_a_second_of_much_work_without_events_collects_too() -> None:
    fake = FakeGc()
    collector = Collector(fake, LoopClock(START), on_pause=lambda cause, s: None)
    async with anyio.create_task_group() as group:
        group.start_soon(collector.run)
        await anyio.sleep(0.5)
        fake.collections = 1
        await anyio.sleep(1)
        fake.collections = 0
        await anyio.sleep(5)
        group.cancel_scope.cancel()
    assert fake.did == ["collect 1", "freeze"]
