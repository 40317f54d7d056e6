"""What the adapter does below the reflector: slices, and compressed pages."""

from __future__ import annotations

import gzip
from contextlib import aclosing

import pytest

from reactive_descheduler.api.decoding import Decoder
from reactive_descheduler.client.listwatch import HttpListWatch
from reactive_descheduler.kit.clock import SystemClock
from tests.builders import make_pod
from tests.wire.server import Answer, ApiServer, Stream, json_of, line
from tests.wire.world import connected

pytestmark = pytest.mark.real_time


class SlowClock(SystemClock):
    """Each look at it takes a millisecond."""

    def __init__(self) -> None:
        self.looks = 0

    def monotonic(self) -> float:
        self.looks += 1
        return self.looks / 1000


async def test_block_of_lines_is_broken_off_when_it_takes_too_long(server: ApiServer) -> None:
    lines = [line("ADDED", make_pod(f"p{n}", version=str(n))) for n in range(40)]
    server.script_watch("Pod", Stream([b"".join(lines)]))
    async with connected(server) as connection:
        source = HttpListWatch(connection, Decoder(), "Pod", clock=SlowClock())
        async with aclosing(source.watch("1", timeout_seconds=5)) as blocks:
            found = [block async for block in blocks]
    assert found[0] == (), "the accepted request"
    assert max(len(block) for block in found) <= 9
    assert [e.resource_version for block in found for e in block] == [str(n) for n in range(40)]


async def test_compressed_page(server: ApiServer) -> None:
    body = json_of({"metadata": {"resourceVersion": "7"}, "items": [make_pod("a")]})
    server.script_list("Pod", Answer(200, gzip.compress(body), {"Content-Encoding": "gzip"}))
    async with connected(server) as connection:
        source = HttpListWatch(connection, Decoder(), "Pod", clock=SystemClock(), streaming=False)
        async with aclosing(source.pages()) as pages:
            [page] = [page async for page in pages]
    assert ([each.name for each in page.items], page.resource_version) == (["a"], "7")
    assert "gzip" in server.requests[0].encodings
