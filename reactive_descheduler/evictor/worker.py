"""The one place that asks for evictions, and the one place where a dry run is decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from reactive_descheduler.api.eviction import Answer, Candidate, EvictionOutcome
from reactive_descheduler.evictor.background import is_evacuation
from reactive_descheduler.kit.clock import Clock

REQUESTED_BY = "sigs.k8s.io/descheduler"
"""Upstream's value, on which audit rules match (spec/evictor 3.3)."""


class EvictionAnswer(Protocol):
    """What the client makes of the API server's answer."""

    @property
    def answer(self) -> Answer: ...
    @property
    def status(self) -> int | None: ...
    @property
    def message(self) -> str: ...
    @property
    def retry_after(self) -> float | None: ...


class EvictionClient(Protocol):
    async def evict(
        self,
        namespace: str,
        name: str,
        *,
        uid: str,
        grace_period_seconds: int | None,
        annotations: Mapping[str, str],
    ) -> EvictionAnswer: ...


class WorkerSettings(NamedTuple):
    dry_run: bool
    grace_period_seconds: int | None
    """Sent with each request; None sends none, and the Pod's own holds."""
    profile_names: tuple[str, ...]
    observing: frozenset[str] = frozenset()
    """Strategies in mode `observe`."""
    in_background: bool = False
    """The feature gate EvictionsInBackground."""


class EvictionWorker:
    def __init__(self, client: EvictionClient, settings: WorkerSettings, *, clock: Clock) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock

    @property
    def dry_run(self) -> bool:
        return self._settings.dry_run

    async def evict(self, candidate: Candidate) -> EvictionOutcome:
        """Ask the API server to evict the Pod; the UID goes as a precondition.

        A resourceVersion never does: it moves with every status write, and the API server takes the
        budget before it checks preconditions, so a stale request would burn budget.
        """
        started = self._clock.now()
        if self._settings.dry_run:
            return EvictionOutcome(
                candidate, Answer.DRY_RUN, None, "dry run", None, started, started
            )
        if candidate.key.strategy in self._settings.observing:
            message = "the strategy only observes"
            return EvictionOutcome(
                candidate, Answer.OBSERVED, None, message, None, started, started
            )
        pod = candidate.pod
        profile = self._settings.profile_names[candidate.key.profile]
        answer = await self._client.evict(
            pod.namespace,
            pod.name,
            uid=pod.uid,
            grace_period_seconds=self._settings.grace_period_seconds,
            annotations={
                "requested-by": REQUESTED_BY,
                "reason": f"triggered by {profile}/{candidate.key.strategy}: {candidate.reason}",
            },
        )
        taken_over = (
            self._settings.in_background
            and pod.active
            and is_evacuation(pod, answer.status, answer.message)
        )
        return EvictionOutcome(
            candidate,
            Answer.BACKGROUND if taken_over else answer.answer,
            answer.status,
            answer.message,
            answer.retry_after,
            started,
            self._clock.now(),
        )
