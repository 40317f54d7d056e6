"""Pods that are assumed to be going: evicted, or perhaps evicted, and not yet seen to go.

A Pod stays assumed until its watch shows it terminating or gone. If that does not happen within 60
s on a fresh stream, one GET decides (design 5.2, 5.5): an answer that got lost is never guessed.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from reactive_descheduler.api.changes import Change
from reactive_descheduler.api.eviction import Answer, EvictionOutcome
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.cache.gone import GonePods

ASSUME_FOR = timedelta(seconds=60)
MEANS_GOING = frozenset({Answer.EVICTED, Answer.UNKNOWN, Answer.NOT_FOUND, Answer.UID_CONFLICT})
"""Answers after which the Pod goes, may go, or is gone already and only our watch is behind: a
request for it would be sent again and again until the watch has come up."""


class Assumption(NamedTuple):
    outcome: EvictionOutcome
    since: datetime

    @property
    def pod(self) -> Pod:
        return self.outcome.candidate.pod


class Assumed:
    """`counts_again`: told of a Pod that no longer counts as gone, though it may still be there.

    Whatever was judged meanwhile has to be judged anew then, and no change will tell.
    """

    def __init__(self, counts_again: Callable[[str], None]) -> None:
        self.counts_again = counts_again
        """A reload of the policy sets another."""
        self._in_flight: dict[str, bool] = {}
        self._going: dict[str, Assumption] = {}
        self.pods = GonePods()
        """The Pods; live, so that one lister over it serves for good."""

    def start(self, pod: Pod) -> None:
        """Take a Pod as gone from when its request starts: no other key may ask for it too."""
        self._in_flight[pod.uid] = False
        self.pods.add(pod)

    def finish(self, outcome: EvictionOutcome) -> EvictionOutcome:
        """Assume what the answer means for the Pod; return what it comes to.

        An answer that got lost was a grant if the watch has shown the Pod going meanwhile.
        """
        uid = outcome.candidate.pod.uid
        seen_going = self._in_flight.pop(uid, False)
        if seen_going or outcome.answer not in MEANS_GOING:
            self.drop(uid)
        else:
            self._going[uid] = Assumption(outcome, outcome.ended)
        lost = seen_going and outcome.answer is Answer.UNKNOWN
        return outcome._replace(answer=Answer.EVICTED) if lost else outcome

    def on_change(self, change: Change) -> EvictionOutcome | None:
        """Drop the assumption once the watch shows what became of the Pod.

        Returns the outcome of a request whose answer was lost and whose Pod is now seen going.
        """
        uid = _seen_going(change)
        if uid is None or uid not in self.pods:
            return None
        if uid in self._in_flight:
            self._in_flight[uid] = True
            return None
        assumption = self.drop(uid)
        if assumption is None or assumption.outcome.answer is not Answer.UNKNOWN:
            return None
        return assumption.outcome

    def drop(self, uid: str) -> Assumption | None:
        self.pods.drop(uid)
        self.counts_again(uid)
        return self._going.pop(uid, None)

    def confirm(self, uid: str, now: datetime) -> EvictionOutcome | None:
        """A look-up found the Pod going: assume that until the watch shows it too.

        Returns the outcome of a request whose answer was lost, as `on_change` does.
        """
        assumption = self._going.get(uid)
        if assumption is None:
            return None
        outcome = assumption.outcome
        self._going[uid] = Assumption(outcome._replace(answer=Answer.EVICTED), now)
        return outcome if outcome.answer is Answer.UNKNOWN else None

    def keep(self, uid: str, now: datetime) -> None:
        """Assume for another while: it could not be looked up."""
        if (assumption := self._going.get(uid)) is not None:
            self._going[uid] = assumption._replace(since=now)

    def on_jump(self, by: timedelta) -> None:
        """The wall clock jumped: look things up after as long a time as before."""
        for uid, each in self._going.items():
            self._going[uid] = each._replace(since=each.since + by)

    def overdue(self, now: datetime) -> list[Assumption]:
        """Return those that the watch should have shown going by now."""
        return [each for each in self._going.values() if now - each.since >= ASSUME_FOR]


def _seen_going(change: Change) -> str | None:
    """Return the UID of the Pod that this change shows terminating, finishing or gone.

    One that had finished before is evicted too: that it still is says nothing.
    """
    old, new = change.old, change.new
    if isinstance(old, Pod) and new is None:
        return old.uid
    if not isinstance(new, Pod):
        return None
    finishes = not new.active and isinstance(old, Pod) and old.active
    return new.uid if new.deleted is not None or finishes else None
