"""What the gates ask about the streams of one process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from random import Random

import anyio
import pytest

from reactive_descheduler.api.changes import WatchEvent
from reactive_descheduler.api.errors import ExpiredError, Unreachable
from reactive_descheduler.app.streams import Streams
from reactive_descheduler.cache.informer import Informer
from reactive_descheduler.cache.list_watch import Page
from reactive_descheduler.cache.reflector import ReflectorStatistics
from reactive_descheduler.cache.store import Store
from reactive_descheduler.kit.clock import LoopClock
from reactive_descheduler.kit.supervise import Crash
from tests.unit.evictor.samples import NOW


class Source:
    """Lists at once and then stays silent, unless it is told to fail or to crash."""

    def __init__(self, kind: str, *, error: Exception | None = None) -> None:
        self.kind = kind
        self.error = error
        self.accepted = anyio.Event()

    async def pages(self) -> AsyncGenerator[Page, None]:
        if self.error is not None:
            raise self.error
        yield Page([], "1")

    async def watch(
        self, resource_version: str, *, timeout_seconds: int
    ) -> AsyncGenerator[Sequence[WatchEvent], None]:
        if self.error is not None:
            raise self.error
        self.accepted.set()
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


class Relisted(Source):
    """Fails for a while, forgets the version, and then takes its time to list."""

    PAGES_EVERY = 20.0

    def __init__(self) -> None:
        super().__init__("Pod")
        self.listed = 0
        self.begun = anyio.Event()

    async def pages(self) -> AsyncGenerator[Page, None]:
        async for page in super().pages():
            self.listed += 1
            if self.listed > 1:
                yield Page([], "2")
                self.begun.set()
                await anyio.sleep(self.PAGES_EVERY)
            yield page


async def test_a_stream_is_cut_off_from_its_failure_until_it_has_caught_up() -> None:
    pods = Source("Pod", error=Unreachable("gone"))
    async with running(Source("Node"), pods) as streams:
        await anyio.sleep(2)
        assert streams.cut_off() == set(), "nothing is known of it yet: that is not synced"
        pods.error = None
        await streams.wait_synced()
        await anyio.sleep(30)
        assert streams.cut_off() == set(), "a silent watch is opened again, which is no failure"

        pods.error = Unreachable("gone")
        await anyio.sleep(30)
        assert streams.cut_off() == {"Pod"}
        pods.error, pods.accepted = None, anyio.Event()
        await pods.accepted.wait()
        assert streams.cut_off() == {"Pod"}
        await anyio.sleep(1.1)
        assert streams.cut_off() == set()


async def test_a_stream_stays_old_until_a_new_list_is_complete() -> None:
    pods = Relisted()
    async with running(pods) as streams:
        await streams.wait_synced()
        pods.error = Unreachable("gone")
        await anyio.sleep(100)
        pods.error = ExpiredError("too old")
        await anyio.sleep(30)
        pods.error = None
        await pods.begun.wait()
        await anyio.sleep(Relisted.PAGES_EVERY - 1)
        assert streams.ages()["Pod"] > 100, "pages came, but the cache is what it was"
        await anyio.sleep(2)

        assert streams.ages()["Pod"] < 25


async def test_a_watch_that_is_back_has_a_moment_to_tell_what_was_missed() -> None:
    nodes = Source("Node")
    async with running(nodes) as streams:
        await streams.wait_synced()
        nodes.error = Unreachable("gone")
        await anyio.sleep(100)
        nodes.error, nodes.accepted = None, anyio.Event()
        await nodes.accepted.wait()
        await anyio.sleep(0.1)
        assert streams.ages()["Node"] > 45
        await anyio.sleep(1.1)

        assert streams.ages()["Node"] < 2


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
