"""A reflector with its informer and store, reading from a server over HTTP with small times."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from random import Random

import anyio

from reactive_descheduler.api.changes import Change
from reactive_descheduler.api.decoding import Decoder
from reactive_descheduler.cache.informer import Informer
from reactive_descheduler.cache.reflector import Reflector, ReflectorStatistics, Timing
from reactive_descheduler.cache.store import Store
from reactive_descheduler.client.credentials import Target
from reactive_descheduler.client.kube import KubeConnection, connect
from reactive_descheduler.client.listwatch import HttpListWatch
from reactive_descheduler.kit.clock import SystemClock
from tests.wire.server import ApiServer

FAST = Timing(
    silence=(8.0, 9.0),
    list_silence=8.0,
    short_watch=0.05,
    retry_initial=0.02,
    retry_ceiling=0.1,
)


class Tokens:
    """A source of credentials whose token a test may rotate."""

    def __init__(self, url: str, token: str = "first") -> None:
        self.url = url
        self.token = token
        self.loads = 0

    async def load(self) -> Target:
        self.loads += 1
        return Target(self.url, None)

    async def authorization(self) -> str | None:
        return f"Bearer {self.token}"


@asynccontextmanager
async def connected(
    server: ApiServer, tokens: Tokens | None = None
) -> AsyncIterator[KubeConnection]:
    async with await connect(source=tokens or Tokens(server.url)) as connection:
        yield connection


@dataclass
class World:
    server: ApiServer
    store: Store
    changes: list[Change]
    states: list[ReflectorStatistics]
    reflector: Reflector
    kind: str

    def in_step(self) -> bool:
        """The store holds what the server holds, in the same versions."""
        held = {
            (o.namespace, o.name): (o.uid, o.resource_version) for o in self.store.all(self.kind)
        }
        there = {
            name: (each["metadata"]["uid"], each["metadata"]["resourceVersion"])
            for name, each in self.server.objects.get(self.kind, {}).items()
        }
        return held == there

    async def until_in_step(self) -> None:
        await eventually(lambda: self.reflector.synced and self.in_step())

    async def until_watching(self) -> None:
        """Synced, and a well-behaved watch is open, at both ends."""
        await eventually(
            lambda: (
                self.reflector.synced
                and bool(self.server.open.get(self.kind))
                and not self.statistics.error
            )
        )

    @property
    def statistics(self) -> ReflectorStatistics:
        return self.reflector.statistics()


@asynccontextmanager
async def following(
    server: ApiServer,
    kind: str = "Pod",
    *,
    connection: KubeConnection | None = None,
    timing: Timing = FAST,
    streaming: bool = False,
    page_size: int = 250,
    stream_silence: float = 10.0,
    on_change: Callable[[Change], None] = lambda _: None,
) -> AsyncIterator[World]:
    """Follow one kind until the block ends, over a connection of its own if none is given."""
    store, clock = Store(), SystemClock()
    changes: list[Change] = []
    states: list[ReflectorStatistics] = []

    def tell(change: Change) -> None:
        changes.append(change)
        on_change(change)

    async with AsyncExitStack() as stack:
        if connection is None:
            connection = await stack.enter_async_context(connected(server))
        source = HttpListWatch(
            connection,
            Decoder(),
            kind,
            clock=clock,
            streaming=streaming,
            page_size=page_size,
            stream_silence=stream_silence,
        )
        reflector = Reflector(
            source,
            Informer(store, tell),
            clock=clock,
            random=Random(7),
            timing=timing,
            on_state=states.append,
        )
        tasks = await stack.enter_async_context(anyio.create_task_group())
        tasks.start_soon(reflector.run)
        yield World(server, store, changes, states, reflector, kind)
        tasks.cancel_scope.cancel()


async def eventually(condition: Callable[[], bool], *, within: float = 8.0) -> None:
    """Wait for a condition that sockets bring about."""
    with anyio.fail_after(within):
        while not condition():  # noqa: ASYNC110 - nobody could tell: it is about both ends
            await anyio.sleep(0.005)
