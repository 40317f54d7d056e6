"""The test bed itself: sleeping costs no real time, and a blocking call is caught."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest

from reactive_descheduler.kit.clock import LoopClock

START = datetime(2026, 1, 1, tzinfo=UTC)


async def test_an_hour_passes_at_once() -> None:
    began = time.perf_counter()
    clock = LoopClock(START)
    await asyncio.sleep(3600)
    assert clock.now() == START + timedelta(hours=1)
    assert time.perf_counter() - began < 5


async def test_a_shift_makes_the_wall_clock_jump_but_not_the_monotonic_one() -> None:
    clock = LoopClock(START)
    before = clock.monotonic()
    clock.shift(timedelta(hours=-2))
    assert clock.now() == START - timedelta(hours=2)
    assert clock.monotonic() == before


@pytest.mark.real_time
async def test_real_time_is_left_alone() -> None:
    began = time.perf_counter()
    await asyncio.sleep(0.05)
    assert time.perf_counter() - began >= 0.045
