"""What changes in a cluster, and what the program makes of it: one change at a time."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from tests.e2e.api import eventually
from tests.e2e.objects import make_deployment, make_node
from tests.e2e.policies import make_policy
from tests.e2e.scene import uids

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.e2e.api import Api
    from tests.e2e.scene import Scene

pytestmark = [pytest.mark.e2e, pytest.mark.real_time, pytest.mark.timeout(90)]

TAINT = ("maintenance", "NoSchedule")
TAINTS = "RemovePodsViolatingNodeTaints"
AFFINITY = "RemovePodsViolatingNodeAffinity"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NEEDS_ROOM = {"nodeFit": True}
SETTLE = 3.0
"""Seconds for which a cause must stand, where a test takes it back before that."""
SETTLING = {"settle": {"default": f"{SETTLE:.0f}s", "transient": "0s"}}
POOL = "e2e.test/pool"


def in_pool(name: str, *, replicas: int) -> dict[str, object]:
    """A Deployment that needs a node of the pool `blue`."""
    term = {"matchExpressions": [{"key": POOL, "operator": "In", "values": ["blue"]}]}
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}
    return make_deployment(name, replicas=replicas, extra={"affinity": affinity})


async def set_label(api: Api, node: str, value: str | None) -> None:
    """Put a node into a pool, or into none."""
    await api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {POOL: value}}})


@asynccontextmanager
async def another_node(api: Api, name: str) -> AsyncIterator[None]:
    """One more node, Ready, for the length of a block or until the test deletes it."""
    path = f"/api/v1/nodes/{name}"
    await api.create("/api/v1/nodes", make_node(name))

    async def admitted() -> bool:
        return b"node.kubernetes.io/not-ready" not in await api.request("GET", path)

    try:
        await eventually(admitted, what=f"{name} without its first taint", within=20)
        yield
    finally:
        if name in await node_names(api):
            await api.delete(path)


async def node_names(api: Api) -> list[str]:
    answer = await api.request("GET", "/api/v1/nodes")
    return [item["metadata"]["name"] for item in json.loads(answer)["items"]]


@pytest.fixture
async def pool(api: Api) -> AsyncIterator[tuple[str, str]]:
    """Two nodes of the pool `blue`."""
    nodes = ("node-1", "node-2")
    for node in nodes:
        await set_label(api, node, "blue")
    yield nodes
    for node in nodes:
        await set_label(api, node, None)


# Labels


async def test_pods_leave_a_node_that_loses_the_label_they_need(
    scene: Scene, pool: tuple[str, str]
) -> None:
    first, second = pool
    async with scene.running(make_policy(AFFINITY, {"nodeAffinityType": [REQUIRED]})):
        web = await scene.deploy(in_pool("web", replicas=4), pods=4)
        await set_label(scene.api, first, None)
        await scene.available("web", pods=4, not_on=first)
        await scene.quiet()
        assert scene.evicted() == uids(web, on=first)
        # Nowhere left that fits: they stay where they are, and go when there is such a node again.
        await set_label(scene.api, second, None)
        await scene.quiet()
        assert scene.evicted() == uids(web, on=first)
        there = await scene.api.pods(scene.namespace, "web")
        await set_label(scene.api, first, "blue")
        await scene.sees_evicted(uids(there))
        await scene.available("web", pods=4, not_on=second)


async def test_a_label_that_is_back_before_it_settles_moves_nobody(
    scene: Scene, pool: tuple[str, str]
) -> None:
    async with scene.running(
        make_policy(AFFINITY, {"nodeAffinityType": [REQUIRED]}, reactive=SETTLING)
    ):
        await scene.deploy(in_pool("web", replicas=4), pods=4)
        await set_label(scene.api, pool[0], None)
        await asyncio.sleep(SETTLE / 2)
        await set_label(scene.api, pool[0], "blue")
        await scene.quiet(SETTLE + 1)
        assert not scene.evicted()


# Taints and cordons


async def test_a_taint_that_is_gone_before_it_settles_moves_nobody(scene: Scene) -> None:
    async with scene.running(make_policy(TAINTS, reactive=SETTLING)):
        web = await scene.deploy(make_deployment("web", replicas=6), pods=6)
        assert uids(web, on="node-1")
        for _ in range(2):  # each time counts from its own beginning
            await scene.api.taint("node-1", TAINT)
            await asyncio.sleep(SETTLE * 0.6)
            await scene.api.taint("node-1")
        await scene.quiet(SETTLE)
        assert not scene.evicted()


async def test_a_cordon_moves_nobody_and_its_end_opens_the_node_again(scene: Scene) -> None:
    homes = ("node-1", "node-2")
    async with scene.running(make_policy(TAINTS, evictor=NEEDS_ROOM)):
        web = await scene.deploy(make_deployment("web", replicas=4, nodes=homes), pods=4)
        on_first = uids(web, on="node-1")
        assert on_first
        await scene.api.cordon("node-2")
        await scene.quiet()
        assert not scene.evicted()
        await scene.api.taint("node-1", TAINT)
        await scene.quiet()
        assert not scene.evicted()  # as there is nowhere to go
        await scene.api.cordon("node-2", on=False)
        await scene.sees_evicted(on_first)
        await scene.available("web", pods=4, not_on="node-1")
        assert scene.evicted() == on_first


# Nodes that come and go


async def test_a_pod_that_fitted_nowhere_goes_when_a_node_is_added(scene: Scene) -> None:
    homes = ("node-1", "node-new")
    async with scene.running(make_policy(TAINTS, evictor=NEEDS_ROOM)):
        web = await scene.deploy(make_deployment("web", replicas=2, nodes=homes), pods=2)
        await scene.api.taint("node-1", TAINT)
        await scene.quiet()
        assert not scene.evicted()
        async with another_node(scene.api, "node-new"):
            await scene.sees_evicted(uids(web))
            await scene.available("web", pods=2, not_on="node-1")


async def test_nobody_goes_once_the_only_other_node_is_deleted(scene: Scene) -> None:
    homes = ("node-1", "node-old")
    policy = make_policy(TAINTS, evictor=NEEDS_ROOM, reactive=SETTLING)
    async with another_node(scene.api, "node-old"), scene.running(policy) as descheduler:
        await scene.api.cordon("node-old")
        await scene.deploy(make_deployment("web", replicas=2, nodes=homes), pods=2)
        await scene.api.cordon("node-old", on=False)
        await scene.api.taint("node-1", TAINT)
        await asyncio.sleep(SETTLE / 2)
        await scene.api.delete("/api/v1/nodes/node-old")
        await scene.quiet(SETTLE)
        assert not scene.evicted()
        assert (await descheduler.ready())[0] == 200


async def test_pods_of_a_deleted_node_are_left_to_the_garbage_collector(scene: Scene) -> None:
    async with another_node(scene.api, "node-old"), scene.running(make_policy(TAINTS)):
        await scene.deploy(make_deployment("web", replicas=2, nodes=("node-old",)), pods=2)
        await scene.api.delete("/api/v1/nodes/node-old")
        await scene.quiet()
        assert not scene.evicted()


# Pods that come late


async def test_a_pod_is_judged_when_it_is_bound(scene: Scene) -> None:
    """A scheduler of its own, which does not see the taint, binds it long after its creation."""
    deployment = make_deployment("web", replicas=1, extra={"schedulerName": "by-hand"})
    async with scene.running(make_policy(TAINTS)):
        await scene.api.taint("node-1", TAINT)
        await scene.create({**deployment, "kind": "ReplicaSet"})
        (pod,) = await scene.pods("web", count=1, phase="Pending")
        await scene.quiet()
        assert not scene.evicted()
        await scene.api.create(
            f"/api/v1/namespaces/{scene.namespace}/pods/{pod.metadata.name}/binding",
            {
                "metadata": {"name": pod.metadata.name},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"},
            },
        )
        await scene.sees_evicted({pod.metadata.uid})
