"""The delay queue: debounce by two numbers, timers, priorities, one taker a key, nothing lost."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive_descheduler.kit.clock import LoopClock, ManualClock
from reactive_descheduler.kit.delay_queue import DelayQueue

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def queue(clock: ManualClock) -> DelayQueue[str]:
    return DelayQueue(clock)


def take(queue: DelayQueue[str]) -> list[str]:
    taken = []
    while due := queue.pop():
        taken.append(due.key)
        queue.done(due.key)
    return taken


def test_a_key_is_due_after_its_quiet_time(queue: DelayQueue[str], clock: ManualClock) -> None:
    queue.add("a", quiet=0.1, max_wait=1)
    assert take(queue) == []
    clock.advance(0.1)
    assert take(queue) == ["a"]
    assert queue.next_due() is None


def test_thousands_that_are_due_at_once_are_moved_by_parts_and_all_come(
    queue: DelayQueue[str], clock: ManualClock
) -> None:
    keys = [f"{number:04}" for number in range(3000)]
    for key in keys:
        queue.add_at(key, 1.0)
    clock.advance(1)
    first = queue.pop()
    assert first is not None
    assert queue.statistics().ready < 1000
    queue.done(first.key)
    assert [first.key, *take(queue)] == keys
    assert queue.next_due() is None


def test_a_far_off_timer_that_is_set_over_and_over_takes_one_place(
    queue: DelayQueue[str], clock: ManualClock
) -> None:
    """So it is with ages: each resync looks at every Pod, and sets its timer anew."""
    queue.add_at("a", 1000.0)
    for _ in range(100):
        queue.add("a")
        assert take(queue) == ["a"]
        queue.add_at("a", 1000.0)
        clock.advance(1)
    assert len(queue._heap) == 1
    queue.discard_timer("a")
    queue.add_at("a", 1000.0)
    assert len(queue._heap) == 1
    clock.advance(899.5)
    assert take(queue) == []
    clock.advance(0.5)
    assert take(queue) == ["a"]
    assert queue._left == {}


def test_each_add_rearms_the_quiet_time_but_not_past_the_longest_wait(
    queue: DelayQueue[str], clock: ManualClock
) -> None:
    taken_at = []
    for tick in range(13):
        queue.add("a", quiet=0.25, max_wait=1)
        clock.advance(0.125)
        if take(queue):
            taken_at.append(tick)
    assert taken_at == [7]


def test_churn_of_one_key_never_delays_another(queue: DelayQueue[str], clock: ManualClock) -> None:
    queue.add("calm", quiet=0.125, max_wait=1)
    queue.add("busy", quiet=0.125, max_wait=1)
    clock.advance(0.0625)
    queue.add("busy", quiet=0.125, max_wait=1)
    clock.advance(0.0625)
    assert take(queue) == ["calm"]


def test_a_timer_and_a_debounce_of_one_key_come_as_one(
    queue: DelayQueue[str], clock: ManualClock
) -> None:
    queue.add_at("a", clock.monotonic() + 60)
    queue.add("a", quiet=0.1, max_wait=1)
    clock.advance(0.1)
    assert take(queue) == ["a"]
    clock.advance(120)
    assert take(queue) == []


def test_a_discarded_timer_does_not_fire_and_a_debounce_stays(
    queue: DelayQueue[str], clock: ManualClock
) -> None:
    queue.add_at("a", clock.monotonic() + 5)
    queue.add_at("b", clock.monotonic() + 5)
    queue.add("b", quiet=1, max_wait=1)
    queue.discard_timer("a")
    queue.discard_timer("b")
    clock.advance(10)
    assert take(queue) == ["b"]


def test_live_keys_overtake_a_full_pass_and_lift_their_own(
    queue: DelayQueue[str], clock: ManualClock
) -> None:
    for key in ("a", "b", "c"):
        queue.add(key, low=True)
    assert queue.pop() is not None  # promotes the rest
    queue.add("c")
    queue.add("live")
    assert take(queue) == ["c", "live", "b"]


def test_a_key_in_work_is_handed_out_again_only_after_done(
    queue: DelayQueue[str], clock: ManualClock
) -> None:
    queue.add("a")
    assert queue.pop() is not None
    queue.add("a")
    assert queue.pop() is None
    queue.done("a")
    assert take(queue) == ["a"]


def test_since_is_the_first_change(queue: DelayQueue[str], clock: ManualClock) -> None:
    queue.add("a", quiet=1, max_wait=5)
    clock.advance(0.5)
    queue.add("a", quiet=1, max_wait=5)
    clock.advance(1)
    due = queue.pop()
    assert due is not None
    assert due.since == 0.0


def test_statistics_tell_what_waits(queue: DelayQueue[str], clock: ManualClock) -> None:
    queue.add("a")
    queue.add("b", low=True)
    queue.add_at("later", clock.monotonic() + 60)
    assert queue.pop() is not None
    clock.advance(2)
    assert queue.statistics() == (1, 1, 1, 2.0)


async def test_get_sleeps_until_a_key_is_due_and_ends_on_shut_down() -> None:
    clock = LoopClock(START)
    queue = DelayQueue[str](clock)
    began = clock.monotonic()
    queue.add_at("a", began + 30)
    due = await queue.get()
    assert due is not None
    assert clock.monotonic() - began == pytest.approx(30, abs=0.01)
    waiting = asyncio.ensure_future(queue.get())
    await asyncio.sleep(1)
    queue.shut_down()
    assert await waiting is None


async def test_an_earlier_key_wakes_a_sleeping_get() -> None:
    clock = LoopClock(START)
    queue = DelayQueue[str](clock)
    queue.add_at("late", clock.monotonic() + 1000)
    waiting = asyncio.ensure_future(queue.get())
    await asyncio.sleep(1)
    queue.add("now")
    due = await waiting
    assert due is not None
    assert due.key == "now"


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from("abc"), st.sampled_from([0.0, 0.1, 1.0])),
        st.tuples(st.just("low"), st.sampled_from("abc"), st.just(0.0)),
        st.tuples(st.just("at"), st.sampled_from("abc"), st.sampled_from([0.0, 0.5, 3.0])),
        st.tuples(st.just("advance"), st.just(""), st.sampled_from([0.05, 0.1, 1.0])),
        st.tuples(st.just("pop"), st.just(""), st.just(0.0)),
        st.tuples(st.just("done"), st.just(""), st.just(0.0)),
    ),
    max_size=60,
)


@given(steps=STEPS)
def test_whatever_is_added_comes_out_again_in_time(steps: list[tuple[str, str, float]]) -> None:
    clock = ManualClock(START)
    queue = DelayQueue[str](clock)
    owed: dict[str, float] = {}  # the time at which it must be out at the latest
    in_work: list[str] = []
    for step, key, number in steps:
        now = clock.monotonic()
        if step == "add":
            queue.add(key, quiet=number, max_wait=2 * number)
            owed[key] = min(owed.get(key, now + 2 * number), now + 2 * number)
        elif step == "low":
            queue.add(key, low=True)
            owed[key] = min(owed.get(key, now), now)
        elif step == "at":
            queue.add_at(key, now + number)
            owed[key] = min(owed.get(key, now + number), now + number)
        elif step == "advance":
            clock.advance(number)
        elif step == "pop" and (due := queue.pop()):
            assert due.key not in in_work
            in_work.append(due.key)
            owed.pop(due.key)
        elif step == "done" and in_work:
            queue.done(in_work.pop())
    for key in in_work:
        queue.done(key)
    clock.advance(max([0.0, *owed.values()]))
    assert set(take(queue)) == set(owed)
