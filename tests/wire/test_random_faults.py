"""Faults of all sorts at random moments: in the end the store holds what the server holds, and what
was told along the way adds up to it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import anyio
import pytest

from tests.builders import make_pod
from tests.wire.server import ApiServer, Drop, Script, Stream, Then, error_line, failure
from tests.wire.world import FAST, World, following

pytestmark = pytest.mark.real_time


def put(server: ApiServer, random: Random) -> None:
    """Add, change, or bring back under another UID."""
    name = f"p{random.randrange(12)}"
    server.put(make_pod(name, uid=f"{name}-{random.randrange(3)}"))


def delete(server: ApiServer, random: Random) -> None:
    if names := list(server.objects.get("Pod", {})):
        server.delete("Pod", *random.choice(names))


def compact(server: ApiServer, random: Random) -> None:
    server.oldest = server.version
    server.cut_watches("Pod")


def break_watch(server: ApiServer, random: Random) -> None:
    faults: list[Script] = [
        failure(500, "InternalError", "broken"),
        failure(429, "TooManyRequests", "too many"),
        failure(410, "Expired", "too old"),
        Stream([error_line(410, "Expired", "too old")]),
        Stream([b'{"type":"ADD'], Then.CUT),
        Stream([b"nonsense\n"]),
        Stream([], Then.HANG),
        Drop(),
    ]
    server.script_watch("Pod", random.choice(faults))
    server.cut_watches("Pod")


def break_list(server: ApiServer, random: Random) -> None:
    faults: list[Script] = [failure(503, "Unavailable", "no"), Drop()]
    server.script_list("Pod", random.choice(faults))
    compact(server, random)


def bookmark(server: ApiServer, random: Random) -> None:
    server.bookmark("Pod")


ACTIONS: dict[Callable[[ApiServer, Random], None], int] = {
    put: 12,
    delete: 4,
    bookmark: 1,
    break_watch: 2,
    compact: 1,
    break_list: 1,
}


def adds_up(world: World) -> bool:
    """Whether the changes, one by one, lead to the store; each starts where the last one ended."""
    known: dict[tuple[str, str], object] = {}
    for change in world.changes:
        name = (change.object.namespace, change.object.name)
        if known.get(name) is not change.old:
            return False
        known[name] = change.new
    held = {(each.namespace, each.name): each for each in world.store.all("Pod")}
    return {name: each for name, each in known.items() if each is not None} == held


@pytest.mark.parametrize("streaming", [False, True], ids=["pages", "stream"])
@pytest.mark.parametrize("seed", range(8))
async def test_store_equals_server(server: ApiServer, seed: int, streaming: bool) -> None:
    random = Random(seed)
    server.streaming = streaming
    timing = FAST._replace(silence=(0.1, 0.12))
    async with following(server, timing=timing, page_size=3, streaming=streaming) as world:
        for _ in range(80):
            [action] = random.choices(list(ACTIONS), list(ACTIONS.values()))
            action(server, random)
            if random.random() < 0.5:
                await anyio.sleep(random.choice([0, 0.001, 0.01]))
        await world.until_in_step()
        assert adds_up(world)
