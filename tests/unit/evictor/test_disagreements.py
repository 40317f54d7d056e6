"""A key whose candidates are offered and dropped, again and again, comes to wait."""

from __future__ import annotations

from datetime import timedelta

from reactive_descheduler.api.changes import Key
from reactive_descheduler.evictor.disagreements import Disagreements
from tests.unit.evictor.samples import NOW, later

KEY, OTHER = Key(0, "Strategy", ("a",)), Key(0, "Strategy", ("b",))


def waits(found: Disagreements, times: int) -> list[float]:
    """Drop a candidate of each of so many evaluations, one after the other."""
    waited, at = [], NOW
    for _ in range(times):
        wait = found.dropped(KEY, at)
        found.evaluated(KEY)
        waited.append(wait.total_seconds())
        at += wait
    return waited


def test_a_key_waits_from_the_third_drop_on_longer_each_time() -> None:
    assert waits(Disagreements(), 10) == [0, 0, 1, 2, 4, 8, 16, 32, 60, 60]


def test_many_candidates_of_one_evaluation_count_once() -> None:
    found = Disagreements()
    assert {found.dropped(KEY, NOW) for _ in range(10)} == {timedelta(0)}


def test_a_request_that_was_sent_ends_it() -> None:
    found = Disagreements()
    assert waits(found, 5)[-1] == 4
    found.sent(KEY)
    assert waits(found, 2) == [0, 0]


def test_drops_far_apart_have_nothing_to_do_with_each_other() -> None:
    found = Disagreements()
    for seconds in range(0, 50, 5):
        assert found.dropped(KEY, later(seconds)) == timedelta(0)
        found.evaluated(KEY)


def test_keys_are_told_apart() -> None:
    found = Disagreements()
    waits(found, 5)
    assert found.dropped(OTHER, NOW) == timedelta(0)


def test_after_many_drops_of_one_evaluation_the_rest_waits_for_the_next() -> None:
    found = Disagreements()
    void = []
    for _ in range(9):
        void.append(found.is_void(KEY))
        found.dropped(KEY, NOW)
    assert void == [False] * 8 + [True]
    assert not found.is_void(OTHER)
    found.evaluated(KEY)
    assert not found.is_void(KEY)
