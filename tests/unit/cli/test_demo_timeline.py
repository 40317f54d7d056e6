"""The steps that the demo tells: out of decisions, answers and what its own watch sees of Pods."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reactive_descheduler.api.changes import Key
from reactive_descheduler.api.eviction import Answer, Candidate, Cause, Decision, EvictionOutcome
from reactive_descheduler.cli.demo_timeline import Observer, Step, Timeline
from reactive_descheduler.kit.clock import ManualClock
from tests.builders import Manifest, make_pod, owner, pod_view

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Stand:
    """An observer and what it has told."""

    def __init__(self) -> None:
        self.timeline = Timeline(ManualClock(NOON))
        self.steps: list[Step] = []
        self.timeline.listeners.append(self.steps.append)
        self.observer = Observer(self.timeline)

    @property
    def told(self) -> list[tuple[str, str, str]]:
        return [(step.kind, step.pod, step.text) for step in self.steps]

    def decide(
        self,
        name: str,
        verdict: str,
        *,
        by: str = "PodLifeTime",
        reason: str = "old",
        strategy: str = "PodLifeTime",
        seen: datetime | None = None,
        until: datetime | None = None,
    ) -> None:
        offered = candidate(name, strategy)
        decision = Decision(NOON, "default", offered, verdict, by, reason, seen, until)
        self.observer.on_decision(decision)

    def answer(self, name: str, answer: Answer, message: str = "") -> None:
        self.observer.on_outcome(
            EvictionOutcome(candidate(name), answer, None, message, None, NOON, NOON)
        )


@pytest.fixture
def stand() -> Stand:
    return Stand()


def document(name: str, *, app: str = "web", node: str = "node-1", **more: object) -> Manifest:
    return make_pod(name, uid=f"uid-{name}", node=node, owners=[owner(app)], **more)  # type: ignore[arg-type]


def candidate(name: str, strategy: str = "PodLifeTime") -> Candidate:
    cause = Cause("age", (f"uid-{name}",), ())
    key = Key(0, strategy, (f"uid-{name}",))
    return Candidate(key, pod_view(document(name)), cause, "old")


def test_an_eviction_is_told_from_the_change_to_the_answer(stand: Stand) -> None:
    stand.decide("web-1", "accepted", seen=NOON)
    stand.answer("web-1", Answer.EVICTED)
    assert stand.told == [
        ("seen", "", "by the descheduler, on its watch"),
        ("to go", "web-1", "old"),
        ("evicted", "web-1", "from node-1"),
    ]
    assert {step.seen for step in stand.steps} == {NOON}


def test_a_refusal_says_why(stand: Stand) -> None:
    stand.decide("web-1", "accepted")
    stand.answer("web-1", Answer.BUDGET, "no room")
    stand.decide("web-1", "rejected", by="nodeFit", reason="fits nowhere")
    assert stand.told[1:] == [
        ("refused", "web-1", "budget: no room"),
        ("rejected", "web-1", "fits nowhere"),
    ]


def test_a_hold_is_told_once_until_its_reason_is_another(stand: Stand) -> None:
    for reason in ("full", "full", "not counted yet", "full"):
        stand.decide("web-1", "held", by="lane", reason=reason)
    assert [text for _, _, text in stand.told] == [
        "by lane: full",
        "by lane: not counted yet",
        "by lane: full",
    ]


def test_a_hold_says_until_when_if_time_ends_it(stand: Stand) -> None:
    until = NOON + timedelta(milliseconds=250)
    stand.decide("web-1", "held", by="settle", reason="too new", until=until)
    assert stand.told == [("held", "web-1", "by settle until 12:00:00.250: too new")]


def test_each_strategy_sees_a_change(stand: Stand) -> None:
    for strategy in ("PodLifeTime", "RemovePodsViolatingNodeTaints", "PodLifeTime"):
        stand.decide("web-1", "accepted", strategy=strategy, seen=NOON)
    assert [step.strategy for step in stand.steps if step.kind == "seen"] == [
        "PodLifeTime",
        "RemovePodsViolatingNodeTaints",
    ]


def test_one_change_is_seen_once_however_many_pods_it_concerns(stand: Stand) -> None:
    for number, milliseconds in enumerate((0, 1, 49, 60)):
        seen = NOON + timedelta(milliseconds=milliseconds)
        stand.decide(f"web-{number}", "accepted", seen=seen)
    assert [kind for kind, _, _ in stand.told].count("seen") == 2


def test_a_replacement_is_told_when_it_is_ready(stand: Stand) -> None:
    stand.decide("web-1", "accepted", seen=NOON)
    stand.steps.clear()
    running, going = document("web-1"), document("web-1", deleted=NOON)
    made, ready = document("web-2", node="", ready=False), document("web-2", node="node-2")
    other = document("api-1", app="api", node="node-2")
    stand.observer.on_pod(running, going)
    stand.observer.on_pod(None, made)
    stand.observer.on_pod(None, other)
    stand.observer.on_pod(made, ready)
    stand.observer.on_pod(ready, document("web-2", node="node-2", labels={"a": "b"}))
    assert stand.told == [
        ("ready", "api-1", "on node-2"),
        ("ready", "web-2", "on node-2, in place of web-1"),
    ]
    assert [(step.replaces, step.seen) for step in stand.steps] == [
        ("", None),
        ("uid-web-1", NOON),
    ]


def test_pods_that_others_delete_are_nobodys_replacement(stand: Stand) -> None:
    stand.observer.on_pod(document("web-1"), document("web-1", deleted=NOON))
    stand.observer.on_pod(document("web-1", deleted=NOON), None)
    stand.observer.on_pod(None, document("web-2", node="node-2"))
    assert stand.told == [
        ("deleted", "web-1", "not by the descheduler, from node-1"),
        ("ready", "web-2", "on node-2"),
    ]
    assert [step.replaces for step in stand.steps] == ["", ""]


async def test_a_scene_waits_for_a_step(stand: Stand) -> None:
    with stand.timeline.expecting(lambda step: step.kind == "held") as held:
        stand.timeline.change("something")
        assert not held.is_set()
        stand.decide("web-1", "held", by="lane", reason="full")
        await held.wait()
    assert len(stand.timeline.listeners) == 1
