"""Delays between retries."""

from __future__ import annotations

from random import Random

import pytest

from reactive_descheduler.kit.backoff import Backoff


@pytest.mark.parametrize("seed", range(20))
def test_delays_double_within_their_bounds(seed: int) -> None:
    backoff = Backoff(Random(seed))
    delays = [backoff.next() for _ in range(40)]
    steps = [0.8, 1.6, 3.2, 6.4, 12.8] + [15.0] * 35
    assert all(low <= delay <= 2 * low for low, delay in zip(steps, delays, strict=True))
    assert max(delays) <= 30
    assert backoff.failures == 40


def test_success_begins_anew() -> None:
    backoff = Backoff(Random(1))
    for _ in range(8):
        backoff.next()
    backoff.reset()
    assert backoff.next() <= 1.6


@pytest.mark.parametrize("asked", [5.0, 120.0], ids=["below-ceiling", "above-ceiling"])
def test_what_the_server_asks_for_is_kept(asked: float) -> None:
    delays = {Backoff(Random(seed)).next(at_least=asked) for seed in range(20)}
    assert asked <= min(delays)
    assert max(delays) <= asked * 1.25
    assert len(delays) > 10, "those who were told the same do not come back together"


def test_asking_for_less_shortens_nothing() -> None:
    backoff = Backoff(Random(3))
    assert backoff.next(at_least=0.001) >= 0.8


def test_longest_is_near_the_ceiling() -> None:
    assert all(15 <= Backoff(Random(seed)).longest() <= 30 for seed in range(20))
