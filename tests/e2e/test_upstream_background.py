"""Upstream's end-to-end scenario of live migration, without its virtual machines.

The webhook is ours and does what KubeVirt's does with an eviction. docs/e2e.md has the number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.api import eventually
from tests.e2e.migrations import ASKED_ONLY, taking_over
from tests.e2e.objects import make_deployment
from tests.e2e.policies import make_policy

if TYPE_CHECKING:
    from tests.e2e.scene import Scene

pytestmark = [pytest.mark.e2e, pytest.mark.real_time, pytest.mark.timeout(120)]

MACHINES = 3


@pytest.mark.usefixtures("own_control_plane")
async def test_machines_migrate_one_after_the_other_under_a_limit_of_one(scene: Scene) -> None:
    arguments = {"maxPodLifeTimeSeconds": 1, "namespaces": {"include": [scene.namespace]}}
    window = {"limits": {"window": "1s"}}
    policy = make_policy("PodLifeTime", arguments, reactive=window)
    policy["maxNoOfPodsToEvictPerNamespace"] = 1
    await scene.deploy(
        make_deployment("machine", replicas=MACHINES, annotations=ASKED_ONLY), pods=MACHINES
    )
    async with (
        taking_over(scene.api, scene.plane, scene.namespace) as migrations,
        scene.running(policy, "--feature-gates=EvictionsInBackground=true"),
    ):
        for number in range(1, MACHINES + 1):

            async def asked() -> bool:
                return len(migrations.asked) >= number  # noqa: B023 - awaited in this round

            await eventually(asked, what=f"{number} evictions asked for", within=30)
            machine = migrations.asked[-1]
            await migrations.show(machine)
            await scene.quiet()
            # However old the others are, they wait for this one, which is not asked for again.
            assert len(migrations.asked) == number
            await migrations.finish(machine)
        assert len(set(migrations.asked)) == MACHINES
        assert not scene.evicted()  # the webhook has let none pass
