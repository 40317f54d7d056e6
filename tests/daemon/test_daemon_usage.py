"""Measured usage in the whole daemon: who is evicted by it, and what keeps it from deciding."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import cast

import pytest

from reactive_descheduler.app.daemon import Daemon
from reactive_descheduler.app.settings import RunSettings
from reactive_descheduler.client.kube import connect
from reactive_descheduler.config.load import load_policy
from reactive_descheduler.kit.clock import LoopClock
from reactive_descheduler.sandbox.cluster import running_sandbox
from reactive_descheduler.sandbox.faults import Fault
from reactive_descheduler.sandbox.prometheus import PrometheusServer, serve_prometheus
from reactive_descheduler.strategies import PLUGINS
from tests.builders import Manifest, make_namespace, make_node, make_pod, owner
from tests.daemon.world import AT_ONCE, START, TAINTS, Here, World, eventually, world

BUSY = {"node-1": {"cpu": "3800m", "memory": "1Gi"}, "node-2": {"cpu": "100m", "memory": "1Gi"}}


def policy(
    *,
    provider: str = "{source: KubernetesMetrics}",
    asked: str = "{source: KubernetesMetrics}",
    resource: str = "cpu",
    usage: str = "{}",
) -> str:
    return f"""
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
metricsProviders: [{provider}]
profiles:
- name: default
  pluginConfig:
  - name: LowNodeUtilization
    args:
      thresholds: {{{resource}: 20}}
      targetThresholds: {{{resource}: 80}}
      metricsUtilization: {asked}
  plugins: {{balance: {{enabled: [LowNodeUtilization]}}}}
