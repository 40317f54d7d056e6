"""Keeps eternal tasks alive: one that ends or raises is an incident, never silence.

Each runs as `task_group.start_soon(partial(supervise, name, task, on_crash=..., clock=...))`;
cancelling the group's scope ends them all, and leaving the group waits until they have.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import anyio

from reactive_descheduler.kit.clock import Clock

FIRST_DELAY = 0.5
LONGEST_DELAY = 30.0
"""Seconds before a restart; each crash in a row doubles the delay, up to the longest."""
HEALTHY_AFTER = 60.0
"""Seconds of running after which a crash counts as the first one again."""


class Crash(NamedTuple):
    """What is known of one crash, for whoever reports it and decides."""

    task: str
    error: Exception | None
    """None: it returned, which an eternal task must not."""
    in_a_row: int
    """1 for the first, or for one after a healthy run."""
    restart_in: float
    """Seconds until it is started anew, unless it is escalated."""


class Escalated(Exception):
    """Raised when a crash was escalated: the process cannot do its work without that task."""

    def __init__(self, crash: Crash) -> None:
        self.crash = crash
        what = "ended" if crash.error is None else f"failed: {crash.error}"
        super().__init__(f"task {crash.task} {what} ({crash.in_a_row} in a row)")


def restart_always(_: Crash) -> bool:
    """Never escalate; for `on_crash` of a task that the process can do without."""
    return True


async def supervise(
    name: str,
    task: Callable[[], Awaitable[None]],
    *,
    on_crash: Callable[[Crash], bool],
    clock: Clock,
) -> None:
    """Run `task` for ever: restart it with backoff when it ends or raises.

    `on_crash` is told of each crash; False escalates it, by raising Escalated. Cancellation passes
    through and is no crash.
    """
    in_a_row = 0
    while True:
        started = clock.monotonic()
        error: Exception | None = None
        try:
            await task()
        except Exception as caught:  # whatever it was, the others go on
            error = caught
        healthy = clock.monotonic() - started >= HEALTHY_AFTER
        in_a_row = 1 if healthy else in_a_row + 1
        # The exponent is capped, or a task that crashes for weeks would overflow a float.
        delay = min(FIRST_DELAY * 2.0 ** min(in_a_row - 1, 16), LONGEST_DELAY)
        crash = Crash(task=name, error=error, in_a_row=in_a_row, restart_in=delay)
        if not on_crash(crash):
            raise Escalated(crash) from error
        await anyio.sleep(delay)
