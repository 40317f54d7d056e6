"""The embedded cluster as a whole, on virtual time: what its controllers make of changes."""

from __future__ import annotations

from collections import Counter
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING

import anyio
import pytest

from reactive_descheduler.kit.clock import LoopClock
from reactive_descheduler.sandbox.client import ApiClient, ApiRefused
from reactive_descheduler.sandbox.cluster import SandboxCluster, running_sandbox
from reactive_descheduler.sandbox.documents import (
    condition,
    controller_of,
    integer,
    is_ready,
    is_terminating,
    labels,
    mapping,
    name_of,
    objects,
    text,
)
from reactive_descheduler.sandbox.kubelet import Pace
from reactive_descheduler.sandbox.sample import (
    create_sample_workloads,
    make_budget,
    make_daemon_set,
    make_deployment,
    until_settled,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from reactive_descheduler.sandbox.documents import JsonObject


@asynccontextmanager
async def sandbox(*, nodes: int = 3, heartbeat: float = 3_600.0) -> AsyncIterator[SandboxCluster]:
    clock = LoopClock(datetime(2030, 1, 1, tzinfo=UTC))
    pace = Pace(start=0.2, stop_cap=1.0, heartbeat=heartbeat)
    async with running_sandbox(
        nodes=nodes, tls=False, clock=clock, random=Random(1), pace=pace
    ) as cluster:
        yield cluster


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until it holds; ten seconds on the clock of the test are enough for everything."""
    with anyio.fail_after(10):
        while not await holds():  # noqa: ASYNC110 - the state is the server's
            await anyio.sleep(0.05)


async def pods_of(client: ApiClient, app: str) -> list[JsonObject]:
    pods, _ = await client.list("pods", labelSelector=f"app={app}")
    return pods


async def nodes_of(client: ApiClient, app: str) -> Counter[str]:
    return Counter(text(pod, "spec", "nodeName") for pod in await pods_of(client, app))


async def test_nodes_are_ready_and_spread_over_zones() -> None:
    async with sandbox(nodes=5) as cluster:
        nodes, _ = await cluster.client.list("nodes")

    zones = Counter(labels(node)["topology.kubernetes.io/zone"] for node in nodes)
    assert all(map(is_ready, nodes))
    assert zones == {"zone-a": 3, "zone-b": 2}


async def test_the_sample_workloads_become_ready() -> None:
    async with sandbox(nodes=5) as cluster:
        await create_sample_workloads(cluster.client)
        pods, _ = await cluster.client.list("pods")

    assert all(map(is_ready, pods))
    counts = Counter(labels(pod)["app"] for pod in pods)
    assert counts == {"web": 4, "api": 3, "batch": 2, "store": 3, "agent": 5}


async def test_a_deployments_pods_are_owned_through_a_replica_set_and_spread() -> None:
    async with sandbox() as cluster:
        await cluster.client.create(make_deployment("web", replicas=3))
        await until_settled(cluster.client)
        (pod, *_) = await pods_of(cluster.client, "web")
        (replica_set,), _ = await cluster.client.list("replicasets")
        spread = await nodes_of(cluster.client, "web")

    assert set(spread.values()) == {1}
    assert controller_of(pod)["name"] == name_of(replica_set)
    assert controller_of(replica_set)["kind"] == "Deployment"
    assert name_of(pod).startswith(name_of(replica_set) + "-")
    assert labels(pod)["pod-template-hash"] == name_of(replica_set).removeprefix("web-")


async def test_an_evicted_pod_is_replaced_while_it_still_terminates() -> None:
    async with sandbox() as cluster:
        client = cluster.client
        await client.create(make_deployment("web", replicas=2))
        await until_settled(client)
        victim = name_of((await pods_of(client, "web"))[0])

        await client.evict(victim)

        async def replaced() -> bool:
            return len(await pods_of(client, "web")) == 3

        await eventually(replaced)
        going = [name_of(pod) for pod in await pods_of(client, "web") if is_terminating(pod)]
        await until_settled(client)

        async def gone() -> bool:
            return victim not in map(name_of, await pods_of(client, "web"))

        await eventually(gone)
        left = await pods_of(client, "web")

    assert going == [victim]
    assert len(left) == 2
    assert all(map(is_ready, left))


async def test_a_terminating_pod_goes_after_its_grace_period_but_the_cap_at_most() -> None:
    async with sandbox() as cluster:
        client = cluster.client
        await client.create(make_deployment("web", replicas=1))
        await until_settled(client)
        victim = name_of((await pods_of(client, "web"))[0])
        began = anyio.current_time()

        await client.evict(victim)

        async def gone() -> bool:
            return victim not in map(name_of, await pods_of(client, "web"))

        await eventually(gone)
        took = anyio.current_time() - began

    assert 1.0 <= took < 1.2


async def test_a_budget_is_counted_spent_and_restored() -> None:
    async with sandbox() as cluster:
        client = cluster.client
        await client.create(make_deployment("store", replicas=3))
        await client.create(make_budget("store", minimum=2))
        await until_settled(client)
        first, second, _ = map(name_of, await pods_of(client, "store"))

        await client.evict(first)
        with pytest.raises(ApiRefused) as refused:
            await client.evict(second)

        async def open_again() -> bool:
            budget = await client.get("poddisruptionbudgets", "store", "default")
            return integer(budget, "status", "disruptionsAllowed") == 1

        await eventually(open_again)
        budget = await client.get("poddisruptionbudgets", "store", "default")

    assert refused.value.code == 429
    assert "disruptedPods" not in mapping(budget, "status")
    assert integer(budget, "status", "currentHealthy") == 3


@pytest.mark.parametrize(
    ("bound", "allowed", "desired"),
    [
        pytest.param({"minAvailable": 1}, 3, 1, id="min"),
        pytest.param({"minAvailable": "50%"}, 2, 2, id="min-percent"),
        pytest.param({"minAvailable": "51%"}, 1, 3, id="min-percent-rounds-up"),
        pytest.param({"maxUnavailable": 1}, 1, 3, id="max"),
        pytest.param({"maxUnavailable": "30%"}, 2, 2, id="max-percent-rounds-up"),
        pytest.param({"maxUnavailable": 0}, 0, 4, id="max-none"),
    ],
)
async def test_budgets_are_bounded(bound: JsonObject, allowed: int, desired: int) -> None:
    async with sandbox() as cluster:
        await cluster.client.create(make_deployment("store", replicas=4))
        budget = make_budget("store", minimum=0)
        budget["spec"] = {"selector": {"matchLabels": {"app": "store"}}, **bound}
        await cluster.client.create(budget)
        await until_settled(cluster.client)
        counted = await cluster.client.get("poddisruptionbudgets", "store", "default")

    status = mapping(counted, "status")
    assert (status["disruptionsAllowed"], status["desiredHealthy"]) == (allowed, desired)
    assert status["expectedPods"] == 4


async def test_pods_avoid_taints_and_follow_selectors() -> None:
    async with sandbox() as cluster:
        client = cluster.client
        taint = {"key": "maintenance", "effect": "NoSchedule"}
        await client.patch("nodes", "node-1", {"spec": {"taints": [taint]}})
        await client.patch("nodes", "node-2", {"metadata": {"labels": {"disk": "ssd"}}})
        await client.create(make_deployment("web", replicas=4))
        fast: JsonObject = {"nodeSelector": {"disk": "ssd"}}
        await client.create(make_deployment("fast", replicas=2, pod_spec=fast))
        await until_settled(client)

        assert (await nodes_of(client, "web")).keys() == {"node-2", "node-3"}
        assert await nodes_of(client, "fast") == {"node-2": 2}


def required_on_node(app: str) -> JsonObject:
    """Return required terms about the Pods of an app on the same node."""
    term = {
        "labelSelector": {"matchLabels": {"app": app}},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


async def test_anti_affinity_keeps_pods_apart_and_the_rest_waits_for_a_node() -> None:
    apart: JsonObject = {"affinity": {"podAntiAffinity": required_on_node("web")}}
    async with sandbox(nodes=2) as cluster:
        client = cluster.client
        await client.create(make_deployment("web", replicas=3, pod_spec=apart))

        async def one_waits() -> bool:
            waiting = [
                pod
                for pod in await pods_of(client, "web")
                if condition(pod, "PodScheduled").get("reason") == "Unschedulable"
            ]
            return len(waiting) == 1 and len(await nodes_of(client, "web")) == 3

        await eventually(one_waits)
        node: JsonObject = {"apiVersion": "v1", "kind": "Node"}
        named = {"name": "node-3", "labels": {"kubernetes.io/hostname": "node-3"}}
        await client.create(node | {"metadata": named})
        await until_settled(client)

        assert set((await nodes_of(client, "web")).values()) == {1}


async def test_who_has_to_be_near_another_waits_for_it() -> None:
    near: JsonObject = {"affinity": {"podAffinity": required_on_node("db")}}
    async with sandbox(nodes=2) as cluster:
        client = cluster.client
        await client.create(make_deployment("web", replicas=2, pod_spec=near))

        async def all_wait() -> bool:
            reasons = [
                condition(pod, "PodScheduled").get("reason") for pod in await pods_of(client, "web")
            ]
            return reasons == ["Unschedulable", "Unschedulable"]

        await eventually(all_wait)
        await client.create(make_deployment("db", replicas=1))
        await until_settled(client)

        (node,) = await nodes_of(client, "db")
        assert await nodes_of(client, "web") == {node: 2}


async def test_requests_beyond_a_nodes_room_are_not_scheduled() -> None:
    async with sandbox(nodes=1) as cluster:
        container = {"name": "a", "image": "i", "resources": {"requests": {"cpu": "3"}}}
        big: JsonObject = {"containers": [container]}
        await cluster.client.create(make_deployment("big", replicas=2, pod_spec=big))

        async def one_runs() -> bool:
            pods = await pods_of(cluster.client, "big")
            reasons = [condition(pod, "PodScheduled").get("reason") for pod in pods]
            return reasons.count("Unschedulable") == 1 and sum(map(is_ready, pods)) == 1

        await eventually(one_runs)


async def test_a_daemon_set_runs_on_cordoned_nodes_but_not_on_tainted_ones() -> None:
    async with sandbox() as cluster:
        client = cluster.client
        await client.patch("nodes", "node-1", {"spec": {"unschedulable": True}})
        taint = {"key": "maintenance", "effect": "NoSchedule"}
        await client.patch("nodes", "node-2", {"spec": {"taints": [taint]}})
        await client.create(make_daemon_set("agent"))
        await until_settled(client)

        assert await nodes_of(client, "agent") == {"node-1": 1, "node-3": 1}


@pytest.mark.parametrize(
    ("subresource", "change", "taints"),
    [
        pytest.param(
            "",
            {"spec": {"unschedulable": True}},
            {("node.kubernetes.io/unschedulable", "NoSchedule")},
            id="cordon",
        ),
        pytest.param(
            "status",
            {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
            {
                ("node.kubernetes.io/not-ready", "NoSchedule"),
                ("node.kubernetes.io/not-ready", "NoExecute"),
            },
            id="not-ready",
        ),
        pytest.param(
            "status",
            {"status": {"conditions": [{"type": "MemoryPressure", "status": "True"}]}},
            {("node.kubernetes.io/memory-pressure", "NoSchedule")},
            id="pressure",
        ),
    ],
)
async def test_taints_follow_the_state_of_a_node(
    subresource: str, change: JsonObject, taints: set[tuple[str, str]]
) -> None:
    async with sandbox(nodes=1) as cluster:
        client = cluster.client
        own = {"key": "own", "effect": "NoSchedule"}
        await client.patch("nodes", "node-1", {"spec": {"taints": [own]}})
        await client.patch("nodes", "node-1", change, subresource=subresource, kind="strategic")

        async def tainted() -> bool:
            node = await client.get("nodes", "node-1")
            found = {(text(t, "key"), text(t, "effect")) for t in objects(node, "spec", "taints")}
            return found == taints | {("own", "NoSchedule")}

        await eventually(tainted)


async def test_heartbeats_change_times_and_nothing_else() -> None:
    async with sandbox(nodes=1, heartbeat=10) as cluster:
        before = await cluster.client.get("nodes", "node-1")
        await anyio.sleep(10.5)
        after = await cluster.client.get("nodes", "node-1")

    stamp = "lastHeartbeatTime"
    assert condition(before, "Ready")[stamp] != condition(after, "Ready")[stamp]
    for node in (before, after):
        mapping(node, "metadata").pop("resourceVersion")
        for entry in objects(node, "status", "conditions"):
            entry.pop(stamp)
    assert before == after


async def test_what_a_deleted_deployment_owned_goes_with_it() -> None:
    async with sandbox() as cluster:
        client = cluster.client
        await client.create(make_deployment("web", replicas=2))
        await until_settled(client)

        await client.delete("deployments", "web", namespace="default")

        async def all_gone() -> bool:
            return not (await client.list("replicasets"))[0] and not (await client.list("pods"))[0]

        await eventually(all_gone)


async def test_a_changed_template_rolls_over_to_a_new_replica_set() -> None:
    async with sandbox() as cluster:
        client = cluster.client
        await client.create(make_deployment("web", replicas=2))
        await until_settled(client)
        old = {name_of(pod) for pod in await pods_of(client, "web")}

        patch = {"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}}
        await client.patch("deployments", "web", patch, namespace="default")

        async def rolled() -> bool:
            names = {name_of(pod) for pod in await pods_of(client, "web")}
            return len(names) == 2 and not names & old

        await eventually(rolled)


async def test_controllers_survive_compaction_and_cut_watches() -> None:
    async with sandbox() as cluster:
        cluster.compact()
        cluster.faults.cut_watches(spared=True)
        await cluster.client.create(make_deployment("web", replicas=2))

        with anyio.fail_after(10):
            await until_settled(cluster.client)


async def test_the_same_seed_gives_the_same_names() -> None:
    names = []
    for _ in range(2):
        async with sandbox(nodes=1) as cluster:
            await cluster.client.create(make_deployment("web", replicas=2))
            await until_settled(cluster.client)
            names.append({name_of(pod) for pod in await pods_of(cluster.client, "web")})

    assert names[0] == names[1]
