"""Changes that once were missed, each found by the random ones of `tests/property`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice

import pytest

from reactive_descheduler.api.changes import Key, WatchEvent, WatchEventType
from reactive_descheduler.api.eviction import Answer, EvictionOutcome
from reactive_descheduler.controller import bus
from reactive_descheduler.evictor.queue import Queued
from tests.builders import (
    Manifest,
    make_budget,
    make_namespace,
    make_node,
    make_pod,
    taint,
    view,
)
from tests.property.running_core import RunningCore

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TAINTS = "RemovePodsViolatingNodeTaints"
AFFINITY = "RemovePodsViolatingNodeAffinity"
SPREAD = "RemovePodsViolatingTopologySpreadConstraint"


class Daemon:
    """A core at rest after every event; settle and debounce are 0 unless told."""

    def __init__(
        self,
        *objects: Manifest,
        strategies: dict[str, Manifest],
        evictor: Manifest | None = None,
        settle: str = "0s",
        corrections: str = "all",
        **policy: object,
    ) -> None:
        configured = [{"name": name, "args": args} for name, args in strategies.items()]
        profile = {
            "name": "p",
            "pluginConfig": [{"name": "DefaultEvictor", "args": evictor or {}}, *configured],
            "plugins": {
                "deschedule": {"enabled": [each for each in strategies if each != SPREAD]},
                "balance": {"enabled": [each for each in strategies if each == SPREAD]},
            },
        }
        reactive = {
            "debounce": {"quiet": "0s", "maxWait": "0s"},
            "settle": {"default": settle, "transient": settle},
            "corrections": corrections,
        }
        self.run = RunningCore(
            json.dumps(
                {
                    "apiVersion": "descheduler/v1alpha2",
                    "kind": "DeschedulerPolicy",
                    "profiles": [profile],
                    "reactive": reactive,
                    **policy,
                }
            )
        )
        self.version = 1
        self.happen(*objects)
        self.run.core.go_live()
        self.run.rest()

    def happen(self, *objects: Manifest, gone: bool = False) -> None:
        for manifest in objects:
            self.version += 1
            metadata = manifest["metadata"]
            assert isinstance(metadata, dict)
            metadata["resourceVersion"] = str(self.version)
            kind = WatchEventType.DELETED if gone else WatchEventType.MODIFIED
            self.run.core.informer.apply(WatchEvent(kind, view(manifest), str(self.version)))
        self.run.rest()

    def offered(self) -> set[str]:
        """Return the names of the Pods that are remembered as candidates."""
        parked = self.run.core.parking.values()
        return {each.pod.name for evaluated in parked for each in evaluated.offered}

    def reasons(self) -> set[str]:
        """Return by which filters and gates the refusals that are remembered were."""
        parked = self.run.core.parking.values()
        return {each.by for evaluated in parked for each in evaluated.rejected}

    def requests(self) -> list[Queued]:
        """Start whatever may go."""
        started = []
        while (entry := self.run.core.dispatcher.next_request()) is not None:
            started.append(entry)
        return started

    def answer(self, entry: Queued, answer: Answer) -> None:
        now = self.run.clock.now()
        outcome = EvictionOutcome(entry.candidate, answer, None, "", None, now, now)
        self.run.core.dispatcher.finish(entry, outcome)
        self.run.rest()


def prefers(zone: str) -> Manifest:
    expression = {"key": "zone", "operator": "In", "values": [zone]}
    return {
        "nodeAffinity": {
            PREFERRED: [{"weight": 1, "preference": {"matchExpressions": [expression]}}]
        }
    }


def test_second_budget_refuses_although_the_settle_time_holds() -> None:
    daemon = Daemon(
        make_node("n1", taints=[taint()]),
        make_node("n2"),
        make_pod(node="n1"),
        strategies={TAINTS: {}},
        settle="5s",
    )
    assert daemon.offered() == {"web-1"}
    daemon.happen(make_budget("b1"), make_budget("b2"))
    assert daemon.reasons() == {"lane"}


def test_reason_follows_when_an_earlier_filter_begins_to_refuse() -> None:
    evictor = {"nodeFit": True, "namespaceLabelSelector": {"matchLabels": {"team": "red"}}}
    daemon = Daemon(
        make_node("n1", taints=[taint()]),
        make_node("n2", taints=[taint()]),
        make_namespace(labels={"team": "red"}),
        make_pod(node="n1"),
        strategies={TAINTS: {}},
        evictor=evictor,
    )
    assert daemon.reasons() == {"nodeFit"}
    daemon.happen(make_namespace(labels={"team": "blue"}))
    assert daemon.reasons() == {"namespaceLabelSelector"}


def test_room_beside_a_namesake_is_seen_by_a_pod_with_anti_affinity() -> None:
    """Upstream tells a Pod from its neighbours by name alone."""
    term = {
        "labelSelector": {"matchLabels": {"app": "web"}},
        "topologyKey": "kubernetes.io/hostname",
        "namespaces": ["other"],
    }
    other = make_pod("stays", namespace="other", node="n2")
    daemon = Daemon(
        make_node("n1", taints=[taint()]),
        make_node("n2"),
        make_pod("namesake", node="n1", affinity={"podAntiAffinity": {REQUIRED: [term]}}),
        make_pod("namesake", namespace="other", node="n2"),
        other,
        strategies={TAINTS: {}},
        evictor={"nodeFit": True},
        corrections="none",
    )
    assert daemon.offered() == set()
    daemon.happen(other, gone=True)
    assert daemon.offered() == {"namesake"}


def test_own_full_node_that_would_take_the_pod_again_is_seen() -> None:
    """Upstream's preferred affinity is content with the Pod's own node, where it needs no room."""
    own = {"name": "n1", "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "1"}}
    daemon = Daemon(
        make_node(**own, unschedulable=True),  # type: ignore[arg-type]
        make_node("n2", labels={"zone": "b"}, unschedulable=True),
        make_pod(node="n1", affinity=prefers("b")),
        strategies={AFFINITY: {"nodeAffinityType": [PREFERRED]}},
        corrections="none",
    )
    assert daemon.reasons() == {AFFINITY}
    daemon.happen(make_node(**own))  # type: ignore[arg-type]
    assert daemon.offered() == {"web-1"}


def test_room_on_a_full_node_that_the_pod_prefers_is_seen() -> None:
    full = {"labels": {"zone": "b"}, "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "1"}}
    leaving = make_pod("leaves", node="n2")
    daemon = Daemon(
        make_node("n1"),
        make_node("n2", **full),  # type: ignore[arg-type]
        leaving,
        make_pod(node="n1", affinity=prefers("b")),
        strategies={AFFINITY: {"nodeAffinityType": [PREFERRED]}},
    )
    assert daemon.reasons() == {AFFINITY}
    daemon.happen(leaving, gone=True)
    assert daemon.offered() == {"web-1"}


def test_whole_pass_that_is_half_done_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that it has looked at already would be left as the state was then."""
    monkeypatch.setattr(bus, "_SLICE", 3)
    pods = [make_pod(f"web-{number}", node="n1") for number in range(8)]
    daemon = Daemon(make_node("n1", taints=[taint()]), *pods, strategies={TAINTS: {}})
    informer, second = daemon.run.core.informer, view(make_node("n2"))
    informer.apply(WatchEvent(WatchEventType.ADDED, second, "1"))
    daemon.run.drain(6)
    assert 0 < len(daemon.offered()) < len(pods)
    informer.apply(WatchEvent(WatchEventType.DELETED, second, "2"))
    daemon.run.rest()
    assert daemon.offered() == set()


