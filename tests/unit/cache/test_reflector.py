"""When a reflector retries, and from where: on virtual time, with a scripted source.

What goes over the wire is tested in `tests/wire`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from random import Random
from typing import NamedTuple

import anyio
import pytest
from structlog.testing import capture_logs

from reactive_descheduler.api.changes import WatchEvent, WatchEventType
from reactive_descheduler.api.decoding import UnreadableError
from reactive_descheduler.api.errors import ApiStatusError, ExpiredError, Unreachable
from reactive_descheduler.api.meta import KubeObject
from reactive_descheduler.cache.list_watch import Page
from reactive_descheduler.cache.reflector import Reflector, ReflectorStatistics
from reactive_descheduler.kit.clock import SystemClock
from tests.builders import make_pod, view


class Open(NamedTuple):
    """A watch that is accepted, gives its blocks, stays for some seconds, and ends as told."""

    blocks: Sequence[Sequence[WatchEvent]] = ()
    seconds: float = 0.0
    error: Exception | None = None


class LoopTime(SystemClock):
    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


class ScriptedSource:
    """Gives what is scripted, then good lists and watches that last."""

    kind = "Pod"

    def __init__(self) -> None:
        self.lists: list[Exception | Sequence[Page]] = []
        self.watches: list[Exception | Open] = []
        self.calls: list[tuple[float, str]] = []
        """When each list (`list`) or watch (its version) was asked for."""

    async def pages(self) -> AsyncGenerator[Page, None]:
        self._note("list")
        script = self.lists.pop(0) if self.lists else [Page([], "100")]
        if isinstance(script, Exception):
            raise script
        for page in script:
            yield page

    async def watch(
        self, resource_version: str, *, timeout_seconds: int
    ) -> AsyncGenerator[Sequence[WatchEvent], None]:
        self._note(resource_version)
        if not self.watches:
            while True:
                yield ()
                await anyio.sleep(10)
        script = self.watches.pop(0)
        if isinstance(script, Exception):
            raise script
        yield ()
        for block in script.blocks:
            yield block
        await anyio.sleep(script.seconds)
        if script.error is not None:
            raise script.error

    def _note(self, what: str) -> None:
        self.calls.append((asyncio.get_running_loop().time(), what))

    def delays(self) -> list[tuple[float, str]]:
        """Seconds between each call and the one before."""
        times = [0.0, *(time for time, _ in self.calls)]
        return [
            (time - before, what) for before, (time, what) in zip(times, self.calls, strict=False)
        ]


class RecordingSink:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def replace(
        self, kind: str, objects: Iterable[KubeObject], resource_version: str
    ) -> Iterable[None]:
        yield
        self.seen.append(f"={','.join(o.name for o in objects)}@{resource_version}")

    def apply(self, event: WatchEvent) -> None:
        assert event.object is not None
        self.seen.append(f"{event.type[0]}{event.object.name}")


class World(NamedTuple):
    source: ScriptedSource
    sink: RecordingSink
    states: list[ReflectorStatistics]
    reflector: Reflector

    async def run(self, seconds: float) -> None:
        with capture_logs(), anyio.move_on_after(seconds):
            await self.reflector.run()


@pytest.fixture
def world() -> World:
    source, sink = ScriptedSource(), RecordingSink()
    states: list[ReflectorStatistics] = []
    reflector = Reflector(source, sink, clock=LoopTime(), random=Random(5), on_state=states.append)
    return World(source, sink, states, reflector)


def added(name: str, version: int) -> WatchEvent:
    found = view(make_pod(name, version=str(version)))
    return WatchEvent(WatchEventType.ADDED, found, str(version))


def bookmark(version: int) -> WatchEvent:
    return WatchEvent(WatchEventType.BOOKMARK, None, str(version))


def page(*names: str, version: int = 100) -> Page:
    return Page([view(make_pod(name)) for name in names], str(version))


BUSY = ApiStatusError(503, "ServiceUnavailable", "busy")
DENIED = ApiStatusError(403, "Forbidden", "no")


async def test_first_list_is_handed_on_page_by_page_a_later_one_once_it_is_complete(
    world: World,
) -> None:
    world.source.lists = [[page("a"), page("b")], [page("a"), page("c", version=200)]]
    world.source.watches = [ExpiredError("old")]
    await world.run(5)
    assert world.sink.seen == ["Aa", "Ab", "=a,b@100", "=a,c@200"]
    assert world.reflector.statistics().relists == 1


@pytest.mark.real_time
async def test_long_list_is_taken_in_by_slices_so_that_the_loop_breathes() -> None:
    turns: list[int] = []

    class Slow(RecordingSink):
        def replace(
            self, kind: str, objects: Iterable[KubeObject], resource_version: str
        ) -> Iterable[None]:
            for step in range(20):
                while time.perf_counter() < began + step * 0.005:
                    pass
                turns.append(step)
                yield

    async def others() -> None:
        while True:
            turns.append(-1)
            await asyncio.sleep(0)

    reflector = Reflector(ScriptedSource(), Slow(), clock=SystemClock(), random=Random(5))
    began = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(others)
        tasks.start_soon(reflector.run)
        await reflector.wait_synced()
        tasks.cancel_scope.cancel()

    first, last = turns.index(0), turns.index(19)
    assert turns[first:last].count(-1) >= 5


async def test_first_list_broken_off_starts_over_before_synced(world: World) -> None:
    world.source.lists = [Unreachable("gone"), [page("a")]]
    await world.run(0.5)
    before = world.reflector.statistics()
    await world.run(5)
    after = world.reflector.statistics()
    assert (before.synced, after.synced) == (False, True)
    assert after.relists == 0, "only lists after the first complete one count"


@pytest.mark.parametrize("error", [Unreachable("lost"), BUSY], ids=["connection", "server"])
async def test_failures_in_a_row_wait_ever_longer_and_keep_the_version(
    world: World, error: Exception
) -> None:
    world.source.watches = [error] * 8
    await world.run(200)
    delays = world.source.delays()[2:]
    steps = [0.8, 1.6, 3.2, 6.4, 12.8, 15, 15, 15]
    assert [what for _, what in delays] == ["100"] * 8
    assert all(low <= delay <= 2 * low for low, (delay, _) in zip(steps, delays, strict=True))


async def test_event_resets_the_delay(world: World) -> None:
    progress = Open([[added("a", 101)]], 2.0, Unreachable("lost"))
    world.source.watches = [BUSY, BUSY, BUSY, progress]
    await world.run(60)
    last, version = world.source.delays()[-1]
    assert version == "101"
    assert 2.8 <= last <= 3.6


async def test_being_accepted_alone_does_not_reset_the_delay(world: World) -> None:
    world.source.watches = [Open(error=Unreachable("lost"))] * 5
    await world.run(120)
    assert world.source.delays()[-1][0] >= 12.8


@pytest.mark.parametrize("asked", [3.0, 60.0])
async def test_retry_after_is_kept(world: World, asked: float) -> None:
    world.source.watches = [ApiStatusError(429, "TooManyRequests", "", retry_after=asked)]
    await world.run(100)
    assert asked <= world.source.delays()[-1][0] <= asked * 1.25


async def test_missing_permission_is_retried_slowly(world: World) -> None:
    world.source.lists = [DENIED, DENIED]
    await world.run(100)
    assert all(15 <= delay <= 30 for delay, what in world.source.delays()[1:3])
    assert [(state.synced, state.error) for state in world.states] == [
        (False, "403 Forbidden: no"),
        (True, "403 Forbidden: no"),
        (True, ""),
    ]


async def test_silence_goes_on_from_the_last_version_at_once(world: World) -> None:
    world.source.watches = [Open([[added("a", 101), bookmark(150)]], 10**6)]
    await world.run(26)
    (delay, version) = world.source.delays()[-1]
    assert version == "150"
    assert 20 <= delay <= 25
    statistics = world.reflector.statistics()
    assert statistics.restarts == 1
    assert statistics.bookmark_age == pytest.approx(26, abs=0.1)


async def test_watch_that_the_server_ends_is_opened_again_at_once(world: World) -> None:
    world.source.watches = [Open([[bookmark(150)]], 15)] * 4
    await world.run(62)
    assert [what for _, what in world.source.calls] == ["list", "100", *["150"] * 4]
    assert all(delay == pytest.approx(15) for delay, _ in world.source.delays()[2:])


async def test_watch_ended_at_once_waits(world: World) -> None:
    world.source.watches = [Open()] * 5
    await world.run(120)
    assert world.source.delays()[-1][0] >= 12.8


async def test_expired_lists_at_once_and_then_ever_later(world: World) -> None:
    world.source.watches = [ExpiredError("old")] * 4
    await world.run(60)
    delays = [delay for delay, what in world.source.delays() if what == "list"]
    assert delays[1] == 0
    assert all(0.8 * 2**n <= delay <= 1.6 * 2**n for n, delay in enumerate(delays[2:]))


async def test_unreadable_line_is_counted_and_lists_anew(world: World) -> None:
    world.source.watches = [Open([[added("a", 101)]], 3, UnreadableError("what?"))]
    await world.run(10)
    assert [what for _, what in world.source.calls] == ["list", "100", "list", "100"]
    assert world.reflector.statistics().unreadable == 1


async def test_bug_in_a_listener_is_survived(world: World) -> None:
    def fail(event: WatchEvent) -> None:
        raise ZeroDivisionError

    world.sink.apply = fail  # type: ignore[method-assign]
    world.source.watches = [Open([[added("a", 101)]])]
    await world.run(10)
    assert [what for _, what in world.source.calls] == ["list", "100", "list", "100"]


@pytest.mark.parametrize(
    "error",
    [
        ApiStatusError(400, "BadRequest", "invalid resource version"),
        ApiStatusError(504, "Timeout", "Too large resource version: 100, current: 3"),
    ],
    ids=["invalid", "from-before-a-restore"],
)
async def test_version_that_the_server_cannot_serve_is_given_up(
    world: World, error: Exception
) -> None:
    world.source.watches = [error]
    await world.run(40)
    assert [what for _, what in world.source.calls] == ["list", "100", "list", "100"]


async def test_who_waits_is_told_once_synced(world: World) -> None:
    world.source.lists = [Unreachable("not yet")]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(world.run, 10)
        await world.reflector.wait_synced()
        assert 0.8 <= asyncio.get_running_loop().time() <= 1.7


async def test_deletion_within_a_list_takes_the_object_out(world: World) -> None:
    gone = view(make_pod("a"))
    world.source.lists = [[page("a", "b"), Page([], "100", gone=[gone])]]
    await world.run(1)
    assert world.sink.seen == ["Aa", "Ab", "Da", "=b@100"]


async def test_last_byte_moves_with_every_block(world: World) -> None:
    world.source.watches = [Open([[]], 10**6)]
    await world.run(3)
    began = world.reflector.statistics().last_byte
    assert began == pytest.approx(0, abs=0.01)
