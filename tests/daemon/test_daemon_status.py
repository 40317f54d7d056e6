"""What `/status` and `/metrics` show of a daemon at work."""

from __future__ import annotations

import json
from typing import Any

import pytest
from structlog.typing import EventDict

from reactive_descheduler.sandbox.faults import Fault
from reactive_descheduler.server.status import render
from reactive_descheduler.strategies.pod_life_time import PodLifeTime
from tests.builders import Manifest, make_budget, make_namespace, make_node, make_pod
from tests.daemon.world import AT_ONCE, TAINTS, World, eventually, world

BOTH = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: default
  pluginConfig:
  - name: PodLifeTime
    args: {maxPodLifeTimeSeconds: 100000000}
  plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaints, PodLifeTime]}}
"""


def shown(running: World) -> Any:
    """Return what somebody who asks over HTTP reads."""
    return json.loads(render(running.status()))


def objects() -> list[Manifest]:
    return [
        make_namespace(),
        make_node("node-1"),
        make_node("node-2"),
        make_pod("a", node="node-1", labels={"app": "other"}),
        make_pod("b", node="node-1"),
        make_budget("web", allowed=0, healthy=1),
    ]


async def test_it_shows_what_is_held_by_what_and_what_is_in_flight() -> None:
    async with world(objects=objects()) as running:
        running.fault(Fault(verb="create", resource="pods/eviction", latency=5.0))
        await running.live()
        await running.taint("node-1")
        await running.rest(1)
        status = shown(running)

        (held,) = status["held"]
        (going,) = status["inFlight"]
        assert (held["pod"], held["by"], held["node"]) == ("default/b", "lane", "node-1")
        assert going["pod"] == "default/a"
        assert status["assumedGoing"] == 1
        assert status["notReady"] == []
        assert status["closed"] is None


async def test_metrics_follow_at_each_scrape() -> None:
    async with world(objects=objects()) as running:
        await running.live()
        await running.taint("node-1")
        await running.rest(5)
        for _ in range(2):  # counts that are carried over must not be added twice
            running.daemon.metrics.refresh()

        assert running.metric("held_candidates", gate="lane") == 1
        assert running.metric("remembered_candidates") == 1
        assert running.metric("cluster_events", action="NODE_TAINTS") == 1
        assert running.metric("triggered_runs", action="NODE_TAINTS") == 2
        assert running.metric("watch_synced") == 4
        assert running.metric("lanes_in_flight") == 0
        assert running.metric("bucket_tokens") == 10


async def test_it_shows_what_fails_and_what_is_degraded(monkeypatch: pytest.MonkeyPatch) -> None:
    def evaluate(*_args: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(PodLifeTime, "evaluate", evaluate)
    async with world(BOTH + AT_ONCE, objects()) as running:
        await eventually(lambda: bool(running.status()["failing"]))
        status = shown(running)

        assert status["degraded"] == ["PodLifeTime"]
        assert {each["error"] for each in status["failing"]} == {"RuntimeError: broken"}


async def test_what_holds_everything_is_shown_before_it_is_ready() -> None:
    async with world(faults=[Fault(resource="nodes", status=503)]) as running:
        await running.rest(5)
        status = shown(running)

        assert status["notReady"]
        assert {each["kind"]: each["synced"] for each in status["streams"]}["Node"] is False


async def test_it_shows_whom_a_filter_keeps_and_what_would_lift_that() -> None:
    found = [make_namespace(), make_node("node-1"), make_node("node-2")]
    found += [make_pod(f"bare-{number}", node="node-1", owners=()) for number in range(60)]
    async with world(BOTH + AT_ONCE, found) as running:
        await running.live()
        await running.taint("node-1")
        await running.rest(1)
        status = shown(running)

        assert status["rejectedBy"] == {"FailedBarePods": 60}
        assert status["notYet"] == 60, "by PodLifeTime they are merely too young"
        assert len(status["rejected"]) == 50
        (one,) = [each for each in status["rejected"] if each["pod"] == "default/bare-0"]
        assert one == {
            "pod": "default/bare-0",
            "node": "node-1",
            "profile": "default",
            "strategy": "RemovePodsViolatingNodeTaints",
            "by": "FailedBarePods",
            "why": one["why"],
            "liftedWhen": one["liftedWhen"],
        }
        assert one["why"]
        assert "Pod default/bare-0 gets other annotations" in one["liftedWhen"][0]


async def test_why_a_pod_stays_is_logged_when_it_is_news(logs: list[EventDict]) -> None:
    def stays() -> list[EventDict]:
        return [line for line in logs if line["event"] == "Pod stays"]

    found = [
        make_namespace(),
        make_node("node-1"),
        make_node("node-2"),
        make_pod("bare", node="node-1", owners=()),
    ]
    async with world(BOTH + AT_ONCE, found) as running:
        await running.live()
        assert stays() == [], "that it is not old enough is no news"
        await running.taint("node-1")
        await running.rest(1)
        (line,) = stays()
        assert {key: line[key] for key in ("v", "pod", "strategy", "profile", "by")} == {
            "v": 4,
            "pod": "default/bare",
            "strategy": "RemovePodsViolatingNodeTaints",
            "profile": "default",
            "by": "FailedBarePods",
        }
        await running.taint("node-1", "another")  # looked at again, with the same end
        await running.rest(1)
        assert len(stays()) == 1
        change = {"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}
        await running.client.patch("pods", "bare", change, namespace="default")
        await running.rest(1)
        assert [each["by"] for each in stays()] == ["FailedBarePods", "mirrorPod"]
        await running.untaint("node-1")
        await running.rest(1)
        await running.taint("node-1")
        await running.rest(1)
        assert [each["by"] for each in stays()] == ["FailedBarePods", "mirrorPod", "mirrorPod"]


async def test_it_shows_which_corrections_are_in_force() -> None:
    policy = TAINTS + AT_ONCE.replace("{", "{corrections: [missingPluginConfig, booking], ", 1)
    async with world(policy) as running:
        await running.live()
        assert shown(running)["policy"]["corrections"] == ["booking", "missingPluginConfig"]


async def test_it_shows_what_is_doubtful_about_the_policy() -> None:
    async with world(TAINTS + AT_ONCE + "maxNoOfPodsToEvictTotal: 0\n") as running:
        await running.live()
        (warning,) = shown(running)["policy"]["warnings"]
    assert warning["path"] == "maxNoOfPodsToEvictTotal"
    assert "[limitZero]" in warning["message"]


async def test_names_are_spelt_in_one_way_and_times_can_be_understood() -> None:
    async with world() as running:
        await running.live()
        await running.rest(5)
        status = shown(running)

    assert not [name for name in _names(status) if "_" in name]
    for stream in status["streams"]:
        assert 0 <= stream["lastByteAge"] <= 30
        assert 0 <= stream["inStepAge"] <= 30
    assert status["policy"]["file"]["loadedAt"] == "2026-01-01T00:00:00Z"


def _names(value: Any) -> set[str]:
    """Return the names of all fields but of those that are data: actions of cluster events."""
    if isinstance(value, list):
        return set().union(*map(_names, value))
    if not isinstance(value, dict):
        return set()
    return set(value).union(*(_names(each) for name, each in value.items() if name != "events"))
