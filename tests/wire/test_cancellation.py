"""Cancelled at any point, a reflector or a request leaves neither task nor socket."""

from __future__ import annotations

import anyio
import pytest

from reactive_descheduler.api.decoding import Decoder
from reactive_descheduler.client.evictions import EvictionClient
from tests.builders import make_pod
from tests.wire.server import ApiServer, Drop, Script, Stream, Then, failure, line
from tests.wire.world import FAST, connected, eventually, following

pytestmark = pytest.mark.real_time

FOR_EVER = 3600.0
HALF_A_LINE = line("ADDED", make_pod("late"))[:100]


@pytest.mark.parametrize("streaming", [False, True], ids=["pages", "stream"])
@pytest.mark.parametrize(
    ("of_list", "of_watch"),
    [
        pytest.param(Drop(after=FOR_EVER), None, id="list-unanswered"),
        pytest.param(Stream([HALF_A_LINE], Then.HANG), None, id="within-list"),
        pytest.param(failure(429, "TooManyRequests", "wait", after=3600), None, id="list-retry"),
        pytest.param(None, Drop(after=FOR_EVER), id="watch-unanswered"),
        pytest.param(None, Stream([], Then.HANG), id="watch-accepted"),
        pytest.param(None, Stream([HALF_A_LINE], Then.HANG), id="within-line"),
        pytest.param(None, failure(503, "Unavailable", "wait", after=3600), id="watch-retry"),
    ],
)
async def test_reflector(
    server: ApiServer, of_list: Script | None, of_watch: Script | None, streaming: bool
) -> None:
    server.streaming = streaming
    server.put(make_pod("a"))
    if of_list is not None:
        server.script_list("Pod", of_list)
    if of_watch is not None:
        server.script_watch("Pod", of_watch)
    async with following(server, streaming=streaming, timing=FAST) as world:
        await eventually(lambda: not (server.lists.get("Pod") or server.watches.get("Pod")))
        await anyio.sleep(0.02)
        assert world.statistics.synced == (of_list is None)
        with anyio.CancelScope() as again:  # cancellation is not swallowed either
            again.cancel()
            await anyio.sleep(1)
    await eventually(lambda: server.connections() == 0)


async def test_eviction(server: ApiServer) -> None:
    server.posts.append(Drop(after=FOR_EVER))
    async with connected(server) as connection:
        client = EvictionClient(connection, Decoder())
        with anyio.move_on_after(0.05) as scope:
            await client.evict("default", "a", uid="u", annotations={})
        assert scope.cancelled_caught
    await eventually(lambda: server.connections() == 0)
