"""What listens to decisions. The core tells of each decision and each answer in one frozen object
and knows nothing of who listens."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

from reactive_descheduler.api.eviction import Answer, Decision, EvictionOutcome, Stay
from reactive_descheduler.observability.logs import Logger
from reactive_descheduler.observability.metrics import Metrics, Result

REMEMBERED_CHANGES = 10_000
"""Pods whose change is remembered from the verdict to the request."""
_PASSING = frozenset(
    {
        Answer.NOT_FOUND,
        Answer.UID_CONFLICT,
        Answer.BUDGET,
        Answer.BUDGET_UNOBSERVED,
        Answer.THROTTLED,
        Answer.UNKNOWN,
    }
)
"""Answers that are part of the day's work: the Pod went by itself, or the time has not come."""
_RESULTS = {
    Answer.EVICTED: Result.SUCCESS,
    Answer.DRY_RUN: Result.SUCCESS,
    Answer.BACKGROUND: Result.BACKGROUND,
}
_LIMITS = (Result.TOTAL_LIMIT, Result.NODE_LIMIT, Result.NAMESPACE_LIMIT)

ProfileName = Callable[[int], str]
"""The name of the profile with this index, as in `Key.profile`."""


class Hook(Protocol):
    """A listener. Synchronous and quick: it is called between a verdict and the next."""

    def on_decision(self, decision: Decision, /) -> None: ...
    def on_outcome(self, outcome: EvictionOutcome, /) -> None: ...


@runtime_checkable
class StayHook(Protocol):
    """What a hook has as well if it listens to who stays and why: few do, and at the start of a
    big cluster there are many."""

    def on_stay(self, stay: Stay, /) -> None: ...


class Hooks:
    """Hands everything to each hook in order. An exception in one is logged and counted, and
    reaches neither the others nor the core."""

    def __init__(self, hooks: Sequence[Hook], *, metrics: Metrics, log: Logger) -> None:
        self._hooks = hooks
        self._stay_hooks = tuple(hook for hook in hooks if isinstance(hook, StayHook))
        self._metrics = metrics
        self._log = log

    def on_decision(self, decision: Decision, /) -> None:
        for hook in self._hooks:
            try:
                hook.on_decision(decision)
            except Exception as error:  # one failure stays one
                self._report(hook, error)

    def on_outcome(self, outcome: EvictionOutcome, /) -> None:
        for hook in self._hooks:
            try:
                hook.on_outcome(outcome)
            except Exception as error:  # one failure stays one
                self._report(hook, error)

    def on_stay(self, stay: Stay, /) -> None:
        for hook in self._stay_hooks:
            try:
                hook.on_stay(stay)
            except Exception as error:  # one failure stays one
                self._report(hook, error)

    def _report(self, hook: object, error: Exception) -> None:
        name = type(hook).__name__
        self._metrics.hook_errors.labels(name).inc()
        self._log.error("Hook failed", hook=name, error=error)


