"""Upstream's end-to-end scenarios of RemoveFailedPods, as events make them.

The program runs first; then a Job's Pod fails. docs/e2e.md has the numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.objects import make_job
from tests.e2e.policies import make_policy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.e2e.scene import Scene

pytestmark = [pytest.mark.e2e, pytest.mark.real_time, pytest.mark.timeout(120)]


@pytest.mark.parametrize(
    ("arguments", "goes"),
    [
        pytest.param({}, True, id="defaults"),
        pytest.param({"reasons": ["ReasonDoesNotMatch"]}, False, id="another reason"),
        pytest.param({"minPodLifetimeSeconds": 3600}, False, id="too young"),
        pytest.param({"excludeOwnerKinds": ["Job"]}, False, id="jobs left out"),
    ],
)
async def test_the_pods_of_failed_jobs_go(
    scene: Scene, arguments: Mapping[str, object], goes: bool
) -> None:
    policy = make_policy("RemoveFailedPods", {"minPodLifetimeSeconds": 1, **arguments})
    async with scene.running(policy):
        await scene.create(make_job("good", ends="Succeeded"))
        await scene.pods("good", count=1, phase="Succeeded")
        await scene.create(make_job("bad", ends="Failed"))
        if goes:
            await scene.sees_evictions(1)
        else:
            await scene.pods("bad", count=1, phase="Failed")
        await scene.quiet()
        assert len(scene.evicted("bad")) == len(scene.evicted()) == int(goes)
