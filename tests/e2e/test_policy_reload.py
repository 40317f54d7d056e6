"""The policy is changed as a ConfigMap changes under a mount: by swapping a symlink."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.e2e.api import eventually
from tests.e2e.descheduler import running_descheduler
from tests.e2e.objects import make_deployment
from tests.e2e.policies import limited, make_policy
from tests.e2e.probes import free_port
from tests.e2e.scene import uids

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.descheduler import Descheduler
    from tests.e2e.scene import Scene

pytestmark = [pytest.mark.e2e, pytest.mark.real_time, pytest.mark.timeout(120)]

TAINT = ("maintenance", "NoSchedule")
TAINTS = "RemovePodsViolatingNodeTaints"


class MountedConfigMap:
    """A folder as the kubelet makes it: the file is reached through `..data`, which is swapped."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._version = 0
        folder.mkdir()
        self.file = folder / "policy.yaml"
        self.file.symlink_to("..data/policy.yaml")

    def hold(self, policy: str) -> None:
        self._version += 1
        version = self._folder / f"..version-{self._version}"
        version.mkdir()
        (version / "policy.yaml").write_text(policy)
        swap = self._folder / "..data_tmp"
        swap.symlink_to(version.name)
        swap.replace(self._folder / "..data")


async def reloads(descheduler: Descheduler, result: str, count: int) -> None:
    series = f'reactive_descheduler_policy_reloads_total{{result="{result}"}}'

    async def counted() -> bool:
        return (await descheduler.metrics(series))[series] == count

    await eventually(counted, what=f"{count} reloads {result}", within=20)


async def test_a_changed_config_map_takes_over_and_a_broken_one_does_not(scene: Scene) -> None:
    web = await scene.deploy(make_deployment("web", replicas=6), pods=6)
    await scene.api.taint("node-1", TAINT)
    excluding = make_policy(TAINTS, {"excludedTaints": ["maintenance"]})
    mounted = MountedConfigMap(scene.directory / "policy")
    mounted.hold(json.dumps(limited(excluding, scene.plane)))
    async with running_descheduler(
        policy=mounted.file,
        kubeconfig=scene.plane.kubeconfig(),
        log=scene.directory / "run.log",
        port=free_port(),
    ) as descheduler:
        await descheduler.becomes_ready()
        await scene.quiet()
        assert not scene.evicted(), "the taint is excluded"

        mounted.hold("profiles: [")
        await reloads(descheduler, "refused", 1)
        assert (await descheduler.ready())[0] == 200
        await scene.quiet()
        assert not scene.evicted(), "the last good policy is in force"

        mounted.hold(json.dumps(limited(make_policy(TAINTS), scene.plane)))
        await reloads(descheduler, "ok", 1)
        moved = await scene.available("web", pods=6, not_on="node-1")

        assert uids(web, not_on="node-1") <= uids(moved)
        assert await descheduler.stop() == 0
