"""The hold rule: a balance key is not evaluated for more while something it counts is on its way.

A replacement that is not bound is counted nowhere, so an evaluation in between would evict the same
again (spec/strategies 5.5). What the key offers already may still go: it is checked once more
before each request. Candidates that merely wait hold nothing. A full pass outside the daemon has
nothing on its way and knows no hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta

from reactive_descheduler.api.changes import Action, At, Key, On, Wake
from reactive_descheduler.api.eviction import Candidate, Rejection
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.controller.parking import Evaluated
from reactive_descheduler.evictor.gates.replacements import ReplacementsGate
from reactive_descheduler.framework.strategy import Holds, Strategy

NAME = "hold"
_ENDS = Action.POD_DELETED | Action.POD_GONE | Action.POD_TERMINATING | Action.POD_LABELS


class HoldRule:
    """`timeout`: how long a Pod may terminate past its grace period before it holds no longer."""

    def __init__(
        self, replacements: ReplacementsGate, *, lister: Lister, timeout: Callable[[], timedelta]
    ) -> None:
        self._replacements = replacements
        self._lister = lister
        self._timeout = timeout

    def check(self, strategy: Strategy, key: Key, now: datetime) -> Rejection | None:
        """Return what holds the key, with what would end that."""
        if strategy.HOLDS is Holds.NOTHING:
            return None
        wakes: list[Wake] = []
        pods = []
        for pod, ends in self._on_its_way(strategy, key, now):
            pods.append(pod)
            wakes += ends
        if not wakes:
            return None
        names = ", ".join(sorted(dict.fromkeys(pod.name for pod in pods))[:3])
        more = f" and {len(pods) - 3} more" if len(pods) > 3 else ""
        reason = f"what it counts is on its way: {names}{more}"
        first, *others = dict.fromkeys(wakes)
        return Rejection(NAME, reason, (first, *others))

    def _on_its_way(
        self, strategy: Strategy, key: Key, now: datetime
    ) -> Iterator[tuple[Pod, Iterable[Wake]]]:
        counted = strategy.HOLDS is Holds.COUNTED
        for each in self._replacements.awaited(now):
            pod = each.candidate.pod
            if strategy.counts(key, pod, self._lister) if counted else each.candidate.key == key:
                yield pod, (On(Action.REPLACED, pod.ref), At(each.until))
        if not counted:
            return
        for pod in self._lister.terminating(key.unit[0]):
            if strategy.counts(key, pod, self._lister) and pod.deleted is not None:
                until = pod.deleted + self._timeout()
                if now < until:
                    yield pod, (On(_ENDS, pod.ref), At(until))


def held(rejection: Rejection, evaluated: Evaluated, before: Iterable[Candidate]) -> Evaluated:
    """Return what a held key comes to: of what it offered before, what it still offers."""
    known = {(each.pod.uid, each.cause) for each in before}
    kept = tuple(each for each in evaluated.offered if (each.pod.uid, each.cause) in known)
    wakes = dict.fromkeys((*evaluated.wakes, *rejection.wakes))
    return Evaluated(kept, (rejection,), tuple(wakes))
