"""The first full pass is over before anything is sent and before the daemon is ready."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reactive_descheduler.client.evictions import EvictionAnswer, EvictionClient
from tests.builders import make_namespace, make_node, make_pod, taint
from tests.daemon.world import World, eventually, world

PODS = 4_000


@pytest.mark.real_time  # on virtual time the loop never has to give way
@pytest.mark.timeout(60)
async def test_everything_is_looked_at_before_the_first_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    objects = [
        make_namespace(),
        make_node("node-1", taints=[taint()]),
        make_node("node-2"),
        *(make_pod(f"p{number}", node="node-1") for number in range(PODS)),
    ]
    seen: list[int] = []
    worlds: list[World] = []
    usual = EvictionClient.evict

    async def evict(
        self: EvictionClient,
        namespace: str,
        name: str,
        *,
        uid: str,
        grace_period_seconds: int | None = None,
        annotations: Mapping[str, str],
        dry_run: bool = False,
    ) -> EvictionAnswer:
        seen.append(sum(worlds[0].daemon.core.loop.runs.values()))
        return await usual(
            self,
            namespace,
            name,
            uid=uid,
            grace_period_seconds=grace_period_seconds,
            annotations=annotations,
            dry_run=dry_run,
        )

    monkeypatch.setattr(EvictionClient, "evict", evict)
    async with world(objects=objects) as running:
        worlds.append(running)
        await eventually(lambda: bool(seen))

    assert seen[0] >= PODS
