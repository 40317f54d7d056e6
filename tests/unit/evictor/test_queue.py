"""The eviction queue: who is next, and what is held, woken, replaced and dropped."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from reactive_descheduler.api.changes import Action, At, ClusterEvent, Key, On
from reactive_descheduler.api.eviction import Candidate, Held
from reactive_descheduler.evictor.queue import EvictionQueue, Queued
from tests.unit.evictor.samples import NOW, candidate, key_of, later, pod

BUDGET = ("PodDisruptionBudget", "default", "web")
OPENS = Held("lane", "no budget", (On(Action.BUDGET_ROSE, BUDGET),))


class Lines:
    """A queue, and the timers that it asked for."""

    def __init__(self) -> None:
        self.timers: list[tuple[Key, datetime]] = []
        self.queue = EvictionQueue(timer=lambda key, time: self.timers.append((key, time)))

    def put(
        self, *candidates: Candidate, urgency: int = 0, at: datetime = NOW, key: Key | None = None
    ) -> Key:
        found = key or candidates[0].key
        self.queue.replace(found, candidates, urgency=urgency, now=at, change_seen=None)
        return found

    def next(self, at: datetime = NOW) -> Queued:
        entry = self.queue.best(at)
        assert entry is not None
        return entry

    def order(self, at: datetime = NOW) -> list[str]:
        """Send everything and return the names in the order in which it went."""
        names = []
        while (entry := self.queue.best(at)) is not None:
            names.append(entry.candidate.pod.name)
            self.queue.start(entry)
        return names

    def hold(self, held: Held = OPENS) -> Queued:
        entry = self.next()
        self.queue.hold(entry, held)
        return entry


def names(candidates: Sequence[Candidate]) -> list[str]:
    return [each.pod.name for each in candidates]


def test_the_more_urgent_strategy_goes_first() -> None:
    lines = Lines()
    lines.put(candidate(pod("later")), urgency=10)
    lines.put(candidate(pod("first")), urgency=0)

    assert lines.order() == ["first", "later"]


def test_who_waits_rises_one_step_a_minute() -> None:
    lines = Lines()
    lines.put(candidate(pod("old")), urgency=2, at=NOW)
    lines.put(candidate(pod("new")), urgency=0, at=later(119))
    assert lines.next(later(119)).candidate.pod.name == "new"
    lines = Lines()
    lines.put(candidate(pod("old")), urgency=2, at=NOW)
    lines.put(candidate(pod("new")), urgency=0, at=later(180))

    assert lines.next(later(180)).candidate.pod.name == "old"


def test_namespaces_take_turns() -> None:
    lines = Lines()
    for name in ("a1", "a2", "a3"):
        lines.put(candidate(pod(name, namespace="a")))
    lines.put(candidate(pod("b1", namespace="b")))

    assert lines.order() == ["a1", "b1", "a2", "a3"]


def test_within_a_namespace_low_priority_goes_first_then_the_own_order_of_the_strategy() -> None:
    lines = Lines()
    key = Key(0, "Strategy", ("unit",))
    low, lowest = pod("low", priority=10), pod("lowest", priority=-5)
    lines.put(
        *(candidate(each, key=key) for each in (pod("high", priority=100), low, lowest)),
        *(candidate(pod(name, priority=10), key=key) for name in ("low2", "low3")),
        candidate(pod("none"), key=key),
        key=key,
    )

    assert lines.order() == ["none", "lowest", "low", "low2", "low3", "high"]


def test_among_the_keys_of_a_strategy_the_lowest_rank_goes_first_whenever_it_came() -> None:
    lines = Lines()
    for name, rank in (("young", 30.0), ("old", 10.0), ("middle", 20.0)):
        lines.put(candidate(pod(name))._replace(rank=rank))

    assert lines.order() == ["old", "middle", "young"]


def test_a_candidate_whose_rank_has_changed_moves() -> None:
    lines = Lines()
    for name, rank in (("a", -5.0), ("b", -6.0), ("a", -7.0)):
        lines.put(candidate(pod(name))._replace(rank=rank))

    assert lines.order() == ["a", "b"]


def test_a_new_evaluation_replaces_what_the_key_had() -> None:
    lines = Lines()
    key = Key(0, "Strategy", ("unit",))
    lines.put(candidate(pod("a"), key=key), candidate(pod("b"), key=key), key=key)
    lines.put(candidate(pod("b"), key=key), candidate(pod("c"), key=key), key=key)

    assert names(lines.queue.offers(key)) == ["b", "c"]
    assert lines.order() == ["b", "c"]


def test_a_candidate_that_is_offered_again_keeps_its_place() -> None:
    lines = Lines()
    for second, name in enumerate("abc"):
        lines.put(candidate(pod(name)), at=later(second))
    lines.put(candidate(pod("a")), at=later(5))

    assert lines.order(later(6)) == ["a", "b", "c"]


def test_what_is_offered_over_and_over_while_nothing_may_go_takes_no_more_room() -> None:
    lines = Lines()
    for _ in range(100):
        for name in ("a", "b", "c"):
            lines.put(candidate(pod(name)))
    heaps = [heap for line in lines.queue._ready._lines.values() for heap in line.values()]

    assert sum(map(len, heaps)) == 3
    assert lines.order() == ["a", "b", "c"]


def test_a_candidate_that_was_held_keeps_its_place() -> None:
    lines = Lines()
    for second, name in enumerate("abc"):
        lines.put(candidate(pod(name)), at=later(second))
    lines.hold()
    lines.queue.wake(ClusterEvent(Action.BUDGET_ROSE, BUDGET))

    assert lines.order(later(6)) == ["a", "b", "c"]


def test_offering_nothing_takes_everything_out() -> None:
    lines = Lines()
    key = lines.put(candidate())
    lines.put(key=key)

    assert lines.queue.best(NOW) is None
    assert list(lines.queue.candidates()) == []
    assert lines.queue.statistics() == (0, 0, 0)


def test_what_is_in_flight_is_not_replaced() -> None:
    lines = Lines()
    key = lines.put(candidate())
    entry = lines.next()
    lines.queue.start(entry)
    lines.put(candidate())
    assert lines.queue.best(NOW) is None, "it is on its way: not a second time"
    lines.put(key=key)
    assert list(lines.queue.in_flight()) == [entry]
    lines.queue.finish(entry)
    lines.put(candidate())

    assert lines.next().candidate.pod.name == "a"


def test_a_held_candidate_waits_for_its_event_and_no_other() -> None:
    lines = Lines()
    lines.put(candidate())
    entry = lines.hold()
    for event in (
        ClusterEvent(Action.BUDGET_STATUS, BUDGET),
        ClusterEvent(Action.BUDGET_ROSE, ("PodDisruptionBudget", "default", "other")),
    ):
        assert not lines.queue.wake(event)
        assert lines.queue.best(NOW) is None
    assert lines.queue.statistics() == (0, 1, 0)
    assert lines.queue.wake(ClusterEvent(Action.BUDGET_ROSE | Action.BUDGET_STATUS, BUDGET))

    assert lines.next() is entry
    assert entry.held is None


def test_a_wake_for_any_object_hears_all_of_them() -> None:
    lines = Lines()
    lines.put(candidate())
    lines.hold(Held("stale", "no word", (On(Action.STREAM_FRESH, None),)))

    assert lines.queue.wake(ClusterEvent(Action.STREAM_FRESH, ("Stream", "", "Pod")))


def test_a_time_becomes_a_timer_of_the_key() -> None:
    lines = Lines()
    key = lines.put(candidate())
    lines.hold(Held("settle", "wait", (At(later(5)),)))
    assert lines.timers == [(key, later(5))]

    assert lines.queue.wake_key(key)
    assert lines.queue.best(NOW) is not None
    assert not lines.queue.wake_key(key), "nothing of it is held any more"


def test_a_new_evaluation_returns_what_was_held() -> None:
    lines = Lines()
    lines.put(candidate())
    lines.hold()
    lines.put(candidate())

    assert lines.queue.best(NOW) is not None
    assert not lines.queue.wake(ClusterEvent(Action.BUDGET_ROSE, BUDGET)), "filed nowhere now"


def test_what_was_dropped_does_not_wake() -> None:
    lines = Lines()
    lines.put(candidate())
    entry = lines.hold()
    lines.queue.drop(entry)
    lines.queue.wake(ClusterEvent(Action.BUDGET_ROSE, BUDGET))

    assert lines.queue.best(NOW) is None
    assert list(lines.queue.candidates()) == []


def test_two_profiles_may_want_the_same_pod() -> None:
    lines = Lines()
    first, second = Key(0, "S", ("a",)), Key(1, "S", ("a",))
    lines.put(candidate(key=first))
    lines.put(candidate(key=second))
    lines.put(key=first)

    assert lines.next().candidate.key == second


def test_the_queue_is_empty_again_after_everything_went() -> None:
    lines = Lines()
    for number in range(50):
        lines.put(candidate(pod(f"p{number}", namespace=f"n{number % 7}")), at=later(number * 7))
    assert len(lines.order(later(400))) == 50
    for entry in tuple(lines.queue.in_flight()):
        lines.queue.finish(entry)

    assert lines.queue.statistics() == (0, 0, 0)
    assert key_of(pod()) not in {entry.candidate.key for entry in lines.queue.candidates()}
