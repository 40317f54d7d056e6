from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive_descheduler.kit.clock import ManualClock
from reactive_descheduler.kit.token_bucket import TokenBucket


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime(2026, 1, 1, tzinfo=UTC))


def drain(bucket: TokenBucket) -> int:
    taken = 0
    while bucket.available():
        bucket.take()
        taken += 1
    return taken


def test_starts_full_and_fills_at_its_rate_up_to_the_burst(clock: ManualClock) -> None:
    bucket = TokenBucket(5, 10, clock)
    assert drain(bucket) == 10
    clock.advance(1)
    assert drain(bucket) == 5
    clock.advance(3600)
    assert drain(bucket) == 10


def test_a_token_is_there_exactly_at_the_second_it_was_promised(clock: ManualClock) -> None:
    bucket = TokenBucket(3, 1, clock)
    for _ in range(100):
        bucket.take()
        assert not bucket.available()
        clock.advance(bucket.next_at() - clock.monotonic())
        assert bucket.available() == 1


def test_a_token_is_there_at_the_wall_clock_time_of_its_promise(clock: ManualClock) -> None:
    bucket = TokenBucket(7, 1, clock)
    for _ in range(100):
        bucket.take()
        due = clock.now() + timedelta(seconds=bucket.next_at() - clock.monotonic())
        clock.advance((due - clock.now()).total_seconds())
        assert bucket.available() == 1


def test_the_next_token_is_now_when_one_is_there(clock: ManualClock) -> None:
    assert TokenBucket(5, 10, clock).next_at() == clock.monotonic()


def test_rate_zero_never_gives_a_token(clock: ManualClock) -> None:
    bucket = TokenBucket(0, 10, clock)
    bucket.recover()
    bucket.give_back()
    clock.advance(1e6)
    assert bucket.available() == 0
    assert bucket.next_at() == math.inf


def test_a_token_given_back_can_be_taken_again_but_never_exceeds_the_burst(
    clock: ManualClock,
) -> None:
    bucket = TokenBucket(1, 2, clock)
    bucket.take()
    bucket.give_back()
    bucket.give_back()
    assert drain(bucket) == 2
    bucket.give_back()
    assert drain(bucket) == 1


def test_taking_what_is_not_there_is_an_error(clock: ManualClock) -> None:
    bucket = TokenBucket(1, 1, clock)
    bucket.take()
    with pytest.raises(RuntimeError, match="no token"):
        bucket.take()


def test_slows_down_by_halves_to_a_floor_and_recovers_in_steps_to_the_ceiling(
    clock: ManualClock,
) -> None:
    bucket = TokenBucket(8, 10, clock)
    bucket.slow_down()
    assert bucket.statistics().rate == 4
    assert drain(bucket) == 1  # what was saved up is dropped
    for _ in range(50):
        bucket.slow_down()
    assert bucket.statistics().rate == 0.25
    rates = []
    for _ in range(30):
        bucket.recover()
        rates.append(bucket.statistics().rate)
    assert rates == sorted(rates)
    assert rates[0] == pytest.approx(0.65)
    assert rates[-1] == 8


def test_a_pause_gives_nothing_and_saves_nothing_up(clock: ManualClock) -> None:
    bucket = TokenBucket(2, 10, clock)
    assert drain(bucket) == 10
    bucket.pause_until(clock.monotonic() + 60)
    bucket.pause_until(clock.monotonic() + 5)  # the longer one holds
    assert bucket.next_at() == clock.monotonic() + 60.5
    assert bucket.statistics().paused_for == 60
    clock.advance(59)
    assert bucket.available() == 0
    clock.advance(1.5)
    assert drain(bucket) == 1


def test_tokens_from_before_a_pause_are_there_after_it(clock: ManualClock) -> None:
    bucket = TokenBucket(2, 4, clock)
    bucket.pause_until(clock.monotonic() + 10)
    assert bucket.available() == 0
    assert bucket.next_at() == clock.monotonic() + 10
    clock.advance(10)
    assert bucket.available() == 4


def test_who_slept_until_the_end_of_a_pause_to_the_microsecond_finds_the_token(
    clock: ManualClock,
) -> None:
    bucket = TokenBucket(2, 4, clock)
    bucket.pause_until(clock.monotonic() + 10 + 4e-7)
    clock.advance(10)
    assert bucket.available() == 4


@pytest.mark.parametrize(
    ("rate", "burst"),
    [(-1, 1), (math.inf, 1), (math.nan, 1), (1, 0)],
    ids=["negative rate", "infinite rate", "no number", "no burst"],
)
def test_refuses_senseless_numbers(clock: ManualClock, rate: float, burst: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        TokenBucket(rate, burst, clock)


@given(
    rate=st.floats(0.1, 50),
    burst=st.integers(1, 20),
    steps=st.lists(
        st.tuples(st.floats(0, 5), st.sampled_from(["take", "slow", "recover", "pause"])),
        max_size=60,
    ),
)
def test_never_gives_more_than_burst_and_rate_allow(
    rate: float, burst: int, steps: list[tuple[float, str]]
) -> None:
    clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
    bucket = TokenBucket(rate, burst, clock)
    taken = 0
    for wait, action in steps:
        clock.advance(wait)
        if action == "slow":
            bucket.slow_down()
        elif action == "recover":
            bucket.recover()
        elif action == "pause":
            bucket.pause_until(clock.monotonic() + 1)
        else:
            taken += drain(bucket)
        assert taken <= burst + rate * (clock.monotonic() + 2e-6)
