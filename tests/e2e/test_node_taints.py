"""Taints, budgets and the ways to run, against a real API server and controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.api import eventually
from tests.e2e.descheduler import running_descheduler
from tests.e2e.objects import GONE_AFTER, READY_AFTER, make_budget, make_deployment
from tests.e2e.policies import make_policy
from tests.e2e.scene import uids

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.scene import Scene

pytestmark = [pytest.mark.e2e, pytest.mark.real_time, pytest.mark.timeout(180)]

KEY = "maintenance"
TAINT = (KEY, "NoSchedule")
TAINTS = "RemovePodsViolatingNodeTaints"
HOMES = ("node-1", "node-2")


async def test_pods_leave_a_tainted_node_and_run_elsewhere(scene: Scene) -> None:
    web = await scene.deploy(make_deployment("web", replicas=6), pods=6)
    agents = await scene.deploy(
        make_deployment("agent", replicas=4, tolerates=KEY, spread=True), pods=4
    )
    assert {pod.node for pod in agents} == {pod.node for pod in web}

    async with scene.running(make_policy(TAINTS)):
        for node in HOMES:
            await scene.api.taint(node, TAINT)
            moved = await scene.available("web", pods=6, not_on=node)
            await scene.api.taint(node)
            assert uids(web, not_on=node) <= uids(moved)
            assert not uids(web, on=node) & uids(moved)
            web = moved
        assert not scene.evicted("agent")


async def test_dry_run_says_what_it_would_evict_and_evicts_nothing(scene: Scene) -> None:
    web = await scene.deploy(make_deployment("web", replicas=6), pods=6)
    wanted = [pod.metadata.name for pod in web if pod.node == "node-3"]
    await scene.api.taint("node-3", TAINT)

    async with scene.running(make_policy(TAINTS), "--dry-run") as descheduler:

        async def said() -> bool:
            output = await descheduler.output()
            return all(name in output for name in wanted)

        await eventually(said, what=f"{wanted} in the output", within=30)
        await scene.quiet()
        assert not scene.evicted()


@pytest.mark.parametrize(
    "pace",
    [{}, {READY_AFTER: "1s", GONE_AFTER: "2s"}],
    ids=["at once", "slow to start and to end"],
)
async def test_a_budget_lets_pods_go_one_after_the_other(
    scene: Scene, pace: dict[str, str]
) -> None:
    before = await scene.deploy(
        make_deployment("db", replicas=6, nodes=HOMES, annotations=pace), pods=6
    )
    assert uids(before, on="node-1")
    await scene.create(make_budget("db", min_available=5))

    async with scene.running(make_policy(TAINTS)):
        await scene.api.taint("node-1", TAINT)
        await scene.available("db", pods=6, not_on="node-1")
        assert scene.evicted() == uids(before, on="node-1")
    assert scene.witness.fewest == {"db": 5}


async def test_once_evicts_and_ends_by_itself(scene: Scene, policy: Path) -> None:
    web = await scene.deploy(make_deployment("web", replicas=6), pods=6)
    await scene.api.taint("node-4", TAINT)
    async with running_descheduler(
        "--once",
        policy=policy,
        kubeconfig=scene.plane.kubeconfig(),
        log=scene.directory / "run.log",
    ) as descheduler:
        assert await descheduler.wait(within=30) == 0
    moved = await scene.available("web", pods=6, not_on="node-4")
    assert uids(web, not_on="node-4") <= uids(moved)


@pytest.mark.usefixtures("own_control_plane")
async def test_without_rights_it_says_so_and_evicts_nothing(scene: Scene, policy: Path) -> None:
    await scene.deploy(make_deployment("web", replicas=6), pods=6)
    await scene.api.taint("node-1", TAINT)
    async with running_descheduler(
        policy=policy,
        kubeconfig=scene.plane.kubeconfig("nobody"),
        log=scene.directory / "run.log",
    ) as descheduler:

        async def said() -> bool:
            return "forbidden" in (await descheduler.output()).lower()

        await eventually(said, what="the refusal in the output", within=30)
        assert "Traceback" not in await descheduler.output()
    assert not scene.evicted()
