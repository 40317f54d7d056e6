from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from functools import partial

import anyio
import pytest

from reactive_descheduler.kit.clock import LoopClock
from reactive_descheduler.kit.supervise import (
    LONGEST_DELAY,
    Crash,
    Escalated,
    restart_always,
    supervise,
)

START = datetime(2026, 1, 1, tzinfo=UTC)


class Incidents:
    def __init__(self, *, escalate_at: int = 1_000) -> None:
        self.seen: list[Crash] = []
        self._escalate_at = escalate_at

    def __call__(self, crash: Crash) -> bool:
        self.seen.append(crash)
        return crash.in_a_row < self._escalate_at


async def run_for(seconds: float, task: Callable[[], Coroutine[object, object, None]]) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(task)
        await anyio.sleep(seconds)
        group.cancel_scope.cancel()


async def test_a_task_that_raises_is_reported_and_restarted() -> None:
    starts: list[float] = []
    incidents = Incidents()

    async def broken() -> None:
        starts.append(asyncio.get_running_loop().time())
        raise ValueError("boom")

    clock = LoopClock(START)
    origin = clock.monotonic()
    await run_for(4, partial(supervise, "broken", broken, on_crash=incidents, clock=clock))
    assert [at - origin for at in starts] == [0, 0.5, 1.5, 3.5]
    assert [str(crash.error) for crash in incidents.seen] == ["boom"] * 4
    assert [crash.in_a_row for crash in incidents.seen] == [1, 2, 3, 4]


async def test_a_task_that_ends_is_an_incident_too() -> None:
    incidents = Incidents()

    async def ends() -> None:
        return None

    task = partial(supervise, "ends", ends, on_crash=incidents, clock=LoopClock(START))
    await run_for(0.1, task)
    assert incidents.seen == [Crash("ends", None, 1, 0.5)]


async def test_the_delay_has_an_upper_end() -> None:
    incidents = Incidents()

    async def broken() -> None:
        raise ValueError

    task = partial(supervise, "broken", broken, on_crash=incidents, clock=LoopClock(START))
    await run_for(2_000, task)
    assert max(crash.restart_in for crash in incidents.seen) == LONGEST_DELAY


async def test_a_healthy_run_makes_the_next_crash_the_first_again() -> None:
    incidents = Incidents()

    async def broken_later() -> None:
        await anyio.sleep(61)
        raise ValueError

    task = partial(supervise, "later", broken_later, on_crash=incidents, clock=LoopClock(START))
    await run_for(200, task)
    assert [crash.in_a_row for crash in incidents.seen] == [1, 1, 1]


async def test_escalation_raises_with_the_cause() -> None:
    async def broken() -> None:
        raise ValueError("boom")

    with pytest.raises(Escalated, match=r"task broken failed: boom \(3 in a row\)") as caught:
        await supervise("broken", broken, on_crash=Incidents(escalate_at=3), clock=LoopClock(START))
    assert isinstance(caught.value.__cause__, ValueError)


async def test_cancellation_is_no_crash() -> None:
    incidents = Incidents()
    task = partial(
        supervise, "idle", anyio.sleep_forever, on_crash=incidents, clock=LoopClock(START)
    )
    await run_for(5, task)
    assert incidents.seen == []


async def test_one_failing_leaves_the_others_running() -> None:
    ticks = 0

    async def ticking() -> None:
        nonlocal ticks
        while True:
            await anyio.sleep(1)
            ticks += 1

    async def broken() -> None:
        raise ValueError

    clock = LoopClock(START)
    async with anyio.create_task_group() as group:
        for name, task in (("ticking", ticking), ("broken", broken)):
            group.start_soon(partial(supervise, name, task, on_crash=restart_always, clock=clock))
        await anyio.sleep(10.5)
        group.cancel_scope.cancel()
    assert ticks == 10
