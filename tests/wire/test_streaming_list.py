"""The list as a stream: taken where it is served, and given up for good where it is not."""

from __future__ import annotations

import pytest

from tests.builders import make_pod
from tests.wire.server import (
    ApiServer,
    Script,
    Stream,
    Then,
    bookmark_line,
    error_line,
    failure,
    line,
)
from tests.wire.world import FAST, eventually, following

pytestmark = pytest.mark.real_time

NO_PROGRESS = "etcdserver: required storage feature RequestWatchProgress is disabled"


def streamed(server: ApiServer) -> list[bool]:
    """For each list that was begun: whether it was asked for as a stream."""
    return [
        "sendInitialEvents" in each.query
        for each in server.requests
        if not each.watching or "sendInitialEvents" in each.query
    ]


async def test_served_streaming_list_needs_no_page(server: ApiServer) -> None:
    server.streaming = True
    for n in range(5):
        server.put(make_pod(f"p{n}"))
    async with following(server, streaming=True) as world:
        await world.until_watching()
        assert world.in_step()
        server.put(make_pod("new"))
        await eventually(world.in_step)
    assert streamed(server) == [True]
    assert server.watches_seen("Pod")[0].query["resourceVersion"] == "105"


async def test_empty_streaming_list_is_synced(server: ApiServer) -> None:
    server.streaming = True
    async with following(server, streaming=True) as world:
        await world.until_watching()
        assert world.in_step()


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(failure(422, "Invalid", "sendInitialEvents is forbidden"), id="422"),
        pytest.param(failure(400, "BadRequest", "unknown parameter"), id="400"),
        pytest.param(failure(500, "InternalError", NO_PROGRESS), id="500"),
        pytest.param(Stream([error_line(500, "InternalError", NO_PROGRESS)]), id="error-event"),
        pytest.param(Stream([], Then.HANG), id="never-complete"),
    ],
)
async def test_refusal_is_remembered(server: ApiServer, refusal: Script) -> None:
    server.put(make_pod("a"))
    server.script_list("Pod", refusal)
    async with following(server, streaming=True, stream_silence=0.2) as world:
        await world.until_watching()
        server.script_watch("Pod", failure(410, "Expired", "too old"))
        server.cut_watches("Pod")
        await eventually(lambda: world.statistics.relists == 1)
        await world.until_watching()
        assert world.in_step()
    assert streamed(server) == [True, False, False]


async def test_stream_without_an_end_is_given_up_and_its_objects_with_it(server: ApiServer) -> None:
    """A server that does not know the parameters sends what it has, and waits."""
    server.put(make_pod("stays"))
    outdated = make_pod("gone-meanwhile")
    server.script_list("Pod", Stream([line("ADDED", outdated)], Then.HANG))
    async with following(server, streaming=True, stream_silence=0.2) as world:
        await world.until_watching()
        assert world.in_step()
    assert streamed(server) == [True, False]


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(failure(503, "ServiceUnavailable", "starting"), id="503"),
        pytest.param(failure(429, "TooManyRequests", "too many"), id="429"),
        pytest.param(Stream([line("ADDED", make_pod("a"))], Then.CUT), id="cut"),
        pytest.param(Stream([line("ADDED", make_pod("a"))]), id="ended-early"),
        pytest.param(Stream([line("ADDED", make_pod("a")), b"{"]), id="half-line"),
    ],
)
async def test_passing_fault_keeps_to_streaming(server: ApiServer, fault: Script) -> None:
    server.streaming = True
    server.put(make_pod("b"))
    server.script_list("Pod", fault)
    async with following(server, streaming=True) as world:
        await world.until_watching()
        assert world.in_step()
    assert streamed(server) == [True, True]


async def test_what_happens_while_the_list_is_sent_is_part_of_it(server: ApiServer) -> None:
    kept = server.put(make_pod("kept"))
    deleted, changed = make_pod("deleted", version="50"), make_pod("kept", version="51")
    server.script_list(
        "Pod",
        Stream(
            [
                line("ADDED", changed),
                line("ADDED", deleted),
                bookmark_line("Pod", 60),
                line("DELETED", deleted),
                line("MODIFIED", kept),
                bookmark_line("Pod", server.version, ends_list=True),
            ],
            Then.HANG,
        ),
    )
    async with following(server, streaming=True, timing=FAST) as world:
        await world.until_watching()
        assert world.in_step()
        assert world.statistics.version == str(server.version)
