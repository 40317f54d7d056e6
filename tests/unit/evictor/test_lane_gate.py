"""The lane of each disruption budget: one request at a time, and none that it cannot grant."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import pytest

from reactive_descheduler.api.changes import Action, Change, ClusterEvent, Key, On
from reactive_descheduler.api.eviction import Answer, Candidate, Held, Rejection
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.surroundings import PodDisruptionBudget
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.evictor.gates.lane import LaneGate, passes_without_budget
from tests.builders import (
    Manifest,
    budget_view,
    cluster_store,
    make_budget,
    make_pod,
    pod_view,
    view,
)
from tests.unit.evictor.samples import NOW, candidate, later, outcome, pod, times

BUDGET = ("PodDisruptionBudget", "default", "web")


class Lanes:
    """A lane gate over a store; changes reach both, as in the daemon."""

    def __init__(self, *objects: Manifest, stale: bool = False) -> None:
        self.store = cluster_store(*objects)
        lister = Lister(self.store)
        self.stale = stale
        self.gate = LaneGate(
            budgets_of=lister.budgets_of, is_stale=lambda: self.stale, pod_now=lister.pod
        )

    def put(self, manifest: Manifest, at: datetime = NOW) -> list[ClusterEvent]:
        new = view(manifest)
        kind = str(manifest["kind"])
        old = self.store.get(kind, new.namespace, new.name)
        self.store.put(new)
        return list(self.gate.on_change(Change(kind, old, new), at))

    def remove(self, old: Pod | PodDisruptionBudget, at: datetime = NOW) -> list[ClusterEvent]:
        kind = type(old).__name__
        self.store.remove(old)
        return list(self.gate.on_change(Change(kind, old, None), at))

    def check(self, name: str = "b", at: datetime = NOW) -> Held | Rejection | None:
        return self.gate.check(candidate(pod(name)), at)

    def send(self, name: str = "a", at: datetime = NOW) -> Candidate:
        chosen = candidate(pod(name))
        assert self.gate.check(chosen, at) is None
        self.gate.take(chosen, at)
        return chosen

    def answer(self, answer: Answer, of: Candidate, **fields: object) -> list[ClusterEvent]:
        at = fields.pop("at", NOW)
        assert isinstance(at, datetime)
        told = outcome(answer, of, **fields)  # type: ignore[arg-type]
        return list(self.gate.on_outcome(told, at))


def budget(allowed: int = 1, **fields: object) -> Manifest:
    return make_budget("web", allowed=allowed, **fields)  # type: ignore[arg-type]


def pods(*names: str) -> list[Manifest]:
    return [make_pod(name, node="node-1") for name in names]


def wakes(held: Held | Rejection | None, events: Iterable[ClusterEvent]) -> bool:
    """Say whether one of these events returns what was held."""
    assert held is not None
    return any(
        isinstance(wake, On) and wake.action & event.action and wake.ref in (event.ref, None)
        for wake in held.wakes
        for event in events
    )


def reason(held: Held | Rejection | None) -> str:
    assert held is not None
    return held.reason


def test_pods_without_a_budget_use_no_lane() -> None:
    lanes = Lanes(*pods("a", "b"))
    lanes.send("a")

    assert lanes.check("b") is None
    assert lanes.gate.in_flight == 0


def test_a_budget_that_is_used_up_lets_a_key_of_many_turn_to_others() -> None:
    many = Key(0, "Strategy", ("unit",))
    lanes = Lanes(*pods("a"), budget(0))
    alone, among = candidate(pod("a")), candidate(pod("a"), key=many)

    assert isinstance(lanes.gate.check(alone, NOW), Held)
    refused = lanes.gate.check(among, NOW)
    assert isinstance(refused, Rejection)
    assert refused.pod == among.pod.ref
    assert wakes(refused, [ClusterEvent(Action.BUDGET_ROSE, BUDGET)])


def test_what_is_about_to_be_shown_only_holds_a_key_of_many() -> None:
    lanes = Lanes(*pods("a", "b"), budget(1))
    lanes.answer(Answer.EVICTED, lanes.send("a"))

    assert isinstance(
        lanes.gate.check(candidate(pod("b"), key=Key(0, "Strategy", ("unit",))), NOW), Held
    )


def test_one_request_is_in_flight_for_each_budget() -> None:
    other = make_pod("x", node="node-1", labels={"app": "other"})
    selector = {"matchLabels": {"app": "other"}}
    lanes = Lanes(
        *pods("a", "b"), other, budget(5), make_budget("other", selector=selector, allowed=5)
    )
    sent = lanes.send("a")
    held = lanes.check("b")
    assert "in flight" in reason(held)
    assert lanes.gate.check(candidate(pod("x", labels={"app": "other"})), NOW) is None
    opened = lanes.answer(Answer.EVICTED, sent)

    assert wakes(held, opened)
    assert lanes.check("b") is None


def test_what_was_not_sent_frees_its_lane() -> None:
    lanes = Lanes(*pods("a", "b"), budget(5))
    lanes.gate.give_back(lanes.send("a"), NOW)

    assert lanes.check("b") is None


def test_a_grant_is_a_debit_until_the_budget_shows_it() -> None:
    lanes = Lanes(*pods("a", "b"), budget(1, version="1"))
    lanes.answer(Answer.EVICTED, lanes.send("a"))
    held = lanes.check("b")
    assert "used up" in reason(held)
    # The status moves on for another reason: still no word of this grant.
    assert not lanes.put(budget(1, version="2", healthy=3))
    assert lanes.check("b") is not None
    opened = lanes.put(budget(1, version="3", disrupted=["a"]))

    assert wakes(held, opened)
    assert lanes.check("b") is None


def test_a_debit_ends_by_itself_after_ten_seconds_and_wakes_who_waits() -> None:
    lanes = Lanes(*pods("a", "b"), budget(1))
    lanes.answer(Answer.EVICTED, lanes.send("a"))
    held = lanes.check("b")

    assert isinstance(held, Held)
    assert times(held) == [later(10)]
    assert lanes.check("b", later(9.9)) is not None
    assert lanes.check("b", later(10)) is None


def test_debits_and_refusals_last_as_long_over_a_jump_of_the_clock() -> None:
    hour = timedelta(hours=1)
    lanes, refused = Lanes(*pods("a", "b"), budget(1)), Lanes(*pods("a", "b"), budget(1))
    lanes.answer(Answer.EVICTED, lanes.send("a"))
    refused.answer(Answer.BUDGET, refused.send("a"))
    lanes.gate.on_jump(hour)
    refused.gate.on_jump(hour)

    for found, lasts in ((lanes, 10), (refused, 60)):
        held = found.check("b", NOW + hour)
        assert isinstance(held, Held)
        assert times(held) == [later(lasts) + hour]


def test_a_debit_ends_when_the_pod_is_gone_but_not_while_it_terminates() -> None:
    lanes = Lanes(*pods("a", "b"), budget(1))
    lanes.answer(Answer.EVICTED, lanes.send("a"))
    held = lanes.check("b")
    lanes.put(make_pod("a", node="node-1", version="2", deleted=later(30)))
    assert lanes.check("b") is not None
    opened = lanes.remove(pod("a"))

    assert wakes(held, opened)
    assert lanes.check("b") is None


def test_a_grant_that_the_budget_showed_before_the_answer_came_is_no_debit() -> None:
    lanes = Lanes(*pods("a", "b"), budget(2))
    sent = lanes.send("a")
    lanes.put(budget(1, version="2", disrupted=["a"]))
    lanes.answer(Answer.EVICTED, sent)

    assert lanes.check("b") is None


def test_a_pod_that_is_seen_going_before_its_answer_keeps_the_lane_until_the_answer() -> None:
    lanes = Lanes(*pods("a", "b"), budget(1))
    sent = lanes.send("a")
    lanes.put(make_pod("a", node="node-1", version="2", deleted=later(30)))
    assert "in flight" in reason(lanes.check("b"))
    lanes.answer(Answer.EVICTED, sent)

    assert "used up" in reason(lanes.check("b"))


def test_a_pod_that_is_gone_before_its_answer_leaves_no_debit() -> None:
    lanes = Lanes(*pods("a", "b"), budget(1))
    sent = lanes.send("a")
    lanes.remove(pod("a"))
    lanes.answer(Answer.EVICTED, sent)

    assert lanes.check("b") is None


def test_an_unknown_outcome_keeps_the_lane_until_the_watch_tells() -> None:
    lanes = Lanes(*pods("a", "b"), budget(1))
    assert lanes.answer(Answer.UNKNOWN, lanes.send("a")) == []
    held = lanes.check("b", later(600))
    assert "in flight" in reason(held)
    going = make_pod("a", node="node-1", version="2", deleted=later(30))
    opened = lanes.put(going, later(600))

    assert wakes(held, opened)
    assert "used up" in reason(lanes.check("b", later(600))), "it was granted: a debit"
    assert lanes.check("b", later(610)) is None


def test_an_unknown_outcome_is_resolved_by_a_look() -> None:
    lanes = Lanes(*pods("a", "b"), budget(1))
    lanes.answer(Answer.UNKNOWN, lanes.send("a"))
    held = lanes.check("b")

    assert wakes(held, lanes.gate.resolved("uid-default-a"))
    assert lanes.check("b") is None


def test_a_look_at_another_pod_frees_no_lane() -> None:
    lanes = Lanes(*pods("a", "b"), budget(1))
    lanes.send("a")

    assert list(lanes.gate.resolved("uid-default-a")) == [], "its request is still in flight"
    assert list(lanes.gate.resolved("uid-default-b")) == []
    assert lanes.check("b") is not None


def test_a_budget_without_room_is_not_asked_and_wakes_when_it_rises() -> None:
    lanes = Lanes(*pods("a"), budget(0))
    held = lanes.check("a")

    assert wakes(held, [ClusterEvent(Action.BUDGET_ROSE, BUDGET)])
    assert wakes(held, [ClusterEvent(Action.BUDGET_SELECTION, BUDGET)])
    assert not wakes(held, [ClusterEvent(Action.BUDGET_STATUS, BUDGET)])
    assert isinstance(held, Held)
    assert times(held) == [later(60)]


def test_a_budget_that_was_not_observed_is_not_asked() -> None:
    lanes = Lanes(*pods("a"), budget(1, generation=2, observed=1))
    held = lanes.check("a")

    assert wakes(held, [ClusterEvent(Action.BUDGET_STATUS, BUDGET)])
    assert isinstance(held, Held)
    assert times(held) == [later(10)]


@pytest.mark.parametrize(
    ("answer", "retry_after", "wait"),
    [
        (Answer.BUDGET, None, 60),
        (Answer.BUDGET_UNOBSERVED, None, 10),
        (Answer.BUDGET_UNOBSERVED, 7.0, 7),
    ],
)
def test_what_the_server_refused_holds_the_lane(
    answer: Answer, retry_after: float | None, wait: float
) -> None:
    lanes = Lanes(*pods("a", "b"), budget(1, version="1"))
    lanes.answer(answer, lanes.send("a"), retry_after=retry_after)
    held = lanes.check("b")

    assert reason(held) == "told so"
    assert isinstance(held, Held)
    assert times(held) == [later(wait)]
    assert lanes.check("b", later(wait)) is None
    lanes.put(budget(1, version="2", healthy=3))
    assert lanes.check("b") is None, "whatever was said was said of an older status"


@pytest.mark.parametrize("answer", [Answer.BUDGET, Answer.BUDGET_UNOBSERVED])
def test_a_pod_refused_over_a_budget_that_we_do_not_see_is_left_alone(answer: Answer) -> None:
    lanes = Lanes(*pods("a", "b"))
    lanes.answer(answer, lanes.send("a"))
    held = lanes.check("a")

    assert isinstance(held, Held)
    assert times(held) == [later(10)]
    assert wakes(held, [ClusterEvent(Action.BUDGET_SELECTION, ("Namespace", "", "default"))])
    assert lanes.check("b") is None
    assert lanes.check("a", later(10)) is None


def test_two_budgets_on_a_pod_refuse_it() -> None:
    lanes = Lanes(*pods("a"), make_budget("one"), make_budget("two"))
    refused = lanes.check("a")

    assert isinstance(refused, Rejection)
    assert "one, two" in refused.reason
    assert wakes(refused, [ClusterEvent(Action.BUDGET_SELECTION, ("Namespace", "", "default"))])


def test_on_a_stale_stream_the_server_is_asked_one_request_at_a_time() -> None:
    lanes = Lanes(*pods("a", "b"), budget(0), stale=True)
    sent = lanes.send("a")
    assert "in flight" in reason(lanes.check("b"))
    lanes.answer(Answer.BUDGET, sent)

    assert reason(lanes.check("b")) == "told so"


PASSING = {
    "pending": (dict[str, object](phase="Pending"), dict[str, object](), True),
    "succeeded": ({"phase": "Succeeded"}, {}, True),
    "failed": ({"phase": "Failed"}, {}, True),
    "terminating": ({"deleted": later(30)}, {}, True),
    "ready": ({}, {}, False),
    "ready, under AlwaysAllow": ({}, {"policy": "AlwaysAllow"}, False),
    "unready, under AlwaysAllow": ({"ready": False}, {"policy": "AlwaysAllow", "healthy": 0}, True),
    "unready, budget healthy": ({"ready": False}, {"healthy": 1, "desired": 1}, True),
    "unready, budget not healthy": ({"ready": False}, {"healthy": 0, "desired": 1}, False),
    "unready, nothing desired": ({"ready": False}, {"healthy": 0, "desired": 0}, False),
}


@pytest.mark.parametrize(("of_pod", "of_budget", "passes"), PASSING.values(), ids=PASSING)
def test_pods_that_the_server_passes_without_budget_use_no_lane(
    of_pod: dict[str, object], of_budget: dict[str, object], passes: bool
) -> None:
    manifest = make_pod("a", node="node-1", **of_pod)  # type: ignore[arg-type]
    limiting = make_budget("web", allowed=0, **of_budget)  # type: ignore[arg-type]
    lanes = Lanes(manifest, limiting)

    assert passes_without_budget(pod_view(manifest), budget_view(limiting)) is passes
    assert (lanes.check("a") is None) is passes


def test_the_pod_is_read_as_it_is_now() -> None:
    lanes = Lanes(make_pod("a", node="node-1", version="2"), budget(0))
    waiting_since_it_was_pending = candidate(pod("a", phase="Pending"))

    assert lanes.gate.check(waiting_since_it_was_pending, NOW) is not None


def test_who_waits_for_a_budget_wakes_when_it_no_longer_needs_one() -> None:
    unready = make_pod("a", node="node-1", ready=False)
    ref = ("Pod", "default", "a")
    ready = Lanes(*pods("a"), budget(0)).check("a")
    sick = Lanes(unready, budget(0, healthy=0)).check("a")

    assert wakes(ready, [ClusterEvent(Action.POD_READY, ref)])
    assert wakes(sick, [ClusterEvent(Action.BUDGET_STATUS, BUDGET)]), "a healthy budget passes it"
