from __future__ import annotations

import time

import anyio
import pytest

from reactive_descheduler.kit.clock import SystemClock
from reactive_descheduler.kit.loop_lag import watch_loop_lag


@pytest.mark.real_time
async def test_a_synchronous_stretch_shows_as_lag() -> None:
    lags: list[float] = []

    def stall(seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            pass

    async def watch() -> None:
        await watch_loop_lag(lags.append, clock=SystemClock(), interval=0.01)

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        await anyio.sleep(0.05)
        stall(0.2)
        await anyio.sleep(0.05)
        group.cancel_scope.cancel()
    assert all(lag >= 0 for lag in lags)
    assert 0.15 <= max(lags) < 1
