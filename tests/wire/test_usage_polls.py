"""Measured usage over real HTTP: what is taken in, and what becomes of a source that fails."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import anyio
import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer
from anyio.to_thread import run_sync
from structlog.typing import EventDict

from reactive_descheduler.api.errors import AnswerError, Unreachable
from reactive_descheduler.cache.usage import METRICS_SERVER, PROMETHEUS, Usage
from reactive_descheduler.client.kube import KubeConnection, connect
from reactive_descheduler.client.prometheus import (
    TOKEN_KEY,
    PrometheusClient,
    Token,
    own_token,
    token_in_secret,
)
from reactive_descheduler.client.usage import MetricsServer, Poller, PrometheusQuery, Question
from reactive_descheduler.kit.clock import SystemClock
from reactive_descheduler.sandbox.apiserver.certificates import make_certificates
from reactive_descheduler.sandbox.cluster import SandboxCluster, running_sandbox
from reactive_descheduler.sandbox.faults import Fault
from reactive_descheduler.sandbox.prometheus import PrometheusServer, serve_prometheus
from tests.builders import make_node, make_pod, pod_view
from tests.wire.world import Tokens, eventually

pytestmark = pytest.mark.real_time

NANOS = 10**9
SAMPLED = 1_700_000_000
CPU = "busy"


@dataclass
class World:
    cluster: SandboxCluster
    prometheus: PrometheusServer
    connection: KubeConnection
    usage: Usage = field(default_factory=lambda: Usage([METRICS_SERVER, PROMETHEUS], samples=3))
    told: list[str] = field(default_factory=list)

    def poller(self, question: Question, *, interval: float = 15.0) -> Poller:
        return Poller(
            question,
            self.usage,
            interval=interval,
            clock=SystemClock(),
            random=Random(1),
            on_sample=self.told.append,
        )

    def metrics_server(self, *, interval: float = 15.0) -> Poller:
        return self.poller(MetricsServer(self.connection, SystemClock()), interval=interval)

    def query(self, query: str = CPU, *, token: Token | None = None, url: str = "") -> Poller:
        client = PrometheusClient(url or self.prometheus.url, token or own_token())
        return self.poller(PrometheusQuery(client, query, SystemClock()))

    def values(self, query: str = CPU) -> dict[str, float]:
        vectors = self.usage.vectors(query)
        return dict(vectors[-1].values) if vectors else {}


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with running_sandbox(controllers=False, tls=False) as cluster:
        cluster.load(
            [
                make_node("node-1"),
                make_node("node-2"),
                make_pod("a", node="node-1", requests={"cpu": "1500m", "memory": "1Gi"}),
            ]
        )
        cluster.measurements.sampled_at = SAMPLED
        async with (
            connection_to(cluster) as connection,
            serve_prometheus(cluster.measurements) as prometheus,
        ):
            prometheus.values[CPU] = {"node-1": 0.9, "node-2": 0.25}
            yield World(cluster, prometheus, connection)


@asynccontextmanager
async def connection_to(cluster: SandboxCluster) -> AsyncIterator[KubeConnection]:
    async with await connect(source=Tokens(cluster.url)) as connection:
        yield connection


async def test_lists_of_nodes_and_pods_are_taken_in(world: World) -> None:
    poller = world.metrics_server()
    assert await poller.poll() == 15.0
    [sample] = world.usage.node("node-1")
    assert dict(sample.usage) == {"cpu": 15 * NANOS // 10, "memory": 2**30 * NANOS}
    assert sample.sampled == datetime.fromtimestamp(SAMPLED, UTC)
    assert sample.window == timedelta(seconds=15)
    pod = world.usage.pod(pod_view(make_pod("a", node="node-1")))
    assert pod is not None
    assert pod.usage["cpu"] == 15 * NANOS // 10
    assert world.told == [METRICS_SERVER]
    statistics = poller.statistics()
    assert (statistics.samples, statistics.oldest, statistics.error) == (3, sample.sampled, "")


async def test_quantities_may_have_any_suffix(world: World) -> None:
    world.cluster.measurements.nodes = {
        "node-1": {"cpu": "250m", "memory": "3Mi"},
        "node-2": {"cpu": "17u", "memory": "1e3"},
    }
    await world.metrics_server().poll()
    usages = {name: dict(world.usage.node(name)[-1].usage) for name in ("node-1", "node-2")}
    assert usages["node-1"] == {"cpu": NANOS // 4, "memory": 3 * 2**20 * NANOS}
    assert usages["node-2"] == {"cpu": 17_000, "memory": 1024 * NANOS}


DENIED = "nodes.metrics.k8s.io is forbidden: cannot list resource"


@pytest.mark.parametrize(
    ("fault", "said", "hint", "longest"),
    [
        pytest.param(
            Fault(status=404, message="404 page not found"),
            "404",
            "is a metrics-server installed?",
            True,
            id="no metrics-server",
        ),
        pytest.param(
            Fault(status=403, message=DENIED), DENIED, "verb list on nodes.metrics", True, id="RBAC"
        ),
        pytest.param(
            Fault(status=503, message="service unavailable"),
            "service unavailable",
            "is the metrics-server running?",
            False,
            id="metrics-server is down",
        ),
        pytest.param(Fault(drop="before"), "", "", False, id="connection lost"),
    ],
)
async def test_source_that_fails_keeps_the_sample_and_says_why(
    world: World, logs: list[EventDict], fault: Fault, said: str, hint: str, longest: bool
) -> None:
    poller = world.metrics_server()
    await poller.poll()
    fault.resource = "nodes.metrics.k8s.io"
    world.cluster.faults.add(fault)
    waits = [await poller.poll() for _ in range(2)]
    statistics = poller.statistics()
    assert len(world.usage.node("node-1")) == 1
    assert (statistics.errors, statistics.oldest) == (2, datetime.fromtimestamp(SAMPLED, UTC))
    assert said in statistics.error
    assert hint in statistics.hint
    assert all(wait >= 15 for wait in waits) is longest
    assert len([entry for entry in logs if entry["log_level"] == "warning"]) == 1
    world.cluster.faults.clear()
    await poller.poll()
    assert poller.statistics().error == ""
    assert any(entry["event"] == "Usage is measured again" for entry in logs)


async def test_a_cluster_without_a_metrics_server_is_told_apart(world: World) -> None:
    world.cluster.measurements.served = False
    poller = world.metrics_server()
    await poller.poll()
    assert world.told == []
    assert "is a metrics-server installed?" in poller.statistics().hint


async def test_pods_that_cannot_be_listed_leave_nodes_as_they_were(world: World) -> None:
    world.cluster.faults.add(Fault(resource="pods.metrics.k8s.io", status=500))
    await world.metrics_server().poll()
    assert world.usage.node("node-1") == ()


async def test_retry_after_is_kept(world: World) -> None:
    world.cluster.faults.add(Fault(resource="nodes.metrics.k8s.io", status=429, retry_after=40))
    assert await world.metrics_server().poll() >= 40


async def test_polls_go_on_after_faults(world: World) -> None:
    world.cluster.faults.add(Fault(resource="nodes.metrics.k8s.io", status=500, times=1))
    poller = world.metrics_server(interval=0.05)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(poller.run)
        await eventually(lambda: len(world.told) >= 3)
        tasks.cancel_scope.cancel()
    assert poller.statistics().errors == 1


ITEM = {
    "metadata": {"name": "n"},
    "timestamp": "2026-01-01T00:00:00Z",
    "window": "10.5s",
    "usage": {"cpu": "1"},
}


@pytest.mark.parametrize(
    ("item", "readable"),
    [
        pytest.param(ITEM, True, id="well formed"),
        pytest.param(ITEM | {"more": [1]}, True, id="unknown fields"),
        pytest.param(ITEM | {"usage": {"cpu": 2}}, True, id="a bare number"),
        pytest.param(ITEM | {"usage": {}}, True, id="nothing measured"),
        pytest.param(ITEM | {"usage": {"cpu": "much"}}, False, id="no quantity"),
        pytest.param(ITEM | {"usage": None}, False, id="no usage"),
        pytest.param(ITEM | {"timestamp": None}, False, id="no time"),
        pytest.param(ITEM | {"timestamp": "2026-01-01T00:00:00"}, False, id="no time zone"),
        pytest.param(ITEM | {"window": "long"}, False, id="no duration"),
        pytest.param(ITEM | {"metadata": {}}, False, id="no name"),
        pytest.param(
            ITEM | {"usage": {"cpu": "-100m", "memory": "1Gi"}}, False, id="less than nothing"
        ),
        pytest.param("text", False, id="no object"),
    ],
)
async def test_what_cannot_be_read_is_not_measured(item: object, readable: bool) -> None:
    good = ITEM | {"metadata": {"name": "good"}}
    usage = Usage([METRICS_SERVER])
    nodes = json.dumps({"kind": "NodeMetricsList", "items": [item, good]}).encode()
    async with answering(nodes) as connection:
        measured = await MetricsServer(connection, SystemClock()).ask(usage)
    assert bool(usage.node("n")) is readable
    assert usage.node("good")
    assert measured.unreadable == (not readable)


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"<html>Sign in</html>", id="a page"),
        pytest.param(b'{"kind":"NodeMetricsList","items":[{"meta', id="half of it"),
        pytest.param(b'{"kind":"Status","status":"Failure"}', id="a Status"),
        pytest.param(b'{"kind":"NodeMetricsList","items":7}', id="no list"),
        pytest.param(b"[]", id="another form"),
    ],
)
async def test_junk_for_a_list_is_refused(nodes: bytes) -> None:
    usage = Usage([METRICS_SERVER])
    async with answering(nodes) as connection:
        with pytest.raises(AnswerError, match="the metrics API answers with"):
            await MetricsServer(connection, SystemClock()).ask(usage)
    assert usage.node("n") == ()


PODS: dict[str, tuple[list[dict[str, str]], dict[str, int]]] = {
    "none": ([], {}),
    "one": ([{"cpu": "1", "memory": "1"}], {"cpu": NANOS, "memory": NANOS}),
    "two": ([{"cpu": "1"}, {"cpu": "2"}], {"cpu": 3 * NANOS}),
    "lacking": ([{"cpu": "1", "memory": "1"}, {"cpu": "2"}], {"cpu": 3 * NANOS}),
}


async def test_usage_of_a_pod_is_what_all_its_containers_report() -> None:
    items = [
        {
            "metadata": {"name": name, "namespace": "x"},
            "timestamp": ITEM["timestamp"],
            "containers": [{"usage": usage} for usage in containers],
        }
        for name, (containers, _) in PODS.items()
    ]
    usage = Usage([METRICS_SERVER])
    nodes = b'{"kind":"NodeMetricsList","items":[]}'
    pods = json.dumps({"kind": "PodMetricsList", "items": items}).encode()
    async with answering(nodes, pods) as connection:
        await MetricsServer(connection, SystemClock()).ask(usage)
    for name, (_, expected) in PODS.items():
        sample = usage.pod(pod_view(make_pod(name, namespace="x")))
        assert sample is not None
        assert sample.usage == expected


@asynccontextmanager
async def answering(
    nodes: bytes, pods: bytes = b'{"kind":"PodMetricsList","items":[]}'
) -> AsyncIterator[KubeConnection]:
    """A connection to a metrics API that answers with these bytes."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=nodes if request.path.endswith("nodes") else pods)

    server = RawTestServer(handle)
    async with server:
        url = str(server.make_url("")).rstrip("/")
        async with await connect(source=Tokens(url)) as connection:
            yield connection


