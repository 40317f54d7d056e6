"""Bucket: the global rate. Asked once for all, since it holds everything or nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import ClassVar

from reactive_descheduler.api.changes import Action, At, ClusterEvent, On
from reactive_descheduler.api.eviction import Answer, Candidate, EvictionOutcome, Held
from reactive_descheduler.framework.gate import OpenGate
from reactive_descheduler.kit.clock import Clock
from reactive_descheduler.kit.token_bucket import TokenBucket

THROTTLED_PAUSE = 1.0
"""Seconds to pause after a 429 of an overloaded API server that names no time."""


class BucketGate(OpenGate):
    """With `adaptive`, overload (429, 5xx) halves the rate and success brings it back."""

    NAME: ClassVar[str] = "bucket"

    def __init__(self, bucket: TokenBucket, *, clock: Clock, adaptive: bool) -> None:
        self._bucket = bucket
        self._clock = clock
        self.adaptive = adaptive
        """A reload of the policy sets it anew."""

    def closed(self, now: datetime, /) -> Held | None:
        if self._bucket.available():
            return None
        at = self._bucket.next_at()
        if math.isinf(at):
            return Held(self.NAME, "the rate is 0", (On(Action.BUCKET_FILLED, None),))
        wait = timedelta(seconds=max(0.0, at - self._clock.monotonic()))
        return Held(self.NAME, "no token: the rate is used up", (At(now + wait),))

    def take(self, candidate: Candidate, now: datetime, /) -> None:
        self._bucket.take()

    def give_back(self, candidate: Candidate, now: datetime, /) -> None:
        self._bucket.give_back()

    def on_outcome(self, outcome: EvictionOutcome, now: datetime, /) -> Iterable[ClusterEvent]:
        if outcome.answer is Answer.THROTTLED:
            pause = outcome.retry_after if outcome.retry_after is not None else THROTTLED_PAUSE
            self._bucket.pause_until(self._clock.monotonic() + pause)
        if outcome.answer is Answer.OBSERVED:
            self._bucket.give_back()  # what only observes must not slow down what acts
        if self.adaptive:
            if outcome.answer in (Answer.THROTTLED, Answer.SERVER_ERROR, Answer.UNKNOWN):
                self._bucket.slow_down()
            elif outcome.answer is Answer.EVICTED:
                self._bucket.recover()
        return ()
