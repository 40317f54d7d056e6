"""Named fault points, as a client from outside meets them."""

from __future__ import annotations

import time
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Literal

import aiohttp
import anyio
import pytest

from reactive_descheduler.sandbox.client import ApiClient, ApiRefused, connect
from reactive_descheduler.sandbox.cluster import SandboxCluster, running_sandbox
from reactive_descheduler.sandbox.documents import name_of
from reactive_descheduler.sandbox.faults import Fault

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from reactive_descheduler.sandbox.documents import JsonObject

    Events = AsyncGenerator[tuple[str, JsonObject]]


@asynccontextmanager
async def sandbox() -> AsyncIterator[tuple[SandboxCluster, ApiClient]]:
    """A bare API server with one node, and a client that faults strike."""
    async with (
        running_sandbox(nodes=1, controllers=False, tls=False) as cluster,
        connect(cluster.url) as client,
    ):
        yield cluster, client


async def relabel(cluster: SandboxCluster, value: str) -> None:
    await cluster.client.patch("nodes", "node-1", {"metadata": {"labels": {"a": value}}})


@asynccontextmanager
async def watching(cluster: SandboxCluster, client: ApiClient) -> AsyncIterator[Events]:
    """A watch that is open and has given its first event."""
    _, version = await client.list("nodes")
    async with aclosing(client.watch("nodes", version)) as events:
        await relabel(cluster, "first")
        await anext(events)
        yield events


async def test_a_status_is_answered_as_often_as_it_should() -> None:
    async with sandbox() as (cluster, client):
        fault = cluster.faults.add(
            Fault(verb="list", resource="nodes", status=429, retry_after=3, times=1)
        )
        with pytest.raises(ApiRefused) as refused:
            await client.list("nodes")
        nodes, _ = await client.list("nodes")

    assert (refused.value.code, refused.value.retry_after) == (429, "3")
    assert refused.value.status["reason"] == "TooManyRequests"
    assert fault.hits == 1
    assert len(nodes) == 1


async def test_latency_passes_before_the_answer() -> None:
    async with sandbox() as (cluster, client):
        cluster.faults.add(Fault(verb="get", latency=5))
        began = anyio.current_time()
        await client.get("nodes", "node-1")

        assert anyio.current_time() - began >= 5


@pytest.mark.parametrize(
    ("drop", "done"),
    [pytest.param("before", False, id="before"), pytest.param("after", True, id="after")],
)
async def test_a_dropped_connection_leaves_the_outcome_unknown(
    drop: Literal["before", "after"], done: bool
) -> None:
    async with sandbox() as (cluster, client):
        pod: JsonObject = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
        await cluster.client.create(pod | {"spec": {"containers": [{"name": "a", "image": "i"}]}})
        cluster.faults.add(Fault(verb="create", resource="pods/eviction", drop=drop))
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await client.evict("a")
        pods, _ = await cluster.client.list("pods")

    assert (pods == []) is done


async def test_the_clusters_own_clients_are_spared() -> None:
    async with sandbox() as (cluster, _):
        cluster.faults.add(Fault(status=500))

        assert await cluster.client.get("nodes", "node-1")


async def test_watches_are_cut_without_an_end() -> None:
    async with sandbox() as (cluster, client), watching(cluster, client) as events:
        assert cluster.faults.open_watches == ["nodes"]
        assert cluster.faults.cut_watches("pods") == 0
        assert cluster.faults.cut_watches("nodes") == 1

        with pytest.raises(aiohttp.ClientError):
            await anext(events)


async def test_a_silent_watch_keeps_its_connection_and_catches_up() -> None:
    async with sandbox() as (cluster, client), watching(cluster, client) as events:
        cluster.faults.silence_watches()
        await relabel(cluster, "second")
        with anyio.move_on_after(60) as waited:
            await anext(events)
        assert waited.cancelled_caught


async def test_a_watch_that_speaks_again_gives_what_it_held_back() -> None:
    async with sandbox() as (cluster, client), watching(cluster, client) as events:
        cluster.faults.silence_watches("nodes")
        await relabel(cluster, "second")
        cluster.faults.unsilence_watches("nodes")
        kind, node = await anext(events)

    assert (kind, name_of(node)) == ("MODIFIED", "node-1")


async def test_compaction_fails_watches_that_start_from_before_it() -> None:
    async with sandbox() as (cluster, client):
        _, version = await client.list("nodes")
        cluster.compact()
        with pytest.raises(ApiRefused) as refused:
            await anext(client.watch("nodes", version))

    assert (refused.value.code, refused.value.by_http) == (410, False)


async def test_a_bounded_history_forgets_by_itself() -> None:
    async with running_sandbox(nodes=1, controllers=False, tls=False, history=2) as cluster:
        _, version = await cluster.client.list("nodes")
        for value in ("1", "2", "3"):
            await relabel(cluster, value)
        with pytest.raises(ApiRefused) as refused:
            await anext(cluster.client.watch("nodes", version))

    assert refused.value.code == 410


async def test_bookmarks_come_at_their_interval_with_the_current_version() -> None:
    async with running_sandbox(nodes=1, controllers=False, tls=False, bookmark_every=30) as cluster:
        nodes, version = await cluster.client.list("nodes")
        pod: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
        await cluster.client.create(pod)
        began = anyio.current_time()
        kind, mark = await anext(cluster.client.watch("nodes", version, allowWatchBookmarks="true"))

    assert kind == "BOOKMARK"
    assert mark["metadata"] == {"resourceVersion": str(int(version) + 1)}
    assert 30 <= anyio.current_time() - began < 31
    assert len(nodes) == 1


async def test_loaded_objects_are_listed_and_watched_like_others() -> None:
    async with running_sandbox(controllers=False, tls=False) as cluster:
        nodes: list[JsonObject] = [
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}"}}
            for number in range(3)
        ]
        cluster.load(nodes)
        listed, version = await cluster.client.list("nodes")
        await cluster.client.delete("nodes", "n1")
        kind, gone = await anext(cluster.client.watch("nodes", version))

    assert [name_of(node) for node in listed] == ["n0", "n1", "n2"]
    assert (kind, name_of(gone)) == ("DELETED", "n1")


@pytest.mark.real_time
async def test_a_change_reaches_a_watch_within_milliseconds() -> None:
    async with sandbox() as (cluster, client), watching(cluster, client) as events:
        best = 1.0
        for number in range(20):
            began = time.perf_counter()
            await relabel(cluster, str(number))
            await anext(events)
            best = min(best, time.perf_counter() - began)

    assert best < 0.01


async def test_a_watch_answers_before_its_first_event() -> None:
    async with (
        sandbox() as (cluster, _),
        aiohttp.ClientSession() as session,
        session.get(f"{cluster.url}/api/v1/nodes?watch=true&resourceVersion=6") as response,
    ):
        assert response.status == 200
