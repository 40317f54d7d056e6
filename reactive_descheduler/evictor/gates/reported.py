"""Reported: what is not sent is told once for each Pod and cause, and then left alone.

So it is in a dry run, and with strategies that only observe.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import ClassVar

from reactive_descheduler.api.changes import Action, Change, ClusterEvent, On
from reactive_descheduler.api.eviction import Answer, Candidate, EvictionOutcome, Held
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.framework.gate import OpenGate

Told = set[tuple[str, tuple[str, ...]]]


class ReportedGate(OpenGate):
    NAME: ClassVar[str] = "reported"

    def __init__(self) -> None:
        self._told: dict[str, Told] = {}
        self._observing: frozenset[str] = frozenset()

    def reconfigure(self, observing: frozenset[str]) -> None:
        """Forget what was told when other strategies observe: some of it may be sent from now
        on."""
        if observing != self._observing:
            self._observing = observing
            self._told.clear()

    def check(self, candidate: Candidate, now: datetime, /) -> Held | None:
        cause = candidate.cause
        if (cause.kind, cause.ident) not in self._told.get(candidate.pod.uid, ()):
            return None
        wakes = (On(Action.POD_DELETED, candidate.pod.ref),)
        return Held(self.NAME, "reported already; nothing is sent for it", wakes)

    def on_outcome(self, outcome: EvictionOutcome, now: datetime, /) -> Iterable[ClusterEvent]:
        if outcome.answer in (Answer.DRY_RUN, Answer.OBSERVED):
            candidate = outcome.candidate
            told = self._told.setdefault(candidate.pod.uid, set())
            told.add((candidate.cause.kind, candidate.cause.ident))
        return ()

    def on_change(self, change: Change, now: datetime, /) -> Iterable[ClusterEvent]:
        if isinstance(change.old, Pod) and change.new is None:
            self._told.pop(change.old.uid, None)
        return ()