def test_many_keys_that_one_change_wakes_are_taken_by_slices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bus, "_SLICE", 3)
    pods = [make_pod(f"web-{number}", node="n1") for number in range(10)]
    tainted, cordoned = make_node("n1", taints=[taint()]), make_node("n2", unschedulable=True)
    daemon = Daemon(tainted, cordoned, *pods, strategies={TAINTS: {}}, evictor={"nodeFit": True})
    assert daemon.reasons() == {"nodeFit"}
    core = daemon.run.core
    core.informer.apply(WatchEvent(WatchEventType.MODIFIED, view(make_node("n2", version="9")), ""))
    assert sum(core.queue.pending(key) for key in core.parking) == 3
    daemon.happen(pods[0], gone=True)

    assert daemon.offered() == {f"web-{number}" for number in range(1, 10)}
    assert core.queue.next_due() is None


def spread_over_zones() -> Daemon:
    """Ten workloads, each with a Pod in a zone too few."""
    pods = [
        make_pod(
            f"w{number}-{replica}",
            node="n1",
            labels={"app": f"w{number}"},
            spread=[
                {
                    "maxSkew": 1,
                    "topologyKey": "zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"app": f"w{number}"}},
                }
            ],
        )
        for number in range(10)
        for replica in range(2)
    ]
    nodes = [make_node(name, labels={"zone": "a"}) for name in ("n1", "n2")]
    return Daemon(*nodes, *pods, strategies={SPREAD: {}})


SECOND_ZONE = WatchEvent(
    WatchEventType.MODIFIED, view(make_node("n2", labels={"zone": "b"}, version="9")), ""
)