async def test_a_query_is_taken_in_by_instance(world: World) -> None:
    poller = world.query()
    assert await poller.poll() == 15.0
    assert world.values() == {"node-1": 0.9, "node-2": 0.25}
    assert world.told == [PROMETHEUS]
    assert world.prometheus.asked == [CPU]


async def test_a_post_that_is_not_taken_becomes_a_get(world: World) -> None:
    world.prometheus.methods = frozenset({"GET"})
    await world.query().poll()
    assert world.values() == {"node-1": 0.9, "node-2": 0.25}


def vector(*samples: object) -> bytes:
    data = {"resultType": "vector", "result": samples}
    return json.dumps({"status": "success", "data": data}).encode()


INSTANCE = {"metric": {"instance": "a"}, "value": [1, "0.5"]}


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        pytest.param(vector({"metric": {}, "value": [1, "1"]}), "label `instance`", id="no label"),
        pytest.param(vector(INSTANCE | {"value": [1, "much"]}), "no vector of", id="no number"),
        pytest.param(vector(INSTANCE | {"value": None}), "no vector of numbers", id="no value"),
        pytest.param(
            b'{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}',
            "a scalar, not a vector",
            id="a scalar",
        ),
        pytest.param(b'{"status":"success"}', "gives a nothing", id="no data"),
    ],
)
async def test_a_query_that_is_to_blame_voids_what_was_known(
    world: World, raw: bytes, why: str
) -> None:
    poller = world.query()
    await poller.poll()
    world.prometheus.raw = raw
    assert await poller.poll() == 15.0
    assert why in world.usage.vectors(CPU)[-1].error
    assert world.values() == {}
    assert why in poller.statistics().error
    assert world.told == [PROMETHEUS, PROMETHEUS]


