"""Evictions in background: a webhook refuses the eviction and finishes it by itself later.

KubeVirt does so for virtual machines: it migrates them (KEP 1397, spec/evictor 3.7). An eviction is
*assumed* from the refusal that says so, and *confirmed* once an annotation shows it in progress.
Until it ends it counts in every limit, and the Pod is not asked for again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import NamedTuple

from reactive_descheduler.api.eviction import Candidate
from reactive_descheduler.api.pod import (
    EVICTION_IN_PROGRESS_ANNOTATION,
    REQUEST_EVICT_ONLY_ANNOTATION,
    Pod,
    workload,
)

ACCEPTED = "Eviction triggered evacuation"
"""What the webhook's refusal says when it has taken the eviction over."""
ASSUME_FOR = timedelta(seconds=600)
"""An eviction that was taken over and does not show by then was not; upstream looks every 10 min,
so there it takes 10 to 20."""


class Ended(NamedTuple):
    """A background eviction that is over, for the counter of evictions."""

    candidate: Candidate
    success: bool


class Evacuation(NamedTuple):
    """One that goes on. `candidate` None: found in progress, and not asked for by us."""

    pod: Pod
    candidate: Candidate | None
    since: datetime
    shown: bool
    """The annotation has shown it in progress."""

    @property
    def until(self) -> datetime | None:
        """When it is given up: only what never showed."""
        return None if self.shown else self.since + ASSUME_FOR


class BackgroundEvictions:
    """Pods by UID, with counts per limit."""

    def __init__(self) -> None:
        self._of_pod: dict[str, Evacuation] = {}
        self._counts: Counter[tuple[str, ...]] = Counter()

    def count(self, key: tuple[str, ...]) -> int:
        """Return how many go on under a limit: `("total",)`, `("node", name)` and so on."""
        return self._counts[key]

    def of_pod(self, uid: str) -> Evacuation | None:
        return self._of_pod.get(uid)

    def start(self, candidate: Candidate, now: datetime) -> None:
        """Assume that the Pod's eviction goes on; what is known to be asked for already stays."""
        known = self._of_pod.get(candidate.pod.uid)
        if known is None or known.candidate is None:
            shown = known is not None and known.shown
            self._put(Evacuation(candidate.pod, candidate, now, shown))

    def on_pod(self, pod: Pod, now: datetime) -> Ended | None:
        """Follow a Pod as it is now, also one that is in progress already; return what ended by
        that."""
        known = self._of_pod.get(pod.uid)
        marked = REQUEST_EVICT_ONLY_ANNOTATION in pod.annotations
        in_progress = EVICTION_IN_PROGRESS_ANNOTATION in pod.annotations
        if known is None:
            if marked and in_progress and pod.active:
                self._put(Evacuation(pod, None, now, shown=True))
            return None
        if not pod.active:
            return self._end(known, success=pod.phase == "Succeeded")
        if not marked or (known.shown and not in_progress):
            self._drop(known)  # it may be asked for again
        elif in_progress and not known.shown:
            self._of_pod[pod.uid] = known._replace(shown=True)
        return None

    def on_deleted(self, pod: Pod) -> Ended | None:
        """Follow a Pod that is no longer there."""
        known = self._of_pod.get(pod.uid)
        return self._end(known, success=True) if known is not None else None

    def expire(self, now: datetime) -> list[Ended]:
        """Give up what never showed in time."""
        late = [
            each for each in self._of_pod.values() if each.until is not None and each.until <= now
        ]
        return [ended for each in late if (ended := self._end(each, success=False)) is not None]

    def on_jump(self, by: timedelta) -> None:
        """The wall clock jumped: wait for as long as before."""
        for uid, each in self._of_pod.items():
            self._of_pod[uid] = each._replace(since=each.since + by)

    def _put(self, evacuation: Evacuation) -> None:
        uid = evacuation.pod.uid
        if uid not in self._of_pod:
            self._counts.update(limit_keys(evacuation.pod))
        self._of_pod[uid] = evacuation

    def _end(self, known: Evacuation, *, success: bool) -> Ended | None:
        self._drop(known)
        return Ended(known.candidate, success) if known.candidate is not None else None

    def _drop(self, known: Evacuation) -> None:
        del self._of_pod[known.pod.uid]
        self._counts -= Counter(limit_keys(known.pod))


def is_evacuation(pod: Pod, status: int | None, message: str) -> bool:
    """Say whether a refusal means that a webhook has taken the eviction over."""
    return (
        status == HTTPStatus.TOO_MANY_REQUESTS
        and ACCEPTED in message
        and REQUEST_EVICT_ONLY_ANNOTATION in pod.annotations
    )


def limit_keys(pod: Pod) -> Iterable[tuple[str, ...]]:
    """Yield the keys under which limits count a Pod."""
    yield ("total",)
    if pod.node_name:
        yield ("node", pod.node_name)
    yield ("namespace", pod.namespace)
    if (owner := workload(pod)) is not None:
        yield ("workload", *owner)
