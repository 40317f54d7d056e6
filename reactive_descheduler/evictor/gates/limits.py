"""Limits: how many Pods may go, in total, per node, per namespace and per workload.

Upstream counts within one pass. A daemon has no passes, so there the same numbers hold within a
sliding window. `PassLimits` counts as upstream does, for `plan`, `--once` and the corpus.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import ClassVar, NamedTuple

from reactive_descheduler.api.changes import Action, At, ClusterEvent, Never, On
from reactive_descheduler.api.eviction import (
    Answer,
    Candidate,
    EvictionOutcome,
    Held,
    Rejection,
    Stop,
)
from reactive_descheduler.api.pod import Pod, workload
from reactive_descheduler.framework.gate import OpenGate, blocked

TOTAL_REACHED = "maximum number of evicted pods per a descheduling cycle reached"
NODE_REACHED = "maximum number of evicted pods per node reached"
NAMESPACE_REACHED = "maximum number of evicted pods per namespace reached"
WORKLOAD_REACHED = "maximum number of evicted pods per workload reached"
"""The first three are upstream's own words, on which dashboards match (spec/evictor 3.8)."""

COUNTED = frozenset({Answer.EVICTED, Answer.DRY_RUN, Answer.UNKNOWN})


class Limits(NamedTuple):
    """None is no limit; 0 lets nothing go."""

    total: int | None = None
    per_node: int | None = None
    per_namespace: int | None = None
    per_workload: int | None = None


class _Scope(NamedTuple):
    limit: int | None
    key: tuple[str, ...]
    reached: str
    stop: Stop


def _scopes(limits: Limits, pod: Pod) -> tuple[_Scope, ...]:
    """Return what may limit this Pod, in upstream's order: total, node, namespace; then ours."""
    scopes = [_Scope(limits.total, ("total",), TOTAL_REACHED, Stop.ALL)]
    if pod.node_name:
        scopes.append(_Scope(limits.per_node, ("node", pod.node_name), NODE_REACHED, Stop.NODE))
    scopes.append(
        _Scope(limits.per_namespace, ("namespace", pod.namespace), NAMESPACE_REACHED, Stop.NO)
    )
    owner = workload(pod)
    if owner is not None:
        scopes.append(_Scope(limits.per_workload, ("workload", *owner), WORKLOAD_REACHED, Stop.NO))
    return tuple(scopes)


Outstanding = Callable[[tuple[str, ...]], int]
"""Returns how many evictions go on in the background under a limit; they count besides."""


def _none(_key: tuple[str, ...]) -> int:
    return 0


class PassLimits:
    """Upstream's counting: evictions of one pass, over all profiles and strategies."""

    def __init__(self, limits: Limits, *, in_background: Outstanding = _none) -> None:
        self._limits = limits._replace(per_workload=None)
        self._in_background = in_background
        self._counts: Counter[tuple[str, ...]] = Counter()

    def check(self, pod: Pod) -> tuple[Held, Stop] | None:
        """Return which limit holds the Pod, and where the strategy has to stop."""
        for scope in _scopes(self._limits, pod):
            if scope.limit is None:
                continue
            if self._counts[scope.key] + self._in_background(scope.key) + 1 > scope.limit:
                reason = f"{scope.reached} ({scope.limit})"
                return Held("limits", reason, (Never(pod.uid),)), scope.stop
        return None

    def count(self, pod: Pod) -> None:
        """Count an eviction that was granted."""
        self._counts.update(scope.key for scope in _scopes(self._limits, pod))


class _Permit(NamedTuple):
    uid: str
    time: datetime
    keys: tuple[tuple[str, ...], ...]


class LimitsGate(OpenGate):
    """The same limits in a sliding window. What was sent counts, also when its answer is
    unknown."""

    NAME: ClassVar[str] = "limits"
    REJECTS: ClassVar[bool] = True

    def __init__(
        self, limits: Limits, *, window: timedelta, in_background: Outstanding = _none
    ) -> None:
        self._limits = limits
        self._in_background = in_background
        self._window = window
        self._permits: deque[_Permit] = deque()
        self._counts: Counter[tuple[str, ...]] = Counter()
        self._begun: _Permit | None = None
        """Taken for a request that is not sent yet."""

    def reconfigure(self, limits: Limits, *, window: timedelta) -> None:
        """Let other limits hold from now on, for what was counted so far too."""
        self._limits = limits
        self._window = window

    def check(self, candidate: Candidate, now: datetime, /) -> Held | Rejection | None:
        self._expire(now)
        reached = [each for each in _scopes(self._limits, candidate.pod) if self._is_reached(each)]
        if not reached:
            return None
        # What lets Pods of others go comes first: it is no news when the rest is free again.
        scope = next((each for each in reached if each.stop is Stop.NO), reached[0])
        window = f"{self._window.total_seconds():g} s"
        reason = f"{scope.reached} ({scope.limit} in {window})"
        wakes = (At(self._frees_at(scope.key, now)), On(Action.LIMIT_FREED, None))
        if scope.stop is Stop.NO:
            return blocked(self.NAME, reason, wakes, candidate)
        return Held(self.NAME, reason, wakes)

    def _is_reached(self, scope: _Scope) -> bool:
        if scope.limit is None:
            return False
        # Right before its request, when its key is evaluated once more, a candidate has its permit:
        # that the others are answered as they were before, it does not count yet.
        begun = self._begun is not None and scope.key in self._begun.keys
        return self._counts[scope.key] - begun + self._in_background(scope.key) + 1 > scope.limit

    def count(self, candidate: Candidate, now: datetime) -> None:
        """Count an eviction as of now."""
        # Scopes without a limit count too: a reload of the policy may set one.
        keys = tuple(scope.key for scope in _scopes(self._limits, candidate.pod))
        self._permits.append(_Permit(candidate.pod.uid, now, keys))
        self._counts.update(keys)

    def take(self, candidate: Candidate, now: datetime, /) -> None:
        self.count(candidate, now)
        self._begun = self._permits[-1]

    def sent(self, candidate: Candidate, now: datetime, /) -> None:
        self._begun = None

    def give_back(self, candidate: Candidate, now: datetime, /) -> None:
        self._begun = None
        for permit in reversed(self._permits):
            if permit.uid == candidate.pod.uid:
                self._permits.remove(permit)
                self._uncount(permit)
                return

    def on_outcome(self, outcome: EvictionOutcome, now: datetime, /) -> Iterable[ClusterEvent]:
        sent_and_lost = outcome.answer is Answer.SERVER_ERROR and outcome.status is not None
        if outcome.answer in COUNTED or sent_and_lost:
            return ()
        self.give_back(outcome.candidate, now)
        return (ClusterEvent(Action.LIMIT_FREED, outcome.candidate.pod.ref),)

    def on_jump(self, by: timedelta, /) -> None:
        self._permits = deque(each._replace(time=each.time + by) for each in self._permits)

    def _frees_at(self, key: tuple[str, ...], now: datetime) -> datetime:
        oldest = next((permit for permit in self._permits if key in permit.keys), None)
        return (oldest.time if oldest is not None else now) + self._window

    def _expire(self, now: datetime) -> None:
        while self._permits and self._permits[0].time + self._window <= now:
            self._uncount(self._permits.popleft())

    def _uncount(self, permit: _Permit) -> None:
        self._counts.subtract(permit.keys)
        for key in permit.keys:
            if self._counts[key] <= 0:
                del self._counts[key]
