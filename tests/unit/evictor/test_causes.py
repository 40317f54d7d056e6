"""Since when a cause holds, and what restarts its time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reactive_descheduler.api.changes import Change, Key
from reactive_descheduler.api.eviction import Cause
from reactive_descheduler.evictor.causes import Causes
from tests.builders import make_node, make_pod, node_view, pod_view, taint
from tests.unit.evictor.samples import NOW, candidate, later, pod, taint_cause

KEY, OTHER = Key(0, "S", ("a",)), Key(0, "S", ("b",))
TAINTED = node_view(make_node("node-1", taints=[taint()]))
CLEAN = node_view(make_node("node-1", version="2"))
CAUSE = taint_cause()
BATCH = timedelta(seconds=10)


def taint_went(_key: Key, cause: Cause, change: Change) -> bool:
    taints = getattr(change.new, "taints", ())
    return cause.ident[1] not in {each.key for each in taints}


def causes() -> Causes:
    return Causes(taint_went, longest_batch=BATCH)


def gone() -> Change:
    return Change("Node", TAINTED, CLEAN)


def back() -> Change:
    return Change("Node", CLEAN, TAINTED)


def test_a_cause_begins_with_the_first_change_that_led_to_it() -> None:
    found = causes()
    assert found.began(CAUSE) is None
    found.evaluated(KEY, [candidate(key=KEY)], since=NOW, now=later(1))
    found.evaluated(KEY, [candidate(key=KEY)], since=later(5), now=later(6))

    assert found.began(CAUSE) == NOW


def test_a_break_inside_one_debounce_batch_restarts_its_time() -> None:
    found = causes()
    found.evaluated(KEY, [candidate(key=KEY)], since=NOW, now=NOW)
    assert found.on_change(gone(), later(3))
    assert found.began(CAUSE) is None
    assert not found.on_change(back(), later(3.05))
    found.evaluated(KEY, [candidate(key=KEY)], since=later(3), now=later(3.1))

    assert found.began(CAUSE) == later(3.1)


def test_a_change_that_does_not_interrupt_it_leaves_it_alone() -> None:
    found = causes()
    found.evaluated(KEY, [candidate(key=KEY)], since=NOW, now=NOW)
    labelled = node_view(make_node("node-1", taints=[taint()], labels={"x": "y"}))

    assert not found.on_change(Change("Node", TAINTED, labelled), later(1))
    assert not found.on_change(Change("Node", None, node_view(make_node("node-2"))), later(1))
    assert found.began(CAUSE) == NOW


def test_a_cause_is_shared_and_stands_while_one_key_offers_it() -> None:
    found = causes()
    found.evaluated(KEY, [candidate(key=KEY)], since=NOW, now=NOW)
    found.evaluated(OTHER, [candidate(pod("b"), key=OTHER)], since=later(60), now=later(60))
    assert found.began(CAUSE) == NOW, "one taint of one node, whoever sits there"
    found.evaluated(KEY, [], since=later(61), now=later(61))
    assert found.began(CAUSE) == NOW
    assert found.on_change(gone(), later(62)), "still listened for"
    found.evaluated(OTHER, [], since=later(63), now=later(63))

    assert found.began(CAUSE) is None
    assert list(found.held()) == []


def test_a_cause_that_ended_begins_anew() -> None:
    found = causes()
    found.evaluated(KEY, [candidate(key=KEY)], since=NOW, now=NOW)
    found.evaluated(KEY, [], since=later(1), now=later(1))
    found.evaluated(KEY, [candidate(key=KEY)], since=later(9), now=later(9.5))

    assert found.began(CAUSE) == later(9)


def test_a_timestamp_of_its_own_proves_its_age() -> None:
    found = causes()
    cause = CAUSE._replace(proven_since=later(-100))
    assert found.began(cause) == later(-100)
    found.evaluated(KEY, [candidate(key=KEY, cause=cause)], since=NOW, now=NOW)

    assert found.began(cause) == later(-100)


def test_one_key_may_stand_on_several_causes() -> None:
    found = causes()
    second = taint_cause(taint="other")
    both = [candidate(key=KEY), candidate(pod("b"), key=KEY, cause=second)]
    found.evaluated(KEY, both, since=NOW, now=NOW)
    found.on_change(Change("Node", TAINTED, TAINTED), later(1))

    assert found.began(CAUSE) == NOW
    assert found.began(second) is None


def test_objects_of_a_pod_cause_are_forgotten_with_it() -> None:
    broken: list[Cause] = []

    def breaks(_key: Key, cause: Cause, _change: Change) -> bool:
        broken.append(cause)
        return True

    found = Causes(breaks, longest_batch=BATCH)
    cause = Cause("age", ("uid-default-a",), (("Pod", "default", "a"),))
    found.evaluated(KEY, [candidate(key=KEY, cause=cause)], since=NOW, now=NOW)
    found.evaluated(KEY, [], since=NOW, now=NOW)
    here = pod_view(make_pod("a"))

    assert not found.on_change(Change("Pod", here, here), NOW)
    assert broken == []


def test_a_breaks_that_raises_counts_as_a_break() -> None:
    def breaks(_key: Key, _cause: Cause, _change: Change) -> bool:
        raise RuntimeError("oops")

    found = Causes(breaks, longest_batch=BATCH)
    found.evaluated(KEY, [candidate(key=KEY)], since=NOW, now=NOW)

    assert found.on_change(gone(), later(1)), "doubt means: let it settle anew"
    assert found.began(CAUSE) is None


def test_a_break_before_the_first_evaluation_restarts_its_time_too() -> None:
    found = causes()
    found.on_change(back(), NOW)
    found.on_change(gone(), later(0.5))
    found.on_change(back(), later(0.9))
    found.evaluated(KEY, [candidate(key=KEY)], since=NOW, now=later(1))
    found.evaluated(OTHER, [candidate(pod("b"), key=OTHER)], since=NOW, now=later(1.1))

    assert found.began(CAUSE) == later(1)


def test_a_break_before_the_batch_is_none_of_its_own() -> None:
    found = causes()
    found.on_change(gone(), NOW)
    found.on_change(back(), later(3))
    found.evaluated(KEY, [candidate(key=KEY)], since=later(3), now=later(4))

    assert found.began(CAUSE) == later(3)


@pytest.mark.parametrize("jump", [3600, -3600])
def test_over_a_jump_of_the_clock_a_cause_has_stood_for_as_long(jump: int) -> None:
    found, by = causes(), timedelta(seconds=jump)
    found.evaluated(KEY, [candidate(key=KEY)], since=NOW, now=NOW)
    found.on_jump(by, later(3) + by)

    assert found.began(CAUSE) == NOW + by


def test_what_was_noted_by_the_new_clock_does_not_come_to_lie_ahead() -> None:
    found, hour = causes(), timedelta(hours=1)
    found.evaluated(KEY, [candidate(key=KEY)], since=NOW + hour, now=NOW + hour)
    found.on_jump(hour, later(1) + hour)

    assert found.began(CAUSE) == later(1) + hour


def test_objects_that_a_cause_no_longer_stands_on_break_it_no_more() -> None:
    found = Causes(lambda *_: True, longest_batch=BATCH)
    first = Cause("preferred", ("a",), (("Node", "", "node-1"), ("Node", "", "node-2")))
    second = first._replace(objects=(("Node", "", "node-1"), ("Node", "", "node-3")))
    found.evaluated(KEY, [candidate(key=KEY, cause=first)], since=NOW, now=NOW)
    found.evaluated(KEY, [candidate(key=KEY, cause=second)], since=NOW, now=NOW)
    second_node, third_node = (node_view(make_node(name)) for name in ("node-2", "node-3"))

    assert not found.on_change(Change("Node", second_node, second_node), later(1))
    assert found.on_change(Change("Node", third_node, third_node), later(2))
