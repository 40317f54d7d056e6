"""Kubernetes Events on evicted Pods, and on refused ones where the policy asks (spec/evictor
3.5)."""

from __future__ import annotations

from typing import Protocol

from reactive_descheduler.api.eviction import Answer, Decision, EvictionOutcome
from reactive_descheduler.api.pod import Pod

_NO_FAILURE = frozenset(
    {
        Answer.EVICTED,
        Answer.DRY_RUN,
        Answer.OBSERVED,
        Answer.BACKGROUND,
        Answer.UNKNOWN,
    }
)


class PodEvents(Protocol):
    """Sends one Event about a Pod; returns at once."""

    def __call__(self, pod: Pod, *, reason: str, note: str, warning: bool) -> None: ...


class EvictionEventsHook:
    """`failures`: policy `evictionFailureEventNotification`. A dry run sends nothing."""

    def __init__(self, send: PodEvents, *, failures: bool, dry_run: bool) -> None:
        self._send = send
        self._failures = failures
        self._dry_run = dry_run

    def on_decision(self, decision: Decision, /) -> None:
        if decision.verdict == "held" and decision.by == "limits":
            self._failed(decision.candidate.pod, decision.reason)

    def on_outcome(self, outcome: EvictionOutcome, /) -> None:
        pod = outcome.candidate.pod
        if outcome.answer is Answer.EVICTED:
            note = f"pod evicted from {pod.node_name} node by sigs.k8s.io/descheduler"
            self._send(pod, reason=outcome.candidate.key.strategy, note=note, warning=False)
        elif outcome.answer not in _NO_FAILURE:
            self._failed(pod, outcome.message)

    def _failed(self, pod: Pod, cause: str) -> None:
        if self._failures and not self._dry_run:
            note = f"pod eviction from {pod.node_name} node failed: {cause}"
            self._send(pod, reason="EvictionFailed", note=note, warning=True)
