"""Pods that are assumed to be going: evicted, or perhaps evicted, and not yet seen to go.

A Pod stays assumed until its watch shows it terminating or gone. If that does not happen within 60
s
on a fresh stream, one GET decides (design 5.2, 5.5): an answer that got lost is never guessed.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from reactive_descheduler.api.changes import Change
from reactive_descheduler.api.eviction import Answer, EvictionOutcome
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.cache.gone import GonePods

ASSUME_FOR = timedelta(seconds=60)


class Assumption(NamedTuple):
    pod: Pod
    since: datetime
    answer: Answer


class Assumed:
    def __init__(self) -> None:
        self._going: dict[str, Assumption] = {}
        self.pods = GonePods()
        """The Pods; live, so that one lister over it serves for good."""

    def add(self, outcome: EvictionOutcome) -> None:
        """Assume what this answer means for the Pod."""
        if outcome.answer in (Answer.EVICTED, Answer.UNKNOWN):
            pod = outcome.candidate.pod
            self._going[pod.uid] = Assumption(pod, outcome.ended, outcome.answer)
            self.pods.add(pod)

    def on_change(self, change: Change) -> None:
        """Drop the assumption once the watch shows what became of the Pod."""
        if change.kind != "Pod":
            return
        old, new = change.old, change.new
        if isinstance(old, Pod) and new is None:
            self.drop(old.uid)
        elif isinstance(new, Pod) and (new.deleted is not None or not new.active):
            self.drop(new.uid)

    def drop(self, uid: str) -> None:
        self._going.pop(uid, None)
        self.pods.drop(uid)

    def keep(self, uid: str, now: datetime) -> None:
        """Assume for another while: it could not be looked up."""
        if (assumption := self._going.get(uid)) is not None:
            self._going[uid] = assumption._replace(since=now)

    def overdue(self, now: datetime) -> list[Pod]:
        """Return the Pods that the watch should have shown going by now."""
        return [a.pod for a in self._going.values() if now - a.since >= ASSUME_FOR]
