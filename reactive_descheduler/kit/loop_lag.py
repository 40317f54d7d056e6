"""Measures how late the event loop is: how long a ready task waits behind synchronous stretches."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from reactive_descheduler.kit.clock import Clock

INTERVAL = 0.25
"""Seconds between measurements. A stretch shorter than that is seen with a chance of its share; the
long ones, which matter, always."""


async def watch_loop_lag(
    report: Callable[[float], None], *, clock: Clock, interval: float = INTERVAL
) -> None:
    """Sleep again and again, and report by how many seconds each sleep was late. Never returns."""
    while True:
        due = clock.monotonic() + interval
        await anyio.sleep(interval)
        report(max(0.0, clock.monotonic() - due))