reactive: {{settle: {{default: 0s}}, debounce: {{quiet: 0s}}, resync: 10h, usage: {usage}}}
"""


def cluster(*, requests: Mapping[str, str] | None = None) -> list[Manifest]:
    """Two nodes of 4 cpus; `a` and `b` on the first, which ask for next to nothing."""
    small = dict(requests or {"cpu": "10m", "memory": "1Mi"})
    return [
        make_namespace(),
        make_node("node-1"),
        make_node("node-2"),
        *(
            make_pod(name, node="node-1", requests=small, owners=[owner(name)])
            for name in ("a", "b")
        ),
    ]


def pods(each: str = "700m") -> dict[tuple[str, str], Mapping[str, Mapping[str, str]]]:
    return {("default", name): {"c": {"cpu": each, "memory": "1Mi"}} for name in ("a", "b")}


@asynccontextmanager
async def measured(
    text: str | None = None, *, served: bool = True, faults: Iterable[Fault] = ()
) -> AsyncIterator[World]:
    """The world with node-1 over its target and node-2 idle, whatever is requested."""
    async with world(text or policy(), cluster(), faults=faults) as found:
        found.cluster.measurements.nodes.update(BUSY)
        found.cluster.measurements.pods.update(pods())
        found.cluster.measurements.served = served
        yield found


def told(found: World) -> Mapping[str, object]:
    """What the status says of the one question that is asked."""
    [usage] = cast(list[Mapping[str, object]], found.status()["usage"])
    return usage


def why_not(found: World) -> str:
    """Why the strategy evicts nothing."""
    rejected = cast(list[Mapping[str, object]], found.status()["rejected"])
    return " ".join(str(each["why"]) for each in rejected if each["pod"] is None)


async def test_a_node_over_its_target_by_measurement_loses_what_it_has_to() -> None:
    async with measured() as found:
        await found.live()
        await found.rest()
        assert len(await found.leaving()) == 1
        assert told(found)["error"] == ""


async def test_nothing_goes_where_requests_alone_would_be_over() -> None:
    async with world(policy(), cluster(requests={"cpu": "1800m"})) as found:
        idle = {"cpu": "100m", "memory": "1Gi"}
        found.cluster.measurements.nodes.update({"node-1": idle, "node-2": idle})
        await found.live()
        await found.rest(60)
        assert await found.leaving() == set()


async def test_usage_that_rises_is_seen_with_the_next_sample() -> None:
    async with measured() as found:
        found.cluster.measurements.nodes["node-1"] = BUSY["node-2"]
        await found.live()
        await found.rest(40)
        assert await found.leaving() == set()
        found.cluster.measurements.nodes.update(BUSY)
        await found.rest(16)
        assert len(await found.leaving()) == 1


async def test_a_stale_sample_evicts_nobody_and_says_so() -> None:
    async with measured() as found:
        found.cluster.measurements.sampled_at = START.timestamp() - 121
        await found.live()
        await found.rest(30)
        assert await found.leaving() == set()
        assert "was measured" in why_not(found)
        assert cast(float, told(found)["age"]) > 121
        found.daemon.metrics.refresh()
        assert found.metric("usage_age", source="KubernetesMetrics") > 121


async def test_without_a_metrics_server_nothing_goes_and_the_daemon_is_ready() -> None:
    async with measured(served=False) as found:
        await found.live()
        await found.rest(60)
        assert await found.leaving() == set()
        assert "has not measured node" in why_not(found)
        assert "is a metrics-server installed?" in str(told(found)["hint"])
        assert found.daemon.not_ready() == []
        found.daemon.metrics.refresh()
        assert found.metric("usage_errors", source="KubernetesMetrics") >= 2
        found.cluster.measurements.served = True
        await found.rest(31)
        assert len(await found.leaving()) == 1


async def test_samples_hold_until_they_are_too_old() -> None:
    async with measured() as found:
        found.cluster.measurements.nodes["node-2"] = BUSY["node-1"]  # no destination
        await found.live()
        await found.rest(5)
        found.cluster.measurements.served = False
        await found.rest(100)
        assert why_not(found) == "no node is underutilized"
        await found.rest(30)
        assert "was measured" in why_not(found)
        assert await found.leaving() == set()


async def test_a_node_that_is_not_measured_holds_all_back() -> None:
    async with measured() as found:
        found.cluster.measurements.nodes["node-2"] = None
        await found.live()
        await found.rest(60)
        assert await found.leaving() == set()
        assert "has not measured node node-2" in why_not(found)


async def test_a_pod_that_is_not_measured_stays() -> None:
    async with measured() as found:
        found.cluster.measurements.pods["default", "a"] = None
        await found.live()
        await found.rest()
        assert await found.leaving() == {"b"}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(TAINTS + AT_ONCE, id="no strategy that asks"),
        pytest.param(policy(provider=""), id="no provider"),
    ],
)
async def test_nobody_is_asked_what_nobody_wants(text: str) -> None:
    asked = Fault(verb="list", resource="nodes.metrics.k8s.io")
    async with measured(text, faults=[asked]) as found:
        await found.live()
        await found.rest(60)
        assert asked.hits == 0
        assert await found.leaving() == set()
        assert found.status()["usage"] == []


async def test_a_reload_begins_and_ends_the_polls() -> None:
    asked = Fault(verb="list", resource="nodes.metrics.k8s.io")
    async with measured(TAINTS + AT_ONCE, faults=[asked]) as found:
        await found.live()
        found.file.text = policy(usage="{pollInterval: 1s}")
        await eventually(lambda: asked.hits > 3)
        await eventually(lambda: found.requests.hits == 1)
        found.file.text = TAINTS + AT_ONCE
        await eventually(lambda: found.status()["usage"] == [])
        before = asked.hits
        await found.rest(30)
        assert asked.hits == before


async def test_polls_keep_their_interval() -> None:
    asked = Fault(verb="list", resource="nodes.metrics.k8s.io")
    async with measured(policy(usage="{pollInterval: 20s}"), faults=[asked]) as found:
        await found.live()
        await found.rest(90)
        assert asked.hits == 5


QUERY = "{source: Prometheus, prometheus: {query: busy}}"
SECRET = "{secretReference: {namespace: default, name: prometheus}}"


@asynccontextmanager
async def by_prometheus(
    values: Mapping[str, float | str] | None, *, token: str | None = None
) -> AsyncIterator[tuple[World, PrometheusServer]]:
    """The world with a Prometheus; the policy that asks it has just been put in force."""
    async with (
        measured(TAINTS + AT_ONCE) as found,
        serve_prometheus(found.cluster.measurements, token=token) as prometheus,
    ):
        if values is not None:
            prometheus.values["busy"] = values
        auth = f", authToken: {SECRET}" if token else ""
        provider = f"{{source: Prometheus, prometheus: {{url: '{prometheus.url}'{auth}}}}}"
        await found.live()
        found.file.text = policy(provider=provider, asked=QUERY, resource="MetricResource")
        await eventually(lambda: found.status()["usage"] != [])
        yield found, prometheus


async def test_a_node_over_its_target_by_prometheus_loses_one() -> None:
    async with by_prometheus({"node-1": 0.9, "node-2": 0.1}) as (found, prometheus):
        await found.rest()
        assert len(await found.leaving()) == 1
        assert set(prometheus.asked) == {"busy"}


@pytest.mark.parametrize(
    ("values", "why"),
    [
        pytest.param({"node-1": 0.9}, "nothing of node node-2", id="a node is missing"),
        pytest.param({"node-1": 90, "node-2": 10}, "no share of 1", id="percent"),
        pytest.param({"node-1": 0.9, "node-2": "NaN"}, "no share of 1", id="no number"),
        pytest.param(None, "has not answered", id="unknown query"),
    ],
)
async def test_an_answer_of_no_use_evicts_nobody(
    values: dict[str, float | str] | None, why: str
) -> None:
    async with by_prometheus(values) as (found, _):
        await eventually(lambda: why in why_not(found))
        await found.rest(20)
        assert await found.leaving() == set()


@pytest.mark.parametrize("source", ["metrics-server", "Prometheus"])
async def test_who_does_not_answer_in_time_is_asked_again(source: str) -> None:
    late = Fault(latency=100, times=1)
    async with by_prometheus({"node-1": 0.9, "node-2": 0.1}) as (found, prometheus):
        if source == "Prometheus":
            prometheus.faults.add(late)
        else:
            late.resource = "nodes.metrics.k8s.io"
            found.fault(late)
            found.file.text = policy()
        await eventually(lambda: late.hits == 1)
        await found.rest(30.5)
        said = "within 30 s" if source == "Prometheus" else "no answer in time"
        assert said in str(told(found)["error"])
        assert found.daemon.not_ready() == []
        await found.rest(5)
        assert told(found)["error"] == ""


async def test_a_rotated_token_is_taken_up() -> None:
    async with by_prometheus({"node-1": 0.9, "node-2": 0.1}, token="second") as (found, _):
        await found.client.create(secret("first"))
        await found.rest(31)
        assert "401" in str(told(found)["error"])
        assert await found.leaving() == set()
        await found.client.delete("secrets", "prometheus", namespace="default")
        await found.client.create(secret("second"))
        await found.rest(31)
        assert told(found)["error"] == ""
        assert len(await found.leaving()) == 1


def secret(token: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "prometheus", "namespace": "default"},
        "data": {"prometheusAuthToken": base64.b64encode(token.encode()).decode()},
    }


@pytest.mark.parametrize("served", [True, False], ids=["measured", "no metrics-server"])
async def test_one_pass_measures_once(served: bool) -> None:
    clock = LoopClock(START)
    async with running_sandbox(tls=False, controllers=False, clock=clock) as sandbox:
        sandbox.load(cluster())
        sandbox.measurements.nodes.update(BUSY)
        sandbox.measurements.pods.update(pods())
        sandbox.measurements.served = served
        async with await connect(source=Here(sandbox.url), clock=clock) as connection:
            daemon = Daemon(
                RunSettings(policy_config_file="policy.yaml", once=True),
                load_policy(policy(), source="policy.yaml", plugins=PLUGINS),
                connection,
                clock=clock,
                random=Random(1),
                priority_classes={},
            )
            report = await daemon.run_once(60.0)
    assert len(report.evicted) == served