@pytest.mark.parametrize(
    ("raw", "status", "why"),
    [
        pytest.param(b"<html>Sign in</html>", 200, "none of Prometheus", id="a page"),
        pytest.param(b"", 200, "none of Prometheus", id="nothing"),
        pytest.param(b'{"status":"error","error":"parse error"}', 200, "parse error", id="error"),
        pytest.param(None, 422, "out of memory", id="refused"),
        pytest.param(None, 401, "out of memory", id="denied"),
        pytest.param(None, 503, "out of memory", id="down"),
    ],
)
async def test_prometheus_that_fails_keeps_what_was_known(
    world: World, raw: bytes | None, status: int, why: str
) -> None:
    poller = world.query()
    await poller.poll()
    world.prometheus.raw = raw
    if status != 200:
        world.prometheus.faults.add(Fault(status=status, message="out of memory"))
    await poller.poll()
    assert world.values() == {"node-1": 0.9, "node-2": 0.25}
    assert world.told == [PROMETHEUS]
    statistics = poller.statistics()
    assert why in statistics.error
    assert ("authToken" in statistics.hint) is (status == 401)


async def test_nobody_there_is_said_without_what_is_secret(world: World) -> None:
    poller = world.query(url="http://user:password@127.0.0.1:1/prefix")
    await poller.poll()
    statistics = poller.statistics()
    assert statistics.error.startswith("http://127.0.0.1:1/prefix: ")
    assert "password" not in statistics.error
    assert "is the URL in metricsProviders right" in statistics.hint


