"""Upstream's end-to-end scenarios of the strategies that balance, as events make them.

Upstream runs one pass over Pods that are unevenly spread. Here the program runs first, and then
room appears, or Pods do. No more Pods go than have to, and who comes back is left alone.
docs/e2e.md has the numbers.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.controlplane.given import SELECTOR
from tests.e2e.conftest import NODES
from tests.e2e.objects import asking, make_deployment
from tests.e2e.policies import make_policy
from tests.e2e.scene import uids

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.e2e.api import Pod
    from tests.e2e.scene import Scene

pytestmark = [pytest.mark.e2e, pytest.mark.real_time, pytest.mark.timeout(120)]

SPREAD = "RemovePodsViolatingTopologySpreadConstraint"
HOMES = ("node-1", "node-2")
ZONE_A, ZONE_B = ("node-1", "node-3"), ("node-2", "node-4")
LOCAL_STORAGE = {"volumes": [{"name": "scratch", "emptyDir": {}}]}


def per_node(pods: Iterable[Pod]) -> Counter[str]:
    """How many Pods each node has."""
    return Counter(pod.node for pod in pods)


def per_zone(pods: Iterable[Pod]) -> list[int]:
    """How many Pods each of the two zones has."""
    nodes = per_node(pods)
    return [sum(nodes[node] for node in zone) for zone in (ZONE_A, ZONE_B)]


async def test_a_node_above_its_target_gives_a_pod_to_those_below(scene: Scene) -> None:
    policy = make_policy(
        "LowNodeUtilization",
        {"thresholds": {"cpu": 70}, "targetThresholds": {"cpu": 80}},
        nodeSelector=SELECTOR,
    )
    half = make_deployment("half", replicas=4, spread=True, extra=asking("15500m"))
    async with scene.running(policy):
        await scene.deploy(half, pods=4)
        for node in NODES[1:]:
            await scene.api.cordon(node)
        tenths = await scene.deploy(
            make_deployment("tenth", replicas=4, extra=asking("3200m")), pods=4
        )
        assert per_node(tenths) == {"node-1": 4}  # with `half` 88 %
        await scene.quiet()
        assert not scene.evicted()  # a cordoned node takes nobody
        for node in NODES[1:]:
            await scene.api.cordon(node, on=False)
        await scene.sees_evictions(1)
        after = await scene.available("tenth", pods=4)
        await scene.quiet()
        assert scene.evicted() == uids(tenths) - uids(after)
        assert per_node(after)["node-1"] == 3


@pytest.mark.parametrize(
    ("replicas", "evictor", "extra", "going"),
    [
        pytest.param(4, {"minReplicas": 3}, {}, 2, id="all on one node"),
        pytest.param(5, {"evictLocalStoragePods": True}, LOCAL_STORAGE, 2, id="with local storage"),
        pytest.param(3, {"minReplicas": 4}, {}, 0, id="too few replicas"),
    ],
)
async def test_replicas_of_one_node_spread_when_there_is_another(
    scene: Scene,
    replicas: int,
    evictor: Mapping[str, object],
    extra: Mapping[str, object],
    going: int,
) -> None:
    async with scene.running(make_policy("RemoveDuplicates", evictor=evictor)):
        await scene.api.cordon("node-2")
        web = await scene.deploy(
            make_deployment("web", replicas=replicas, nodes=HOMES, extra=extra), pods=replicas
        )
        assert per_node(web) == {"node-1": replicas}
        await scene.api.cordon("node-2", on=False)
        await scene.sees_evictions(going)
        after = await scene.available("web", pods=replicas)
        await scene.quiet()
        assert scene.evicted() == uids(web) - uids(after)
        assert per_node(after) == Counter({"node-1": replicas - going, "node-2": going})


def spread_web(
    when: str = "DoNotSchedule", *, nodes: tuple[str, ...] = (), **more: object
) -> dict[str, object]:
    """A Deployment of four in the group `web`, spread over the zones."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"group": "web"}},
        **more,
    }
    return make_deployment(
        "web",
        replicas=4,
        nodes=nodes,
        labels={"group": "web", "version": "1"},
        extra={"topologySpreadConstraints": [constraint]},
    )


def others(name: str, *, nodes: tuple[str, ...], version: str = "1") -> dict[str, object]:
    """Two more Pods of the group on some nodes, of a Deployment without a constraint."""
    labels = {"group": "web", "version": version}
    extra: dict[str, object] = {"topologySpreadConstraints": []}
    return make_deployment(name, replicas=2, nodes=nodes, labels=labels, extra=extra)


async def sees_one_move(scene: Scene, web: list[Pod], *, to: list[int]) -> None:
    """One Pod of `web` goes, and no other; then each zone has so many of them."""
    await scene.sees_evictions(1)
    after = await scene.available("web", pods=4)
    await scene.quiet()
    assert scene.evicted() == uids(web) - uids(after)
    assert per_zone(after) == to


@pytest.mark.parametrize("when", ["DoNotSchedule", "ScheduleAnyway"], ids=["hard", "soft"])
async def test_a_pod_leaves_the_zone_that_others_have_filled(scene: Scene, when: str) -> None:
    async with scene.running(make_policy(SPREAD, {"constraints": [when]})):
        web = await scene.deploy(spread_web(when), pods=4)
        assert per_zone(web) == [2, 2]
        await scene.deploy(others("more", nodes=ZONE_A), pods=2)
        await sees_one_move(scene, web, to=[1, 3])


async def test_a_tainted_zone_counts_once_its_taint_is_gone(scene: Scene) -> None:
    async with scene.running(make_policy(SPREAD)):
        for node in ZONE_B:
            await scene.api.taint(node, ("maintenance", "NoSchedule"))
        web = await scene.deploy(spread_web(nodeTaintsPolicy="Honor"), pods=4)
        assert per_zone(web) == [4, 0]
        await scene.quiet()
        assert not scene.evicted()
        for node in ZONE_B:
            await scene.api.taint(node)
        await scene.sees_evictions(2)
        after = await scene.available("web", pods=4)
        await scene.quiet()
        assert scene.evicted() == uids(web) - uids(after)
        assert per_zone(after) == [2, 2]


@pytest.mark.parametrize(
    ("policy", "goes"), [("Ignore", True), ("Honor", False)], ids=["ignored", "honoured"]
)
async def test_pods_where_the_affinity_does_not_lead_count_if_it_is_ignored(
    scene: Scene, policy: str, goes: bool
) -> None:
    async with scene.running(make_policy(SPREAD)):
        web = await scene.deploy(
            spread_web(nodes=("node-1", "node-2", "node-3"), nodeAffinityPolicy=policy), pods=4
        )
        assert per_zone(web) == [2, 2]
        await scene.deploy(others("more", nodes=("node-4",)), pods=2)
        if goes:
            await sees_one_move(scene, web, to=[3, 1])
        else:
            await scene.quiet()
            assert not scene.evicted()


async def test_pods_of_another_version_do_not_count_if_the_constraint_says_so(scene: Scene) -> None:
    async with scene.running(make_policy(SPREAD)):
        web = await scene.deploy(spread_web(matchLabelKeys=["version"]), pods=4)
        assert per_zone(web) == [2, 2]
        await scene.deploy(others("old", nodes=ZONE_A, version="0"), pods=2)
        await scene.quiet()
        assert not scene.evicted()
        await scene.deploy(others("more", nodes=ZONE_A), pods=2)
        await sees_one_move(scene, web, to=[1, 3])
