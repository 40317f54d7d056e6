"""What the gates ask about the streams of one process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from random import Random

import anyio
import pytest

from reactive_descheduler.api.changes import WatchEvent
from reactive_descheduler.api.errors import Unreachable
from reactive_descheduler.app.streams import Streams
from reactive_descheduler.cache.informer import Informer
from reactive_descheduler.cache.reflector import Page, ReflectorStatistics
from reactive_descheduler.cache.store import Store
from reactive_descheduler.kit.clock import LoopClock
from reactive_descheduler.kit.supervise import Crash
from tests.unit.evictor.samples import NOW


class Source:
    """Lists at once and then stays silent, unless it is told to fail or to crash."""

    def __init__(self, kind: str, *, error: Exception | None = None) -> None:
        self.kind = kind
        self.error = error

    async def pages(self) -> AsyncGenerator[Page, None]:
        if self.error is not None:
            raise self.error
        yield Page([], "1")

    async def watch(
        self, resource_version: str, *, timeout_seconds: int
    ) -> AsyncGenerator[Sequence[WatchEvent], None]:
        if self.error is not None:
            raise self.error
        yield ()
        await anyio.sleep_forever()


@asynccontextmanager
async def running(*sources: Source) -> AsyncIterator[Streams]:
    states: list[ReflectorStatistics] = []
    crashes: list[Crash] = []
    clock = LoopClock(NOW)
    streams = Streams(
        sources,
        Informer(Store(), lambda _change: None),
        clock=clock,
        random=Random(1),
        on_state=states.append,
    )

    def on_crash(crash: Crash) -> bool:
        crashes.append(crash)
        return True

    async with anyio.create_task_group() as tasks:
        streams.start(tasks, on_crash)
        yield streams
        tasks.cancel_scope.cancel()


async def test_what_is_not_synced_is_named_with_what_stands_in_the_way() -> None:
    pods = Source("Pod", error=Unreachable("nobody answers"))
    async with running(Source("Node"), pods) as streams:
        await anyio.sleep(1)
        (missing,) = streams.not_synced()
        assert missing == "Pod (nobody answers)"
        with anyio.move_on_after(1):
            await streams.wait_synced()
            pytest.fail("a kind is missing")
        pods.error = None
        await streams.wait_synced()

        assert streams.not_synced() == []
        assert [each.kind for each in streams.statistics()] == ["Node", "Pod"]


async def test_one_stream_that_fails_takes_no_other_down() -> None:
    broken = Source("Pod", error=RuntimeError("a bug"))
    async with running(Source("Node"), broken) as streams:
        await anyio.sleep(10)
        assert streams.ages()["Node"] <= 25
        broken.error = None
        await anyio.sleep(60)

        assert streams.not_synced() == []


async def test_a_silent_stream_grows_old() -> None:
    budgets = Source("PodDisruptionBudget")
    async with running(budgets) as streams:
        assert streams.ages() == {}, "nothing is known of it yet: that is not synced"
        await anyio.sleep(1)
        budgets.error = Unreachable("gone")
        await anyio.sleep(44)
        assert streams.ages()["PodDisruptionBudget"] <= 45
        await anyio.sleep(30)

        assert streams.ages()["PodDisruptionBudget"] > 45


async def test_a_kind_may_be_added_and_removed_while_the_others_run() -> None:
    async with running(Source("Node")) as streams:
        await streams.wait_synced()
        streams.add(Source("Pod"))
        assert "Pod" in streams
        assert streams.not_synced() == ["Pod"]
        await streams.wait_synced()
        assert streams.not_synced() == []
        streams.remove("Pod")

        assert "Pod" not in streams
        assert set(streams.ages()) == {"Node"}
