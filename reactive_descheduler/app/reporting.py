"""Turns what the loop and the dispatcher tell into Decisions for the hooks, and into metrics."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from reactive_descheduler.api.changes import At, Key
from reactive_descheduler.api.eviction import (
    Candidate,
    Decision,
    EvictionOutcome,
    Held,
    Rejection,
    Stay,
)
from reactive_descheduler.controller.parking import Evaluated
from reactive_descheduler.evictor.background import Ended
from reactive_descheduler.evictor.queue import Queued
from reactive_descheduler.kit.clock import Clock
from reactive_descheduler.observability.hooks import Hooks
from reactive_descheduler.observability.metrics import Metrics, Result


class Reporter:
    """Observer of the dispatcher and of the reconcile loop."""

    def __init__(
        self, hooks: Hooks, metrics: Metrics, *, clock: Clock, profile_names: Sequence[str]
    ) -> None:
        self._hooks = hooks
        self._metrics = metrics
        self._clock = clock
        self._profile_names = tuple(profile_names)

    def evaluated(
        self, key: Key, evaluated: Evaluated, *, change_seen: datetime | None, looked_at: int
    ) -> None:
        result = "offered" if evaluated.offered else "rejected" if evaluated.rejected else "nothing"
        self._metrics.evaluations.labels(key.strategy, result).inc()
        self._metrics.pods_looked_at.labels(key.strategy).inc(looked_at)
        for rejection in evaluated.rejected:
            self._metrics.rejections.labels(rejection.by).inc()

    def stays(self, key: Key, rejection: Rejection) -> None:
        self._hooks.on_stay(Stay(self._profile_names[key.profile], key.strategy, rejection))

    def failed(self, key: Key, error: Exception) -> None:
        self._metrics.evaluate_errors.labels(key.strategy).inc()

    def missed(self, key: Key, candidate: Candidate) -> None:
        self._metrics.resync_findings.labels(key.strategy).inc()

    def held(self, entry: Queued, held: Held) -> None:
        until = min((wake.time for wake in held.wakes if isinstance(wake, At)), default=None)
        self._decide(entry, "held", held.by, held.reason, until=until)

    def rejected(self, entry: Queued, rejection: Rejection) -> None:
        self._decide(entry, "rejected", rejection.by, rejection.reason)

    def dropped(self, entry: Queued) -> None:
        reason = "no longer offered at the check before the request"
        self._decide(entry, "dropped", entry.candidate.key.strategy, reason)

    def sent(self, entry: Queued) -> None:
        self._decide(entry, "accepted", entry.candidate.key.strategy, entry.candidate.reason)

    def answered(self, outcome: EvictionOutcome) -> None:
        self._hooks.on_outcome(outcome)

    def ended(self, ended: Ended) -> None:
        """Count a background eviction that is over: a second time, as upstream does."""
        candidate = ended.candidate
        self._metrics.count_eviction(
            Result.SUCCESS if ended.success else Result.ERROR,
            strategy=candidate.key.strategy,
            profile=self._profile_names[candidate.key.profile],
            namespace=candidate.pod.namespace,
            node=candidate.pod.node_name,
        )

    def _decide(
        self,
        entry: Queued,
        verdict: str,
        by: str,
        reason: str,
        *,
        until: datetime | None = None,
    ) -> None:
        candidate, now = entry.candidate, self._clock.now()
        profile = self._profile_names[candidate.key.profile]
        self._hooks.on_decision(
            Decision(now, profile, candidate, verdict, by, reason, entry.change_seen, until)
        )
