"""When an eviction request arrived: what the benchmark's servers tell and its samples wait for."""

from __future__ import annotations

import asyncio
import time


class Arrivals:
    """The first arrival of a request to evict each Pod, on the clock of `time.perf_counter`."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[float]] = {}

    def expect(self, pod: str) -> asyncio.Future[float]:
        """A future of the time at which the eviction of a Pod will be requested."""
        future = asyncio.get_running_loop().create_future()
        self._waiting[pod] = future
        return future

    def note(self, method: str, path: str) -> None:
        """Take note of a request; to be called before anything else is done with it."""
        now = time.perf_counter()
        *_, pod, last = path.rsplit("/", 2)
        if method == "POST" and last == "eviction" and (future := self._waiting.pop(pod, None)):
            future.set_result(now)
