"""Replacements: what an eviction is still waited for, for how long, and what counts for which."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reactive_descheduler.api.changes import Action, Change, ClusterEvent
from reactive_descheduler.api.eviction import Answer
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.evictor.gates.replacements import ReplacementsGate
from tests.builders import owner
from tests.unit.evictor.samples import NOW, candidate, later, outcome, pod


class Waiting:
    """The gate, with evictions in background by UID."""

    def __init__(self) -> None:
        self.in_background: set[str] = set()
        self.gate = ReplacementsGate(
            timeout=timedelta(minutes=5), goes_on=self.in_background.__contains__
        )

    def start(self, *names: str, at: float = 0, workload: str = "web") -> None:
        for name in names:
            of = pod(name, owners=[owner(workload)] if workload else [])
            self.gate.take(candidate(of), later(at))
            self.answer(name, Answer.EVICTED, at=at)

    def ask(self, *names: str) -> None:
        """Start requests that are not answered yet."""
        for name in names:
            self.gate.take(candidate(pod(name)), NOW)

    def answer(self, name: str, answer: Answer, *, at: float = 1) -> list[str]:
        of = candidate(pod(name))
        if answer is Answer.BACKGROUND:
            self.in_background.add(of.pod.uid)
        return names_of(self.gate.on_outcome(outcome(answer, of), later(at)))

    def leaves(self, name: str, *, at: float = 1) -> list[str]:
        return names_of(self.gate.on_change(Change("Pod", pod(name), None), later(at)))

    def changes(self, new: Pod, *, at: float) -> list[str]:
        return names_of(self.gate.on_change(Change("Pod", pod(new.name), new), later(at)))

    def comes(self, name: str, *, at: float, made: float | None = None) -> list[str]:
        """Let a Pod of the workload be bound that was made then; by default just before."""
        arrived = pod(name, node="node-2", created=later(at if made is None else made))
        return names_of(self.gate.on_change(Change("Pod", None, arrived), later(at)))

    def awaited(self, at: float) -> list[str]:
        return [each.candidate.pod.name for each in self.gate.awaited(later(at))]


def names_of(events: object) -> list[str]:
    assert isinstance(events, list | tuple)
    assert all(isinstance(e, ClusterEvent) and e.action is Action.REPLACED for e in events)
    return [event.ref[2] for event in events]


@pytest.fixture
def waiting() -> Waiting:
    return Waiting()


def expire(waiting: Waiting, at: float) -> list[str]:
    return names_of(list(waiting.gate.expire(later(at))))


@pytest.mark.parametrize("first", ["leaves", "replaced"])
def test_it_ends_with_both_the_pod_gone_and_its_replacement_bound(
    waiting: Waiting, first: str
) -> None:
    waiting.start("a")
    steps = [lambda: waiting.leaves("a"), lambda: waiting.comes("b", at=2)]
    if first == "replaced":
        steps.reverse()
    assert steps[0]() == ["a"]
    assert waiting.awaited(3) == ["a"]
    assert steps[1]() == ["a"]
    assert waiting.awaited(3) == []
    assert not waiting.gate.awaits("uid-default-a")


def test_pod_without_an_owner_is_waited_for_until_it_is_gone(waiting: Waiting) -> None:
    waiting.start("a", workload="")
    assert waiting.comes("b", at=2) == []
    waiting.leaves("a")
    assert waiting.awaited(2) == []


@pytest.mark.parametrize("kind", ["Job", "Node"])
def test_owner_that_replaces_nobody_is_not_waited_for(waiting: Waiting, kind: str) -> None:
    waiting.gate.take(candidate(pod("a", owners=[owner("batch", kind=kind)])), NOW)
    waiting.leaves("a")
    assert waiting.awaited(2) == []


def test_owner_that_makes_none_is_waited_for_until_the_time_out(waiting: Waiting) -> None:
    waiting.start("a")
    waiting.leaves("a", at=10)
    assert waiting.awaited(309) == ["a"]
    assert expire(waiting, 309) == []
    assert waiting.awaited(310) == []
    assert expire(waiting, 310) == ["a"]


def test_pod_that_never_goes_is_waited_for_until_the_time_out(waiting: Waiting) -> None:
    waiting.start("a")
    waiting.comes("b", at=2)
    assert waiting.awaited(299) == ["a"]
    assert waiting.awaited(300) == []


def test_pod_may_take_its_time_to_end(waiting: Waiting) -> None:
    waiting.start("a")
    waiting.changes(pod("a", deleted=later(600), version="2"), at=1)
    assert waiting.awaited(899) == ["a"]
    waiting.leaves("a", at=899)
    assert waiting.awaited(1198) == ["a"]
    assert waiting.comes("b", at=1198) == ["a"]
    assert waiting.awaited(1198) == []


def test_pod_stuck_terminating_is_waited_for_no_longer_than_the_time_out(waiting: Waiting) -> None:
    waiting.start("a")
    waiting.changes(pod("a", deleted=later(30), version="2"), at=1)
    assert waiting.awaited(329) == ["a"]
    assert waiting.awaited(330) == []


@pytest.mark.parametrize("seen_first", [False, True], ids=["answer-first", "replacement-first"])
def test_replacement_that_counted_for_a_refused_request_counts_for_the_next(
    waiting: Waiting, seen_first: bool
) -> None:
    waiting.ask("a", "b")
    waiting.leaves("b")
    if seen_first:
        assert waiting.comes("c", at=2) == ["a"]
        assert waiting.answer("a", Answer.BUDGET, at=3) == ["a", "b"]
    else:
        assert waiting.answer("a", Answer.BUDGET, at=2) == ["a"]
        assert waiting.comes("c", at=3) == ["b"]
    assert waiting.awaited(4) == []


def test_replacement_that_counted_for_a_lost_request_counts_for_the_next(waiting: Waiting) -> None:
    waiting.ask("a", "b", "c")
    waiting.answer("a", Answer.UNKNOWN)
    for name in ("b", "c"):
        waiting.leaves(name)
    waiting.comes("d", at=2)
    assert names_of(waiting.gate.stays("uid-default-a", later(60))) == ["a", "b"]
    assert waiting.awaited(61) == ["c"]
    assert waiting.comes("e", at=61) == ["c"]
    assert waiting.awaited(62) == []


def test_what_was_made_before_a_request_does_not_count_for_it_later(waiting: Waiting) -> None:
    waiting.ask("a")
    waiting.answer("a", Answer.UNKNOWN)
    waiting.comes("c", at=2)
    waiting.start("b", at=10)
    waiting.leaves("b", at=11)
    assert names_of(waiting.gate.stays("uid-default-a", later(60))) == ["a"]
    assert waiting.awaited(61) == ["b"]


def test_what_is_no_longer_waited_for_takes_no_replacement(waiting: Waiting) -> None:
    waiting.start("a")
    waiting.leaves("a", at=0)
    waiting.start("b", at=200)
    waiting.leaves("b", at=200)
    assert waiting.comes("c", at=301) == ["b"]


def test_eviction_in_background_has_no_end_in_time(waiting: Waiting) -> None:
    waiting.ask("a")
    waiting.answer("a", Answer.BACKGROUND)
    waiting.changes(pod("a", version="2"), at=2)
    assert expire(waiting, 86_400) == []
    assert waiting.awaited(86_400) == ["a"]

    waiting.leaves("a", at=86_400)

    assert waiting.awaited(86_699) == ["a"]
    assert waiting.comes("b", at=86_699) == ["a"]
    assert waiting.awaited(86_699) == []


def test_eviction_in_background_that_is_given_up_is_not_waited_for(waiting: Waiting) -> None:
    waiting.ask("a", "b")
    waiting.answer("a", Answer.BACKGROUND)
    waiting.leaves("b")
    waiting.comes("c", at=2)
    waiting.in_background.clear()
    assert expire(waiting, 3) == ["a", "b"]
    assert waiting.awaited(3) == []


def test_eviction_in_background_that_no_longer_shows_is_not_waited_for(waiting: Waiting) -> None:
    waiting.ask("a")
    waiting.answer("a", Answer.BACKGROUND)
    waiting.in_background.clear()
    assert waiting.changes(pod("a", version="2"), at=3) == ["a"]
    assert waiting.awaited(3) == []


def test_pod_that_terminates_at_last_is_waited_for_like_any_other(waiting: Waiting) -> None:
    waiting.ask("a")
    waiting.answer("a", Answer.BACKGROUND)
    waiting.changes(pod("a", deleted=later(1030), version="2"), at=1000)
    assert waiting.awaited(1329) == ["a"]
    assert waiting.awaited(1330) == []


def test_request_in_flight_has_no_end_in_time(waiting: Waiting) -> None:
    waiting.ask("a")
    assert expire(waiting, 301) == []
    (each,) = waiting.gate.awaited(later(301))
    assert each.may_be_over(later(301)) == later(601)
    waiting.answer("a", Answer.EVICTED, at=302)
    assert waiting.awaited(601) == ["a"]
    assert waiting.awaited(602) == []


def test_pod_seen_to_go_before_the_answer_is_waited_for_like_any_other(waiting: Waiting) -> None:
    waiting.ask("a")
    waiting.changes(pod("a", deleted=later(30), version="2"), at=1)
    waiting.answer("a", Answer.BACKGROUND, at=2)
    assert waiting.awaited(329) == ["a"]
    assert waiting.awaited(330) == []


def test_clock_that_jumps_makes_no_wait_longer_or_shorter(waiting: Waiting) -> None:
    waiting.start("a")
    waiting.gate.on_jump(timedelta(hours=1))
    assert waiting.awaited(3600 + 299) == ["a"]
    assert waiting.awaited(3600 + 300) == []
