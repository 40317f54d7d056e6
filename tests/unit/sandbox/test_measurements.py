"""The metrics API of the sandbox and its Prometheus endpoint, as clients read them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

import aiohttp
import pytest

from reactive_descheduler.sandbox.cluster import SandboxCluster, running_sandbox
from reactive_descheduler.sandbox.documents import name_of
from reactive_descheduler.sandbox.prometheus import NODE_CPU, PrometheusServer, serve_prometheus
from tests.builders import Manifest, make_node, make_pod

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

GROUP = "/apis/metrics.k8s.io/v1beta1"


@asynccontextmanager
async def sandbox() -> AsyncIterator[tuple[SandboxCluster, aiohttp.ClientSession]]:
    """Two nodes of 4 cpus; `a` asks for one on the first, `b` is not started yet."""
    requests = {"cpu": "1", "memory": "1Gi"}
    async with running_sandbox(controllers=False, tls=False) as cluster:
        cluster.load(
            [
                make_node("node-1"),
                make_node("node-2"),
                make_pod("a", node="node-1", requests=requests, labels={"app": "a"}),
                make_pod("b", node="node-2", requests=requests, phase="Pending"),
            ]
        )
        async with aiohttp.ClientSession(cluster.url) as session:
            yield cluster, session


async def read(session: aiohttp.ClientSession, path: str) -> Manifest:
    async with session.get(f"{GROUP}{path}") as answer:
        return cast(Manifest, await answer.json())


async def usages(session: aiohttp.ClientSession, path: str = "/nodes") -> dict[str, object]:
    items = cast(list[Manifest], (await read(session, path))["items"])
    return {name_of(item): item.get("usage") or item["containers"] for item in items}


async def test_usage_is_what_running_pods_ask_for() -> None:
    async with sandbox() as (cluster, session):
        cluster.measurements.share = 0.5
        nodes, pods = await usages(session), await usages(session, "/pods")
    used = {"cpu": "500000000n", "memory": "524288Ki"}
    assert nodes == {"node-1": used, "node-2": {"cpu": "0n", "memory": "0Ki"}}
    assert pods == {"a": [{"name": "c0", "usage": used}]}


async def test_usage_is_set_by_hand_or_left_out() -> None:
    async with sandbox() as (cluster, session):
        cluster.measurements.nodes |= {"node-1": {"cpu": "3500m", "memory": "2Gi"}, "node-2": None}
        cluster.measurements.pods["default", "a"] = {"web": {"cpu": "7m"}}
        nodes, pods = await usages(session), await usages(session, "/pods")
    assert nodes == {"node-1": {"cpu": "3500000000n", "memory": "2097152Ki"}}
    assert pods == {"a": [{"name": "web", "usage": {"cpu": "7m"}}]}


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/pods?labelSelector=app%3Da", ["a"]),
        ("/pods?labelSelector=app%3Db", []),
        ("/namespaces/default/pods", ["a"]),
        ("/namespaces/other/pods", []),
        ("/nodes?fieldSelector=metadata.name%3Dnode-2", ["node-2"]),
    ],
)
async def test_lists_can_be_narrowed(path: str, names: list[str]) -> None:
    async with sandbox() as (_, session):
        assert list(await usages(session, path)) == names


async def test_one_is_read_by_name_with_its_time() -> None:
    async with sandbox() as (cluster, session):
        cluster.measurements.sampled_at = 1_700_000_000
        found = await read(session, "/nodes/node-1")
        missing = await read(session, "/nodes/nobody")
    assert (found["kind"], found["timestamp"]) == ("NodeMetrics", "2023-11-14T22:13:20Z")
    assert missing["message"] == 'nodes.metrics.k8s.io "nobody" not found'


async def test_nothing_is_written_or_watched() -> None:
    async with sandbox() as (_, session):
        async with session.post(f"{GROUP}/nodes", json={}) as written:
            pass
        async with session.get(f"{GROUP}/nodes", params={"watch": "1"}) as watched:
            pass
    assert (written.status, watched.status) == (405, 405)


async def test_without_a_metrics_server_the_group_is_not_there() -> None:
    async with sandbox() as (cluster, session):
        cluster.measurements.served = False
        async with session.get("/apis") as groups:
            served = [group["name"] for group in (await groups.json())["groups"]]
        async with session.get(f"{GROUP}/nodes") as answer:
            body = await answer.text()
    assert "metrics.k8s.io" not in served
    assert (answer.status, body) == (404, "404 page not found\n")


@asynccontextmanager
async def prometheus(
    token: str | None = None,
) -> AsyncIterator[tuple[PrometheusServer, aiohttp.ClientSession]]:
    async with (
        sandbox() as (cluster, _),
        serve_prometheus(cluster.measurements, token=token) as server,
        aiohttp.ClientSession(server.url) as session,
    ):
        yield server, session


async def test_exposition_names_each_node_as_instance() -> None:
    async with prometheus() as (_, session), session.get("/metrics") as answer:
        lines = (await answer.text()).splitlines()
    assert f'{NODE_CPU}{{instance="node-1"}} 0.25' in lines
    assert f'{NODE_CPU}{{instance="node-2"}} 0.0' in lines


async def test_query_is_answered_with_a_vector() -> None:
    async with prometheus() as (server, session):
        server.values["busy"] = {"node-1": 0.9}
        async with session.post("/api/v1/query", data={"query": "busy"}) as answer:
            by_hand = (await answer.json())["data"]["result"]
        async with session.get("/api/v1/query", params={"query": NODE_CPU}) as answer:
            measured = (await answer.json())["data"]["result"]
        async with session.get("/api/v1/query", params={"query": "up"}) as answer:
            unknown = await answer.json()
    assert [(each["metric"], each["value"][1]) for each in by_hand] == [
        ({"instance": "node-1"}, "0.9")
    ]
    assert [each["value"][1] for each in measured] == ["0.25", "0.0"]
    assert (answer.status, unknown["errorType"]) == (400, "bad_data")


async def test_query_needs_the_token_where_there_is_one() -> None:
    async with prometheus("secret") as (_, session):
        statuses = []
        for token in ("other", "secret"):
            headers = {"Authorization": f"Bearer {token}"}
            params = {"query": NODE_CPU}
            async with session.get("/api/v1/query", params=params, headers=headers) as answer:
                statuses.append(answer.status)
    assert statuses == [401, 200]
