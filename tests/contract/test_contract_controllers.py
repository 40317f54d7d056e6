"""What controllers, scheduler and kubelet make of changes, in the sandbox and in a real cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reactive_descheduler.sandbox.documents import (
    condition,
    controller_of,
    integer,
    is_ready,
    is_terminating,
    labels,
    lookup,
    mapping,
    name_of,
    objects,
    text,
    uid_of,
)
from reactive_descheduler.sandbox.sample import make_budget, make_daemon_set, make_deployment
from tests.contract.live import eventually

if TYPE_CHECKING:
    from reactive_descheduler.sandbox.documents import JsonObject
    from tests.contract.live import Opener

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(120)]


async def test_a_deployments_pods_are_owned_through_its_replica_set(live: Opener) -> None:
    async with live() as cluster:
        await cluster.deploy("web", 2)
        pods = await cluster.pods("web")
        (replica_set,), _ = await cluster.client.list("replicasets", cluster.world.namespace)

    assert {text(pod, "spec", "nodeName") for pod in pods} == set(cluster.nodes)
    digest = labels(replica_set)["pod-template-hash"]
    assert name_of(replica_set) == f"web-{digest}"
    assert controller_of(replica_set)["kind"] == "Deployment"
    for pod in pods:
        assert controller_of(pod)["uid"] == uid_of(replica_set)
        assert labels(pod) == {
            "app": "web",
            "pod-template-hash": digest,
            "topology.kubernetes.io/zone": "z",
        }
        assert name_of(pod).startswith(f"web-{digest}-")
        assert text(pod, "status", "phase") == "Running"
        assert condition(pod, "PodScheduled")["status"] == "True"


async def test_an_evicted_pod_is_replaced_and_its_budget_restored(live: Opener) -> None:
    async with live() as cluster:
        namespace = cluster.world.namespace
        await cluster.deploy("store", 3)
        await cluster.client.create(make_budget("store", minimum=2, namespace=namespace))

        async def opened() -> bool:
            budget = await cluster.client.get("poddisruptionbudgets", "store", namespace)
            return integer(budget, "status", "disruptionsAllowed") == 1

        await eventually(opened)
        victim = (await cluster.pods("store"))[0]
        await cluster.world.evict(name_of(victim))

        async def whole() -> bool:
            pods = [pod for pod in await cluster.pods("store") if not is_terminating(pod)]
            uids = {uid_of(pod) for pod in pods if is_ready(pod)}
            return len(uids) == 3 and uid_of(victim) not in uids

        await eventually(whole)
        await eventually(opened)


async def test_budgets_are_counted(live: Opener) -> None:
    bounds: dict[str, tuple[JsonObject, int, int]] = {
        "min": ({"minAvailable": 1}, 1, 3),
        "min-percent": ({"minAvailable": "51%"}, 3, 1),
        "max": ({"maxUnavailable": 1}, 3, 1),
        "max-percent": ({"maxUnavailable": "30%"}, 2, 2),
        "max-none": ({"maxUnavailable": 0}, 4, 0),
    }
    async with live() as cluster:
        namespace = cluster.world.namespace
        await cluster.deploy("store", 4)
        for name, (bound, _, _) in bounds.items():
            budget = make_budget(name, minimum=0, namespace=namespace)
            budget["spec"] = {"selector": {"matchLabels": {"app": "store"}}, **bound}
            await cluster.client.create(budget)

        async def counted() -> bool:
            budgets, _ = await cluster.client.list("poddisruptionbudgets", namespace)
            return all(integer(b, "status", "observedGeneration") == 1 for b in budgets)

        await eventually(counted)
        found = {}
        for name in bounds:
            budget = await cluster.client.get("poddisruptionbudgets", name, namespace)
            status = mapping(budget, "status")
            assert (status["expectedPods"], status["currentHealthy"]) == (4, 4)
            verdict = condition(budget, "DisruptionAllowed")
            assert verdict["status"] == ("True" if status["disruptionsAllowed"] else "False")
            found[name] = (status["desiredHealthy"], status["disruptionsAllowed"])

    assert found == {name: (desired, allowed) for name, (_, desired, allowed) in bounds.items()}


async def test_a_cordon_becomes_a_taint_and_goes_with_it(live: Opener) -> None:
    async with live() as cluster:
        node = cluster.nodes[0]

        async def taints() -> list[tuple[str, str]]:
            found = await cluster.client.get("nodes", node)
            return [(text(t, "key"), text(t, "effect")) for t in objects(found, "spec", "taints")]

        async def cordoned() -> bool:
            return await taints() == [("node.kubernetes.io/unschedulable", "NoSchedule")]

        async def open_again() -> bool:
            return not await taints()

        await cluster.client.patch("nodes", node, {"spec": {"unschedulable": True}})
        await eventually(cordoned)
        await cluster.client.patch("nodes", node, {"spec": {"unschedulable": None}})
        await eventually(open_again)


async def test_a_daemon_set_minds_taints_but_no_cordon(live: Opener) -> None:
    async with live() as cluster:
        namespace, (first, second) = cluster.world.namespace, cluster.nodes
        taint = {"key": "contract", "effect": "NoSchedule"}
        await cluster.client.patch("nodes", second, {"spec": {"taints": [taint]}})
        await cluster.client.patch("nodes", first, {"spec": {"unschedulable": True}})

        async def seen() -> bool:
            """The cordon's taint shows that the controllers have caught up with both changes."""
            return bool(objects(await cluster.client.get("nodes", first), "spec", "taints"))

        await eventually(seen)
        daemon_set = make_daemon_set("agent", namespace=namespace, pod_spec=cluster.here)
        await cluster.client.create(daemon_set)

        async def ready() -> bool:
            found = await cluster.client.get("daemonsets", "agent", namespace)
            return integer(found, "status", "numberReady") == 1

        await eventually(ready)
        (pod,) = await cluster.pods("agent")

    assert text(pod, "spec", "nodeName") == first
    assert controller_of(pod)["kind"] == "DaemonSet"
    tolerated = {text(t, "key") for t in objects(pod, "spec", "tolerations")}
    assert tolerated == {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/unschedulable",
    }


async def test_a_pod_that_fits_nowhere_waits_until_a_node_changes(live: Opener) -> None:
    async with live() as cluster:
        namespace = cluster.world.namespace
        picky: JsonObject = {"nodeSelector": {"contract-picky": namespace}}
        await cluster.client.create(
            make_deployment("web", replicas=1, namespace=namespace, pod_spec=picky)
        )

        async def waits() -> bool:
            reasons = [
                condition(p, "PodScheduled").get("reason") for p in await cluster.pods("web")
            ]
            return reasons == ["Unschedulable"]

        await eventually(waits)
        (pod,) = await cluster.pods("web")
        assert text(pod, "status", "phase") == "Pending"
        assert lookup(pod, "spec", "nodeName") is None

        label = {"metadata": {"labels": {"contract-picky": namespace}}}
        await cluster.client.patch("nodes", cluster.nodes[1], label)

        async def runs() -> bool:
            return all(map(is_ready, await cluster.pods("web")))

        await eventually(runs)


async def test_what_a_deleted_deployment_owned_goes_with_it(live: Opener) -> None:
    async with live() as cluster:
        namespace = cluster.world.namespace
        await cluster.deploy("web", 2)
        await cluster.client.delete("deployments", "web", namespace=namespace)

        async def gone() -> bool:
            replica_sets, _ = await cluster.client.list("replicasets", namespace)
            return not replica_sets and not await cluster.pods("web")

        await eventually(gone)
