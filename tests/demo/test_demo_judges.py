"""A scene in which another Pod goes too is not passed, whatever else went right."""

from __future__ import annotations

import pytest

from reactive_descheduler.cli.demo_play import play
from reactive_descheduler.cli.demo_scenes import SCENES, Act, Scene
from reactive_descheduler.cli.demo_stage import Stage, open_stage

pytestmark = pytest.mark.real_time

RESTARTS = next(scene for scene in SCENES if scene.name == "restarts")


async def test_a_pod_that_should_have_stayed_fails_the_scene() -> None:
    deleted = ""

    async def play_and_meddle(stage: Stage) -> Act:
        nonlocal deleted
        deleted = next(name for _, name in sorted(stage.pods.objects) if name.startswith("web-"))
        await stage.client.delete("pods", deleted, namespace="default")
        return await RESTARTS.play(stage)

    async with open_stage() as stage:
        meddled = await play(stage, Scene("x", "X", RESTARTS.strategy, play_and_meddle))
        right = await play(stage, RESTARTS)
    assert meddled.problems == (f"{deleted} should have stayed",)
    assert right.problems == ()
    assert right.first("evicted") is not None
