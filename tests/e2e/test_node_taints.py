"""`run` against a real API server, controller manager and scheduler; kwok is the kubelet."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.e2e.api import Api, Pod, eventually
from tests.e2e.descheduler import running_descheduler
from tests.e2e.objects import make_budget, make_deployment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.controlplane.cluster import ControlPlane

pytestmark = [pytest.mark.e2e, pytest.mark.real_time, pytest.mark.timeout(180)]

KEY = "maintenance"
TAINT = (KEY, "NoSchedule")


async def deploy(api: Api, namespace: str, deployment: dict[str, object]) -> list[Pod]:
    """Create a Deployment and give its Pods once all are available."""
    await api.create(f"/apis/apps/v1/namespaces/{namespace}/deployments", deployment)
    name, replicas = _name_and_replicas(deployment)
    return await all_available(api, namespace, name, replicas=replicas)


async def all_available(
    api: Api, namespace: str, app: str, *, replicas: int, not_on: str = ""
) -> list[Pod]:
    """The Pods of an app, once there are `replicas`, all available, and none on one node."""

    async def settled() -> bool:
        pods = await api.pods(namespace, app)
        return len(pods) == replicas and all(pod.available and pod.node != not_on for pod in pods)

    await eventually(settled, what=f"{replicas} of {app} available, not on {not_on!r}", within=45)
    return await api.pods(namespace, app)


def _name_and_replicas(deployment: dict[str, object]) -> tuple[str, int]:
    match deployment:
        case {"metadata": {"name": str(name)}, "spec": {"replicas": int(replicas)}}:
            return name, replicas
    raise ValueError("not a Deployment with a name and replicas")


def uids(pods: list[Pod], *, on: str = "", not_on: str = "") -> set[str]:
    """The UIDs of those Pods that are (or are not) on a node."""
    return {pod.metadata.uid for pod in pods if on in ("", pod.node) and pod.node != not_on}


async def test_pods_leave_a_tainted_node_and_run_elsewhere(
    control_plane: ControlPlane, api: Api, namespace: str, policy: Path, tmp_path: Path
) -> None:
    web = await deploy(api, namespace, make_deployment("web", replicas=6))
    agents = await deploy(
        api, namespace, make_deployment("agent", replicas=4, tolerates=KEY, spread=True)
    )
    assert {pod.node for pod in agents} == {pod.node for pod in web}

    async with running_descheduler(
        policy=policy, kubeconfig=control_plane.kubeconfig(), log=tmp_path / "run.log"
    ) as descheduler:
        # The first may be seen by the pass at the start; the second surely comes over the watch.
        for node in ("node-1", "node-2"):
            await api.taint(node, TAINT)
            moved = await all_available(api, namespace, "web", replicas=6, not_on=node)
            await api.taint(node)
            assert uids(web, not_on=node) <= uids(moved)
            assert not uids(web, on=node) & uids(moved)
            web = moved
        assert uids(await api.pods(namespace, "agent")) == uids(agents)
        assert await descheduler.stop() == 0


async def test_dry_run_says_what_it_would_evict_and_evicts_nothing(
    control_plane: ControlPlane, api: Api, namespace: str, policy: Path, tmp_path: Path
) -> None:
    web = await deploy(api, namespace, make_deployment("web", replicas=6))
    wanted = [pod.metadata.name for pod in web if pod.node == "node-3"]
    await api.taint("node-3", TAINT)

    async with running_descheduler(
        "--dry-run",
        "--v=1",  # the level of evictions, as upstream
        policy=policy,
        kubeconfig=control_plane.kubeconfig(),
        log=tmp_path / "run.log",
    ) as descheduler:

        async def said() -> bool:
            output = await descheduler.output()
            return all(name in output for name in wanted)

        await eventually(said, what=f"{wanted} in the output", within=30)
        await asyncio.sleep(2)
        after = await api.pods(namespace, "web")
        assert uids(after) == uids(web)
        assert all(pod.available for pod in after)
        assert await descheduler.stop() == 0


async def test_a_budget_lets_pods_go_one_after_the_other(
    control_plane: ControlPlane, api: Api, namespace: str, policy: Path, tmp_path: Path
) -> None:
    homes = ("node-1", "node-2")
    before = await deploy(api, namespace, make_deployment("db", replicas=6, nodes=homes))
    assert uids(before, on="node-1")
    await api.create(
        f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets",
        make_budget("db", min_available=5),
    )

    pods = {pod.metadata.uid: pod for pod in before}
    fewest = len(pods)
    async with running_descheduler(
        policy=policy, kubeconfig=control_plane.kubeconfig(), log=tmp_path / "run.log"
    ) as descheduler:
        await api.taint("node-1", TAINT)
        async with asyncio.timeout(60):
            async for event in api.watch_pods(namespace, "db"):
                if event.type == "DELETED":
                    pods.pop(event.object.metadata.uid, None)
                else:
                    pods[event.object.metadata.uid] = event.object
                available = [pod for pod in pods.values() if pod.available]
                fewest = min(fewest, len(available))
                if len(available) == 6 and all(pod.node == "node-2" for pod in available):
                    break
        assert await descheduler.stop() == 0
    assert fewest == 5
    assert uids(before, on="node-2") < pods.keys()


async def test_once_evicts_and_ends_by_itself(
    control_plane: ControlPlane, api: Api, namespace: str, policy: Path, tmp_path: Path
) -> None:
    web = await deploy(api, namespace, make_deployment("web", replicas=6))
    await api.taint("node-4", TAINT)
    async with running_descheduler(
        "--once", policy=policy, kubeconfig=control_plane.kubeconfig(), log=tmp_path / "run.log"
    ) as descheduler:
        assert await descheduler.wait(within=30) == 0
    moved = await all_available(api, namespace, "web", replicas=6, not_on="node-4")
    assert uids(web, not_on="node-4") <= uids(moved)


async def test_without_rights_it_says_so_and_evicts_nothing(
    control_plane: ControlPlane, api: Api, namespace: str, policy: Path, tmp_path: Path
) -> None:
    web = await deploy(api, namespace, make_deployment("web", replicas=6))
    await api.taint("node-1", TAINT)
    async with running_descheduler(
        policy=policy, kubeconfig=control_plane.kubeconfig("nobody"), log=tmp_path / "run.log"
    ) as descheduler:

        async def said() -> bool:
            return "forbidden" in (await descheduler.output()).lower()

        await eventually(said, what="the refusal in the output", within=30)
        assert "Traceback" not in await descheduler.output()
    assert uids(await api.pods(namespace, "web")) == uids(web)