@asynccontextmanager
async def behind_tls(account: Path) -> AsyncIterator[tuple[str, ssl.SSLContext]]:
    """A Prometheus with a certificate of an authority that the account's folder holds."""
    certificates = await run_sync(make_certificates, "127.0.0.1")
    await anyio.Path(account / "ca.crt").write_bytes(certificates.ca_pem)

    async def handle(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=vector(INSTANCE))

    server = RawTestServer(handle, host="127.0.0.1", scheme="https")
    await server.start_server(ssl=certificates.server_context)
    try:
        yield str(server.make_url("")).rstrip("/"), certificates.client_context
    finally:
        await server.close()


@pytest.mark.parametrize("known", [True, False], ids=["known authority", "unknown authority"])
async def test_the_clusters_authority_is_trusted(tmp_path: Path, known: bool) -> None:
    async with behind_tls(tmp_path) as (url, _):
        account = str(tmp_path if known else tmp_path / "elsewhere")
        client = PrometheusClient(url, own_token(), account=account)
        if known:
            assert await client.query(CPU) == [({"instance": "a"}, 0.5)]
        else:
            with pytest.raises(Unreachable, match="certificate"):
                await client.query(CPU)


async def test_a_proxy_of_the_environment_is_used_but_on_loopback(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "prometheus.local")
    await world.query().poll()
    assert world.values()
    beyond = world.query(url="http://prometheus.example")
    await beyond.poll()
    assert "127.0.0.1:1" in beyond.statistics().error


@pytest.mark.parametrize(
    "url", ["prometheus:9090", "prometheus", "/", "http:///x", "ftp://host", "http://" + "a" * 99]
)
async def test_a_url_that_nobody_can_ask_is_said(world: World, url: str) -> None:
    poller = world.query(url=url)
    await poller.poll()
    assert poller.statistics().error.startswith(url)
    assert "is the URL in metricsProviders right" in poller.statistics().hint


def secret(token: bytes, key: str = TOKEN_KEY) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "prometheus", "namespace": "default"},
        "data": {key: base64.b64encode(token).decode()},
    }


async def test_a_rotated_token_is_used_with_the_next_query(world: World) -> None:
    client = world.cluster.client
    poller = world.query(token=token_in_secret(world.connection, "default", "prometheus"))
    await client.create(secret(b"first\n"))
    answered = []
    for token in ("first", "second"):
        world.prometheus.token = token
        await poller.poll()
        answered.append(not poller.statistics().error)
    await client.delete("secrets", "prometheus", namespace="default")
    await client.create(secret(b"second"))
    await poller.poll()
    answered.append(not poller.statistics().error)
    assert answered == [True, False, True]


@pytest.mark.parametrize(
    ("stored", "why"),
    [
        pytest.param(None, 'secrets "prometheus" not found', id="no Secret"),
        pytest.param(secret(b"t", "token"), f"has no key {TOKEN_KEY}", id="another key"),
        pytest.param(secret(b""), "holds no token", id="empty"),
        pytest.param(secret(b"a\nb"), "holds no token", id="two lines"),
        pytest.param(secret(b"\xff"), "no text in base64", id="no text"),
    ],
)
async def test_a_secret_without_a_token_is_named(
    world: World, stored: dict[str, object] | None, why: str
) -> None:
    if stored is not None:
        await world.cluster.client.create(stored)
    poller = world.query(token=token_in_secret(world.connection, "default", "prometheus"))
    await poller.poll()
    assert why in poller.statistics().error
    assert world.prometheus.asked == []


@pytest.mark.parametrize("in_cluster", [True, False])
async def test_own_token_is_read_anew_in_a_cluster_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_cluster: bool
) -> None:
    if in_cluster:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    else:
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    token = own_token(str(tmp_path))
    read = [await token()]
    for text in ("first\n", "second\n"):
        await anyio.Path(tmp_path / "token").write_text(text)
        read.append(await token())
    assert read == ([None, "first", "second"] if in_cluster else [None] * 3)
