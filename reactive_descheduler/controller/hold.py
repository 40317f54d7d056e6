"""The hold rule: a balance key is not evaluated for more while something it counts is on its way.

A replacement that is not bound is counted nowhere, so an evaluation in between would evict the same
again (spec/strategies 5.5). What the key offers already may still go, checked once more before each
request, as long as only what the key itself asked for is on its way: that many fewer are too many
then. What others evict or delete leaves the key with a wrong count as well, and nothing says which
of its candidates that makes superfluous: none goes until the hold ends. Candidates that merely wait
hold nothing. A full pass outside the daemon has nothing on its way and knows no hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from reactive_descheduler.api.changes import Action, At, Key, On, Wake
from reactive_descheduler.api.eviction import Candidate, Rejection
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.controller.parking import Evaluated
from reactive_descheduler.evictor.gates.replacements import Awaited, ReplacementsGate
from reactive_descheduler.framework.strategy import Holds, Strategy

NAME = "hold"
_ENDS = Action.POD_DELETED | Action.POD_GONE | Action.POD_TERMINATING | Action.POD_LABELS


class Hold(NamedTuple):
    """What holds a key, with what would end that."""

    rejection: Rejection
    by_others: bool
    """Something is on its way that the key did not ask for: what it offered is void too."""


class HoldRule:
    """`timeout`: how long a Pod may terminate past its grace period before it holds no longer."""

    def __init__(
        self, replacements: ReplacementsGate, *, lister: Lister, timeout: Callable[[], timedelta]
    ) -> None:
        self._replacements = replacements
        self._lister = lister
        self._timeout = timeout

    def check(self, strategy: Strategy, key: Key, now: datetime) -> Hold | None:
        """Return what holds the key, if anything does."""
        if strategy.HOLDS is Holds.NOTHING:
            return None
        wakes: list[Wake] = []
        pods: dict[str, str] = {}
        own: set[str] = set()
        for each in self._awaited(strategy, key, now):
            pod = each.candidate.pod
            pods[pod.uid] = pod.name
            wakes += (On(Action.REPLACED, pod.ref), At(each.may_be_over(now)))
            if each.candidate.key == key:
                own.add(pod.uid)
        for pod, until in self._terminating(strategy, key, now):
            pods[pod.uid] = pod.name
            wakes += (On(_ENDS, pod.ref), At(until))
        if not wakes:
            return None
        names = ", ".join(sorted(pods.values())[:3])
        more = f" and {len(pods) - 3} more" if len(pods) > 3 else ""
        reason = f"what it counts is on its way: {names}{more}"
        first, *others = dict.fromkeys(wakes)
        by_others = not own.issuperset(pods)
        return Hold(Rejection(NAME, reason, (first, *others)), by_others)

    def _awaited(self, strategy: Strategy, key: Key, now: datetime) -> Iterator[Awaited]:
        counted = strategy.HOLDS is Holds.COUNTED
        for each in self._replacements.awaited(now):
            if each.candidate.key == key:
                yield each
            elif counted:
                if strategy.counts(key, each.candidate.pod, self._lister):
                    yield each
            elif not each.gone:
                yield each  # it still weighs on its node, though the node is being relieved of it

    def _terminating(
        self, strategy: Strategy, key: Key, now: datetime
    ) -> Iterator[tuple[Pod, datetime]]:
        if strategy.HOLDS is not Holds.COUNTED:
            return
        for pod in self._lister.terminating(key.unit[0]):
            if strategy.counts(key, pod, self._lister) and pod.deleted is not None:
                until = pod.deleted + self._timeout()
                if now < until:
                    yield pod, until


def held(hold: Hold, evaluated: Evaluated, before: Iterable[Candidate]) -> Evaluated:
    """Return what a held key comes to: of what it offers now, what it has offered before.

    A key that wants no more than that is not held at all, whatever is on its way.
    """
    known = set() if hold.by_others else {(each.pod.uid, each.cause) for each in before}
    kept = tuple(each for each in evaluated.offered if (each.pod.uid, each.cause) in known)
    if len(kept) == len(evaluated.offered):
        return evaluated
    wakes = dict.fromkeys((*evaluated.wakes, *hold.rejection.wakes))
    return Evaluated(kept, (hold.rejection,), tuple(wakes))
