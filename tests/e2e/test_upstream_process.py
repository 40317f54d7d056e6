"""Upstream's end-to-end scenarios of the process itself. docs/e2e.md has the numbers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.e2e.descheduler import running_descheduler

if TYPE_CHECKING:
    from tests.e2e.scene import Scene

pytestmark = [pytest.mark.e2e, pytest.mark.real_time, pytest.mark.timeout(60)]


async def test_an_interval_of_0_is_one_pass_also_of_an_empty_policy(scene: Scene) -> None:
    policy = scene.directory / "policy.json"
    policy.write_text(
        json.dumps({"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy"})
    )
    async with running_descheduler(
        "--descheduling-interval=0",
        policy=policy,
        kubeconfig=scene.plane.kubeconfig(),
        log=scene.directory / "run.log",
    ) as descheduler:
        assert await descheduler.wait(within=30) == 0