def test_many_groups_that_a_node_concerns_are_taken_by_slices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bus, "_SLICE", 3)
    daemon = spread_over_zones()
    core = daemon.run.core
    runs = core.loop.runs[SPREAD]
    (strategy,) = (strategy for _, strategy in daemon.run.strategies)
    every = list(strategy.keys_of(core.live))
    core.informer.apply(SECOND_ZONE)
    assert sum(map(core.queue.pending, every)) == 3
    for gone in core.lister.pods_in("default")[-2:]:  # a group that waits is no more
        core.informer.apply(WatchEvent(WatchEventType.DELETED, gone, ""))
    daemon.run.rest()

    assert daemon.offered() == {f"w{number}-0" for number in range(9)}
    assert core.loop.runs[SPREAD] - runs <= 11
    assert core.queue.next_due() is None


def test_failure_amid_the_keys_of_a_change_means_all_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus, "_SLICE", 3)
    daemon = spread_over_zones()
    core = daemon.run.core
    (strategy,) = (strategy for _, strategy in daemon.run.strategies)
    every = strategy.keys_of(core.live)

    def failing(*_args: object) -> Iterator[Key]:
        yield from islice(every, 5)
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(strategy, "keys_for", failing)
        core.informer.apply(SECOND_ZONE)
        daemon.run.rest()

    assert daemon.offered() == {f"w{number}-0" for number in range(10)}
    assert core.bus.statistics().narrow_errors == {SPREAD: 1}


def test_whole_pass_goes_on_while_pods_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus, "_SLICE", 3)
    pods = [make_pod(f"web-{number}", node="n1") for number in range(9)]
    daemon = Daemon(make_node("n1"), make_node("n2"), *pods, strategies={TAINTS: {}})
    core = daemon.run.core
    runs = core.loop.runs[TAINTS]
    core.resync()
    daemon.run.drain(2)
    daemon.happen(pods[0], pods[8], gone=True)
    daemon.happen(make_pod("web-9", node="n1"))

    assert core.loop.failures == {}
    assert core.loop.runs[TAINTS] - runs == 10, "each that was there, and the new one"


def test_whole_pass_looks_once_at_what_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus, "_SLICE", 3)
    pods = [make_pod(f"web-{number}", node="n1") for number in range(8)]
    tainted = make_node("n1", taints=[taint()])
    daemon = Daemon(tainted, make_node("n2"), *pods, strategies={TAINTS: {}}, settle="1h")
    core = daemon.run.core
    assert len(core.parking) == len(pods)
    runs = core.loop.runs[TAINTS]
    core.resync()
    daemon.run.rest()

    assert core.loop.runs[TAINTS] - runs == len(pods)


def twice_wanted() -> Daemon:
    """One Pod that two strategies want, as soon as time has passed."""
    daemon = Daemon(
        make_node("n1", taints=[taint()]),
        make_node("n2"),
        make_pod("web-1", node="n1"),
        make_pod("web-2", node="n2", labels={"app": "db"}),
        strategies={
            TAINTS: {},
            "PodLifeTime": {
                "maxPodLifeTimeSeconds": 0,
                "labelSelector": {"matchLabels": {"app": "web"}},
            },
        },
        evictor={"minReplicas": 2},
    )
    daemon.run.wait(2)
    return daemon


def test_pod_that_two_strategies_want_is_asked_for_once() -> None:
    daemon = twice_wanted()
    assert [entry.candidate.pod.name for entry in daemon.requests()] == ["web-1"]


def test_second_strategy_asks_when_the_request_of_the_first_is_refused() -> None:
    daemon = twice_wanted()
    (entry,) = daemon.requests()
    daemon.run.rest()
    daemon.answer(entry, Answer.BUDGET)
    keys = [queued.candidate.key.strategy for queued in daemon.run.core.evictions.candidates()]
    assert sorted(keys) == ["PodLifeTime", TAINTS]


@pytest.mark.parametrize("answer", [Answer.EVICTED, Answer.UNKNOWN, Answer.SERVER_ERROR])
def test_replicas_count_again_when_a_pod_no_longer_counts_as_gone(answer: Answer) -> None:
    daemon = twice_wanted()
    (entry,) = daemon.requests()
    # A judgement that is made while web-1 counts as gone: web-2 is the last of its owner.
    daemon.happen(make_node("n2", taints=[taint()]))
    daemon.answer(entry, answer)
    if answer is not Answer.SERVER_ERROR:
        assert daemon.reasons() == {"minReplicas"}
        web_1 = make_pod("web-1", node="n1", deleted="2026-01-01T00:00:02Z")
        daemon.happen(web_1)
    assert "web-2" in daemon.offered()


def test_answer_that_comes_after_the_watch_assumes_nothing() -> None:
    daemon = twice_wanted()
    (entry,) = daemon.requests()
    daemon.happen(make_pod("web-1", node="n1", deleted="2026-01-01T00:00:02Z"))
    assert set(daemon.run.core.assumed.pods) == {entry.candidate.pod.uid}
    daemon.answer(entry, Answer.UNKNOWN)
    assert not daemon.run.core.assumed.pods
