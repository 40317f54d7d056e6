"""HighNodeUtilization and RemovePodsViolatingInterPodAntiAffinity with the real scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.controlplane.given import SELECTOR
from tests.e2e.conftest import NODES
from tests.e2e.objects import asking, make_deployment
from tests.e2e.policies import make_policy
from tests.e2e.scene import uids

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.e2e.api import Pod
    from tests.e2e.scene import Scene

pytestmark = [pytest.mark.e2e, pytest.mark.real_time, pytest.mark.timeout(120)]


async def open_only(scene: Scene, node: str) -> None:
    """Cordon all other nodes, once this one takes Pods."""
    await scene.api.cordon(node, on=False)
    for other in NODES:
        if other != node:
            await scene.api.cordon(other)


async def test_pods_of_an_almost_empty_node_move_when_a_fuller_one_takes_them(scene: Scene) -> None:
    policy = make_policy("HighNodeUtilization", {"thresholds": {"cpu": 20}}, nodeSelector=SELECTOR)
    async with scene.running(policy):
        await open_only(scene, "node-1")
        full = await scene.deploy(make_deployment("full", replicas=2, extra=asking("7")), pods=2)
        await open_only(scene, "node-4")
        few = await scene.deploy(make_deployment("few", replicas=3, extra=asking("1")), pods=3)
        assert {pod.node for pod in full} == {"node-1"}
        assert {pod.node for pod in few} == {"node-4"}
        await scene.quiet()
        assert not scene.evicted()  # the only node above the threshold takes nobody
        # As in a cluster that is to shrink: the usual scheduler would choose an empty node again.
        await open_only(scene, "node-1")
        after = await scene.available("few", pods=3, not_on="node-4")
        await scene.quiet()
        assert scene.evicted() == uids(few)
        assert {pod.node for pod in after} == {"node-1"}


def keeping_away(mark: str) -> dict[str, object]:
    """What of a Pod's spec keeps Pods with a label off its node."""
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {mark: "yes"}},
    }
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": {"podAntiAffinity": terms}}


async def mark(scene: Scene, pods: Iterable[Pod], label: str) -> None:
    """Give Pods a label that their template does not have."""
    for pod in pods:
        path = f"/api/v1/namespaces/{scene.namespace}/pods/{pod.metadata.name}"
        await scene.api.patch(path, {"metadata": {"labels": {label: "yes"}}})


async def test_a_pod_goes_that_keeps_away_those_beside_it_and_they_stay(scene: Scene) -> None:
    await open_only(scene, "node-1")
    shy = await scene.deploy(
        make_deployment("shy", replicas=2, extra=keeping_away("e2e.test/loud")), pods=2
    )
    loud = await scene.deploy(
        make_deployment("loud", replicas=1, extra=keeping_away("e2e.test/shy")), pods=1
    )
    assert [pod.node for pod in shy + loud] == ["node-1"] * 3
    async with scene.running(make_policy("RemovePodsViolatingInterPodAntiAffinity")):
        await scene.quiet()
        assert not scene.evicted()
        await mark(scene, shy, "e2e.test/shy")
        await scene.sees_evicted(uids(loud))
        await scene.api.cordon("node-2", on=False)
        after = await scene.available("loud", pods=1)
        await mark(scene, after, "e2e.test/loud")  # on a node of its own, it disturbs nobody
        await scene.quiet()
        assert scene.evicted() == uids(loud)
        assert [pod.node for pod in after] == ["node-2"]
