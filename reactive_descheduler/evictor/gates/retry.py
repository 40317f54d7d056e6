"""Retry: a Pod whose eviction failed is left alone for a while, longer each time.

A webhook's refusal is asked again after up to 30 min, a server's error after up to 5 min. What a
budget or an overloaded server said is not this gate's: the lane and the bucket wait for those.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import ClassVar, NamedTuple

from reactive_descheduler.api.changes import At, Change, ClusterEvent
from reactive_descheduler.api.eviction import Answer, Candidate, EvictionOutcome, Held
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.framework.gate import OpenGate

FIRST = timedelta(seconds=10)
FACTOR = 2
LONGEST = {
    Answer.WEBHOOK_DENIED: timedelta(minutes=30),
    Answer.INVALID: timedelta(minutes=30),
    Answer.SEVERAL_BUDGETS: timedelta(minutes=30),
    Answer.SERVER_ERROR: timedelta(minutes=5),
    Answer.UNKNOWN: timedelta(minutes=5),
}


class _Failure(NamedTuple):
    answer: Answer
    message: str
    wait: timedelta
    until: datetime


class RetryGate(OpenGate):
    NAME: ClassVar[str] = "retry"

    def __init__(self) -> None:
        self._failed: dict[str, _Failure] = {}

    def check(self, candidate: Candidate, now: datetime, /) -> Held | None:
        failure = self._failed.get(candidate.pod.uid)
        if failure is None or failure.until <= now:
            return None
        return Held(self.NAME, f"the last request failed: {failure.message}", (At(failure.until),))

    def on_outcome(self, outcome: EvictionOutcome, now: datetime, /) -> Iterable[ClusterEvent]:
        uid = outcome.candidate.pod.uid
        longest = LONGEST.get(outcome.answer)
        if longest is None:
            self._failed.pop(uid, None)
            return ()
        before = self._failed.get(uid)
        wait = min(FIRST if before is None else before.wait * FACTOR, longest)
        self._failed[uid] = _Failure(outcome.answer, outcome.message, wait, now + wait)
        return ()

    def on_jump(self, by: timedelta, /) -> None:
        self._failed = {
            uid: each._replace(until=each.until + by) for uid, each in self._failed.items()
        }

    def on_change(self, change: Change, now: datetime, /) -> Iterable[ClusterEvent]:
        if isinstance(change.old, Pod) and change.new is None:
            self._failed.pop(change.old.uid, None)
        return ()
