"""A token bucket whose rate gives way under overload and comes back, never above what was
configured.

Pure reckoning: it reads the clock it was given and never sleeps. Whoever waits for a token sleeps
until `next_at()`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from reactive_descheduler.kit.clock import Clock

DECREASE = 0.5
"""What one `slow_down` leaves of the rate."""
INCREASE = 0.05
"""What one `recover` adds, as a share of the configured rate: twenty good answers make up for an
outage."""
FLOOR = 1 / 32
"""The least share of the configured rate. Slow enough to relieve a server, fast enough to notice
that it is well again."""
_EARLY = 1e-6
"""Seconds by which a token may be taken before it is due, or a pause end. Wall clock times end at
microseconds: whoever turned `next_at()` into one and slept until then must find the token."""


class BucketStatistics(NamedTuple):
    tokens: float
    """What is in the bucket now; whole ones can be taken."""
    burst: int
    rate: float
    """Tokens a second now."""
    ceiling: float
    """Tokens a second as configured."""
    paused_for: float
    """Seconds left of a pause, 0 without one."""


class TokenBucket:
    """Fills with `rate` tokens a second up to `burst`, and starts full. Rate 0: never a token.

    All times are seconds of `clock.monotonic()`.
    """

    def __init__(self, rate: float, burst: int, clock: Clock) -> None:
        """Raise ValueError for a negative or infinite rate, or a burst below 1."""
        _check(rate, burst)
        self._ceiling = rate
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst) if rate else 0.0
        self._filled_at = clock.monotonic()

    def reconfigure(self, rate: float, burst: int) -> None:
        """Let another rate and burst hold; what overload has taken off the rate is forgotten.

        Raise ValueError as at the start.
        """
        _check(rate, burst)
        self._fill()
        self._ceiling = self._rate = rate
        self._burst = burst
        self._tokens = min(self._tokens, float(burst)) if rate else 0.0

    def available(self) -> int:
        """Return how many tokens could be taken now."""
        now = self._fill()
        if self._filled_at > now + _EARLY or not self._rate:
            return 0
        return math.floor(self._tokens + self._rate * _EARLY)

    def take(self) -> None:
        """Take one token, which the caller saw there in the same synchronous step.

        Raise RuntimeError if there is none.
        """
        if not self.available():
            raise RuntimeError("no token to take")
        # A hair below zero where the token was taken early: that is owed, not given away.
        self._tokens -= 1

    def give_back(self) -> None:
        """Give back a token that was taken and not used."""
        self._fill()
        if self._rate:
            self._tokens = min(self._burst, self._tokens + 1)

    def next_at(self) -> float:
        """Return the monotonic second at which a token is there: past, later or never (inf)."""
        self._fill()
        if not self._rate:
            return math.inf
        # During a pause `_filled_at` lies ahead: filling starts when the pause ends.
        return self._filled_at + max(0.0, 1 - self._tokens) / self._rate

    def slow_down(self) -> None:
        """Answer to overload: halve the rate, and drop what was saved up beyond one token.

        Otherwise a full bucket would still send its whole burst to a server that is overloaded.
        """
        self._fill()
        self._rate = max(self._rate * DECREASE, self._ceiling * FLOOR)
        self._tokens = min(self._tokens, 1.0)

    def recover(self) -> None:
        """Answer to success: raise the rate by a step, up to the configured one."""
        self._fill()
        self._rate = min(self._rate + self._ceiling * INCREASE, self._ceiling)

    def pause_until(self, monotonic: float) -> None:
        """Give no token before this second, and save none up meanwhile. A shorter pause does not
        shorten a longer one."""
        self._fill()
        self._filled_at = max(self._filled_at, monotonic)

    def statistics(self) -> BucketStatistics:
        now = self._fill()
        return BucketStatistics(
            tokens=max(0.0, self._tokens),
            burst=self._burst,
            rate=self._rate,
            ceiling=self._ceiling,
            paused_for=max(0.0, self._filled_at - now),
        )

    def _fill(self) -> float:
        now = self._clock.monotonic()
        if now > self._filled_at:
            self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._rate)
            self._filled_at = now
        return now


def _check(rate: float, burst: int) -> None:
    if not 0 <= rate < math.inf:
        raise ValueError(f"rate must be a finite number of tokens a second, not {rate}")
    if burst < 1:
        raise ValueError(f"burst must be at least 1, not {burst}")
