"""Jittered exponential delays between retries."""

from __future__ import annotations

from random import Random

MAX_DOUBLINGS = 30
"""Past this many, doubling any initial delay is past any ceiling; it keeps the power small."""


class Backoff:
    """Delays that double from `initial` up to `ceiling` seconds, spread so that clients don't
    march in step.

    Every delay lies between the present step and twice that, and never above the ceiling: 0.8 and
    30 give 0.8-1.6 s, 1.6-3.2 s ... 15-30 s. These are the defaults, as the official clients wait
    between watches.
    """

    def __init__(self, random: Random, *, initial: float = 0.8, ceiling: float = 30.0) -> None:
        self._random = random
        self._initial = initial
        self._ceiling = ceiling
        self._failures = 0

    @property
    def failures(self) -> int:
        """How many delays were asked for since the last success."""
        return self._failures

    def next(self, *, at_least: float = 0.0) -> float:
        """Return the seconds to wait after one more failure.

        `at_least` is what the other side asked for (Retry-After): it is kept even above the
        ceiling, and lengthened by up to a quarter, since all who were told the same come back at
        the same time.
        """
        step = min(self._ceiling / 2, self._initial * 2.0 ** min(self._failures, MAX_DOUBLINGS))
        self._failures += 1
        return max(step * self._random.uniform(1, 2), at_least * self._random.uniform(1, 1.25))

    def longest(self) -> float:
        """Return a delay near the ceiling, for what only people can mend."""
        self._failures += 1
        return self._ceiling * self._random.uniform(0.5, 1)

    def reset(self) -> None:
        """Begin anew after a success."""
        self._failures = 0
