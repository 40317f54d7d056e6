"""One failure stays one: strategies that raise, and what else must not stop the daemon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import pytest

from reactive_descheduler.api.changes import Change, Key
from reactive_descheduler.api.eviction import EvictionOutcome
from reactive_descheduler.app.process import own_pod
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.framework.strategy import Evaluation, Scope, View
from reactive_descheduler.sandbox.faults import Fault
from reactive_descheduler.strategies.remove_pods_having_too_many_restarts import (
    RemovePodsHavingTooManyRestarts,
)
from tests.builders import make_namespace, make_node, make_pod
from tests.daemon.world import AT_ONCE, eventually, world

TWO = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: default
  pluginConfig:
  - name: RemovePodsHavingTooManyRestarts
    args: {podRestartThreshold: 5}
  plugins:
    deschedule:
      enabled: [RemovePodsViolatingNodeTaints, RemovePodsHavingTooManyRestarts]
"""


def names(of: object) -> list[str]:
    return [str(each["strategy"]) for each in cast(list[Mapping[str, object]], of)]


def _evaluate(self: object, view: View, key: Key, /) -> Evaluation:
    raise RuntimeError("this strategy is broken")


def _keys_for(self: object, scope: Scope, change: Change, lister: Lister, /) -> list[Key]:
    raise RuntimeError("this strategy is broken")


def _keys_of(self: object, lister: Lister, /) -> list[Key]:
    raise RuntimeError("this strategy is broken")


@pytest.mark.parametrize(
    ("method", "broken"),
    [("evaluate", _evaluate), ("keys_for", _keys_for), ("keys_of", _keys_of)],
    ids=["evaluate", "keys_for", "keys_of"],
)
async def test_a_strategy_that_raises_is_told_and_the_others_go_on(
    method: str, broken: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RemovePodsHavingTooManyRestarts, method, broken)
    async with world(TWO + AT_ONCE) as running:
        await running.live()
        await running.taint("node-1")
        await running.rest(10)

        assert running.answers() == [("a", "evicted")]
        assert running.daemon.not_ready() == []
        if method != "keys_for":  # which is taken for "look at everything"
            assert set(names(running.status()["failing"])) == {"RemovePodsHavingTooManyRestarts"}
            assert running.status()["degraded"] == ["RemovePodsHavingTooManyRestarts"]
            assert running.metric("evaluate_errors") > 0
        assert running.metric("task_crashes") == 0


async def test_a_degraded_strategy_is_told_once_by_a_warning_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(RemovePodsHavingTooManyRestarts, "evaluate", _evaluate)
    async with world(
        TWO + AT_ONCE, own_pod=own_pod({"POD_NAME": "me", "POD_NAMESPACE": "default"})
    ) as running:
        await running.live()
        await running.rest(60)
        events, _ = await running.client.list("events")

        (event,) = events
        assert (event["type"], event["reason"]) == ("Warning", "StrategyDegraded")
        assert "RemovePodsHavingTooManyRestarts" in str(event["message"])


async def test_a_strategy_that_fails_on_one_pod_of_many_is_not_degraded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = RemovePodsHavingTooManyRestarts.evaluate

    def evaluate(self: RemovePodsHavingTooManyRestarts, view: View, key: Key, /) -> Evaluation:
        if key.unit == ("uid-default-a",):
            raise RuntimeError("this Pod is too much")
        return usual(self, view, key)

    monkeypatch.setattr(RemovePodsHavingTooManyRestarts, "evaluate", evaluate)
    async with world(TWO + AT_ONCE) as running:
        await running.live()
        await running.rest(5)

        assert len(names(running.status()["failing"])) == 1
        assert running.status()["degraded"] == []


async def test_a_hook_that_raises_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from reactive_descheduler.app import eviction_events

    def on_outcome(self: object, outcome: EvictionOutcome, /) -> None:
        raise RuntimeError("this hook is broken")

    monkeypatch.setattr(eviction_events.EvictionEventsHook, "on_outcome", on_outcome)
    async with world() as running:
        await running.live()
        await running.taint("node-1")
        await running.rest()

        assert running.answers() == [("a", "evicted")]
        assert running.metric("hook_errors") == 1


async def test_events_that_the_server_refuses_stop_nothing() -> None:
    async with world() as running:
        running.fault(Fault(verb="create", resource="events.events.k8s.io", status=403))
        running.fault(Fault(verb="create", resource="events", status=403))
        await running.live()
        await running.taint("node-1")
        await running.rest(20)

        assert running.answers() == [("a", "evicted")]
        assert running.daemon.not_ready() == []


async def test_an_eviction_is_told_by_an_event_on_the_pod() -> None:
    async with world() as running:
        await running.live()
        await running.taint("node-1")
        await running.rest(5)
        events, _ = await running.client.list("events")

        (event,) = events
        assert event["reason"] == "RemovePodsViolatingNodeTaints"
        assert cast(Mapping[str, object], event["involvedObject"])["name"] == "a"


async def test_a_single_ready_node_is_left_alone() -> None:
    objects = [
        make_namespace(),
        make_node("node-1"),
        make_node("node-2", ready=False),
        make_pod("a", node="node-1"),
    ]
    async with world(objects=objects) as running:
        await running.live()
        await running.taint("node-1")
        await running.rest(10)
        assert running.answers() == []
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        await running.client.patch("nodes", "node-2", ready, subresource="status")

        await eventually(lambda: running.answers() == [("a", "evicted")], within=5)


async def test_heartbeats_start_no_strategy() -> None:
    async with world() as running:
        await running.live()
        await running.rest(2)
        before = running.status()["runs"]
        for number in range(200):
            time = f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z"
            beat = {"type": "Ready", "status": "True", "lastHeartbeatTime": time}
            await running.client.patch(
                "nodes", "node-1", {"status": {"conditions": [beat]}}, subresource="status"
            )
            await running.rest(1)

        assert running.status()["runs"] == before