class MetricsHook:
    """Counts verdicts and answers, and measures the way from a change to its request."""

    def __init__(self, metrics: Metrics, profile_name: ProfileName) -> None:
        self._metrics = metrics
        self._profile_name = profile_name
        self._seen: OrderedDict[str, datetime] = OrderedDict()

    def on_decision(self, decision: Decision, /) -> None:
        strategy = decision.candidate.key.strategy
        if decision.change_seen is not None:
            latency = _seconds(decision.change_seen, decision.time)
            self._metrics.cause_to_verdict.labels(strategy).observe(latency)
        match decision.verdict:
            case "held":
                self._metrics.holds.labels(decision.by).inc()
                self._count_limit(decision)
            case "rejected":
                self._metrics.rejections.labels(decision.by).inc()
            case "dropped":
                self._metrics.dropped.labels(strategy).inc()
        self._remember(decision)

    def on_outcome(self, outcome: EvictionOutcome, /) -> None:
        strategy, pod, answer = (
            outcome.candidate.key.strategy,
            outcome.candidate.pod,
            outcome.answer,
        )
        self._metrics.answers.labels(answer).inc()
        duration = _seconds(outcome.started, outcome.ended)
        self._metrics.request_duration.labels(answer).observe(duration)
        if (seen := self._seen.pop(pod.uid, None)) is not None:
            latency = _seconds(seen, outcome.started)
            self._metrics.cause_to_request.labels(strategy).observe(latency)
        if answer in (Answer.DRY_RUN, Answer.OBSERVED):
            self._metrics.dry_run_reports.labels(strategy).inc()
        if answer in (Answer.UNKNOWN, Answer.OBSERVED):
            return  # counted when it is known what became of it; nothing becomes of an observation
        self._metrics.count_eviction(
            _RESULTS.get(answer, Result.ERROR),
            strategy=strategy,
            profile=self._profile_name(outcome.candidate.key.profile),
            namespace=pod.namespace,
            node=pod.node_name,
        )

    def _count_limit(self, decision: Decision) -> None:
        """Count a candidate that one of upstream's limits holds, as upstream does."""
        for result in _LIMITS:
            if result in decision.reason:
                pod = decision.candidate.pod
                self._metrics.count_eviction(
                    result,
                    strategy=decision.candidate.key.strategy,
                    profile=decision.profile,
                    namespace=pod.namespace,
                    node=pod.node_name,
                )

    def _remember(self, decision: Decision) -> None:
        uid = decision.candidate.pod.uid
        if decision.verdict in ("rejected", "dropped"):
            self._seen.pop(uid, None)
        elif decision.change_seen is not None:
            # The first change counts: a Pod held for a minute has waited for that minute.
            self._seen.setdefault(uid, decision.change_seen)
            if len(self._seen) > REMEMBERED_CHANGES:
                self._seen.popitem(last=False)


class LogHook:
    """Logs with upstream's keys (`pod`, `reason`, `strategy`, `node`, `profile`): an eviction
    always (upstream: from verbosity 1 on), a Pod that is refused or a candidate that waits at 4; a
    request that failed is an error, or a warning where it passes by itself."""

    def __init__(self, log: Logger, profile_name: ProfileName) -> None:
        self._log = log
        self._profile_name = profile_name

    def on_decision(self, decision: Decision, /) -> None:
        if decision.verdict == "accepted":
            return  # the answer to the request is the line to read
        pod = decision.candidate.pod
        self._log.verbose(
            4,
            "Candidate not evicted",
            verdict=decision.verdict,
            pod=f"{pod.namespace}/{pod.name}",
            reason=decision.reason,
            by=decision.by,
            strategy=decision.candidate.key.strategy,
            node=pod.node_name,
            profile=decision.profile,
        )

    def on_stay(self, stay: Stay, /) -> None:
        rejection = stay.rejection
        _, namespace, name = rejection.pod or ("", "", "")
        self._log.verbose(
            4,
            "Pod stays",
            pod=f"{namespace}/{name}" if name else None,
            reason=rejection.reason,
            by=rejection.by,
            strategy=stay.strategy,
            profile=stay.profile,
        )

    def on_outcome(self, outcome: EvictionOutcome, /) -> None:
        candidate, answer = outcome.candidate, outcome.answer
        pod = candidate.pod
        fields: dict[str, object] = {
            "pod": f"{pod.namespace}/{pod.name}",
            "reason": candidate.reason,
            "strategy": candidate.key.strategy,
            "node": pod.node_name,
            "profile": self._profile_name(candidate.key.profile),
        }
        if answer is Answer.EVICTED:
            self._log.info("Evicted pod", **fields)
        elif answer is Answer.DRY_RUN:
            self._log.info("Evicted pod in dry run mode", **fields)
        elif answer is Answer.BACKGROUND:
            self._log.info("Eviction goes on in the background", **fields)
        elif answer is Answer.OBSERVED:
            self._log.info("Pod would be evicted, but the strategy only observes", **fields)
        else:
            say = self._log.warning if answer in _PASSING else self._log.error
            say(
                "Error evicting pod",
                **fields,
                answer=answer,
                status=outcome.status,
                error=outcome.message,
            )


def _seconds(start: datetime, end: datetime) -> float:
    """Wall clock times: a jump between them must not make a latency negative."""
    return max(0.0, (end - start).total_seconds())
