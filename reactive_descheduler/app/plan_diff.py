"""What upstream would do differently on this very cluster, and which correction decides.

Two passes over one snapshot, with the corrections in force and with none; then more of them, until
each difference has its correction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from reactive_descheduler.api.errors import PolicyError, Problem
from reactive_descheduler.api.eviction import Candidate, Rejection
from reactive_descheduler.api.meta import Ref
from reactive_descheduler.app.corrections_in_play import in_play
from reactive_descheduler.app.deciding import Decision, Manner, decide
from reactive_descheduler.app.plan import FailedStrategy, failures, warnings
from reactive_descheduler.app.snapshot import Snapshot
from reactive_descheduler.app.trial import REFUSED_FOR_EVER, Trial, nodes_of_cycle, try_pass
from reactive_descheduler.config.corrections import ALL, NONE, Correction, Corrections
from reactive_descheduler.config.load import load_policy
from reactive_descheduler.config.loaded import LoadedPolicy
from reactive_descheduler.strategies import PLUGINS

_LENIENT: Corrections = frozenset({Correction.MISSING_PLUGIN_CONFIG})
"""Under these a policy is read whenever upstream or we would read it."""


class Outcome(StrEnum):
    """What becomes of a Pod in a pass."""

    EVICTED = "evicted"
    REFUSED = "refused by its budget"
    HELD = "held by a limit"
    OBSERVED = "only observed"
    STAYS = "stays"


class Fate(NamedTuple):
    outcome: Outcome
    times: int
    """How often it is asked for. A second time counts for the limits, though it goes once."""


STAYS = Fate(Outcome.STAYS, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodDifference:
    namespace: str
    name: str
    node: str
    ours: Outcome
    ours_times: int
    upstream: Outcome
    upstream_times: int
    decided_by: tuple[Correction, ...]
    manner: Manner
    strategy: str
    """Which wants it to go: ours if there is one, else upstream's."""
    why: str
    """Why ours takes it or leaves it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentDifference:
    """Only one of the two reads the policy; the comparison goes on as if both did."""

    refused_by: str
    """`ours` or `upstream`."""
    decided_by: Correction
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deciding:
    """A correction that decides something here."""

    correction: Correction
    pods: int
    """How many Pods it decides, alone or with others."""
    ours: str
    upstream: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    time: datetime
    corrections: tuple[str, ...]
    """Those that are compared with none."""
    documents: tuple[DocumentDifference, ...]
    nodes: int
    nodes_looked_at: int
    evicted_by_both: int
    evicted_by_ours_only: int
    evicted_by_upstream_only: int
    pods: tuple[PodDifference, ...]
    """By namespace and name."""
    deciding: tuple[Deciding, ...]
    failed: tuple[FailedStrategy, ...]
    failed_upstream: tuple[FailedStrategy, ...]
    warnings: tuple[str, ...]


class Reading(NamedTuple):
    """A policy, read so that both sides can be tried."""

    policy: LoadedPolicy
    """With the corrections that are compared."""
    documents: tuple[DocumentDifference, ...]


def read_both_ways(text: bytes | str, *, source: str) -> Reading:
    """Read a policy as we do and as upstream does.

    The corrections that it puts in force are compared with none; if it puts none in force, all are.

    Raises:
        PolicyError: neither reads it; holds the mistakes as we see them.
    """
    try:
        lenient = load_policy(text, source=source, plugins=PLUGINS, corrections=_LENIENT)
    except PolicyError:
        load_policy(text, source=source, plugins=PLUGINS)  # raises, with more mistakes
        raise
    corrections = lenient.reactive.corrections or ALL
    here = _problems(text, source, corrections)
    upstream = _problems(text, source, NONE)
    if here and upstream:
        raise PolicyError(source, here)
    documents = [
        DocumentDifference(refused_by=side, decided_by=correction, problems=tuple(problems))
        for side, correction, problems in (
            ("ours", Correction.STRICT_DOCUMENTS, here),
            ("upstream", Correction.MISSING_PLUGIN_CONFIG, upstream),
        )
        if problems
    ]
    # What is refused is told as such; as a warning it would be told twice.
    told = () if here else lenient.warnings
    return Reading(replace(lenient, corrections=corrections, warnings=told), tuple(documents))


def _problems(text: bytes | str, source: str, corrections: Corrections) -> list[Problem]:
    try:
        load_policy(text, source=source, plugins=PLUGINS, corrections=corrections)
    except PolicyError as refusal:
        return list(refusal.problems)
    return []


def widest(policy: LoadedPolicy) -> LoadedPolicy:
    """Return the policy as it asks for every kind that some pass of the comparison reads."""
    return replace(policy, corrections=policy.corrections - {Correction.NODE_FIT_FALSE})


def compare(reading: Reading, snapshot: Snapshot, *, now: datetime) -> Comparison:
    """Run passes over the snapshot until each difference has its correction.

    Raises:
        PolicyError: a priority class that the policy names is missing, or its value is too high.
    """
    policy = reading.policy
    passes = _Passes(policy, snapshot, now)
    ours, upstream = passes.trial(policy.corrections), passes.trial(NONE)
    fates, fates_upstream = _fates(ours), _fates(upstream)
    differing = sorted(
        pod
        for pod in fates.keys() | fates_upstream.keys()
        if fates.get(pod) != fates_upstream.get(pod)
    )
    candidates = [each for each in in_play(policy, snapshot) if each in policy.corrections]
    decisions = decide(differing, candidates, policy.corrections, passes.fates)
    reasons = _Reasons(ours, upstream)
    going, going_upstream = _evicted(fates), _evicted(fates_upstream)
    nodes = nodes_of_cycle(policy, snapshot)
    return Comparison(
        time=now,
        corrections=tuple(sorted(policy.corrections)),
        documents=reading.documents,
        nodes=len(snapshot.lister.nodes()),
        nodes_looked_at=len(nodes),
        evicted_by_both=len(going & going_upstream),
        evicted_by_ours_only=len(going - going_upstream),
        evicted_by_upstream_only=len(going_upstream - going),
        pods=tuple(
            _difference(
                pod,
                fates.get(pod, STAYS),
                fates_upstream.get(pod, STAYS),
                decisions[pod],
                reasons,
            )
            for pod in differing
        ),
        deciding=tuple(_deciding(policy.corrections, decisions, ours)),
        failed=failures(ours.report, ours.profiles),
        failed_upstream=failures(upstream.report, upstream.profiles),
        warnings=tuple(warnings(policy, snapshot, nodes)),
    )


class _Passes:
    """Passes over one snapshot, one for each set of corrections; only what became of the Pods is
    kept of most."""

    def __init__(self, policy: LoadedPolicy, snapshot: Snapshot, now: datetime) -> None:
        self._policy = policy
        self._snapshot = snapshot
        self._now = now
        self._known: dict[Corrections, Mapping[Ref, Fate]] = {}

    def trial(self, corrections: Corrections) -> Trial:
        policy = replace(self._policy, corrections=corrections)
        trial = try_pass(policy, self._snapshot, now=self._now)
        self._known[corrections] = _fates(trial)
        return trial

    def fates(self, corrections: Corrections) -> Mapping[Ref, Fate]:
        if corrections not in self._known:
            self.trial(corrections)
        return self._known[corrections]


def _fates(trial: Trial) -> dict[Ref, Fate]:
    """Return what becomes of every Pod that is more than passed over."""
    report = trial.report
    fates = {each.pod.ref: Fate(Outcome.OBSERVED, 0) for each in report.observed}
    fates |= {each.pod.ref: Fate(Outcome.HELD, 0) for each, _ in report.held}
    refused = Counter(each.pod.ref for each, _ in report.refused)
    fates |= {pod: Fate(Outcome.REFUSED, times) for pod, times in refused.items()}
    evicted = Counter(each.pod.ref for each in (*report.evicted, *report.again))
    return fates | {pod: Fate(Outcome.EVICTED, times) for pod, times in evicted.items()}


def _evicted(fates: Mapping[Ref, Fate]) -> set[Ref]:
    return {pod for pod, fate in fates.items() if fate.outcome is Outcome.EVICTED}


class _Reasons:
    """Who wants a Pod to go, and why ours takes it or leaves it."""

    def __init__(self, ours: Trial, upstream: Trial) -> None:
        self._wanted = _by_pod(_candidates(ours))
        self._wanted_upstream = _by_pod(_candidates(upstream))
        self._rejected: dict[Ref, list[Rejection]] = {}
        for each in ours.report.rejected:
            if each.pod is not None:
                self._rejected.setdefault(each.pod, []).append(each)

    def candidate(self, pod: Ref) -> Candidate:
        """Return who is evicted or asked for, ours if there is one."""
        return self._wanted.get(pod) or self._wanted_upstream[pod]

    def why(self, pod: Ref, decision: Decision) -> str:
        wanted = self._wanted.get(pod)
        if wanted is not None:
            return wanted.reason
        # What another strategy says of the Pod is no reason why this one leaves it.
        theirs = PLUGINS.keys() - {self.candidate(pod).key.strategy}
        for each in self._rejected.get(pod, ()):
            if each.by not in theirs:
                return f"{each.by}: {each.reason}"
        return " ".join(each.ours for each in decision.corrections)


def _candidates(trial: Trial) -> Iterator[Candidate]:
    report = trial.report
    yield from report.evicted
    yield from (each for each, _ in report.refused)
    yield from (each for each, _ in report.held)
    yield from report.observed


def _by_pod(candidates: Iterable[Candidate]) -> dict[Ref, Candidate]:
    found: dict[Ref, Candidate] = {}
    for each in candidates:
        found.setdefault(each.pod.ref, each)
    return found


def _difference(
    pod: Ref, ours: Fate, upstream: Fate, decision: Decision, reasons: _Reasons
) -> PodDifference:
    candidate = reasons.candidate(pod)
    return PodDifference(
        namespace=candidate.pod.namespace,
        name=candidate.pod.name,
        node=candidate.pod.node_name,
        ours=ours.outcome,
        ours_times=ours.times,
        upstream=upstream.outcome,
        upstream_times=upstream.times,
        decided_by=decision.corrections,
        manner=decision.manner,
        strategy=candidate.key.strategy,
        why=reasons.why(pod, decision),
    )


def _deciding(
    corrections: Corrections, decisions: Mapping[Ref, Decision], ours: Trial
) -> Iterator[Deciding]:
    counts = Counter(each for decision in decisions.values() for each in decision.corrections)
    report = ours.report
    broken = any(refusal.code == REFUSED_FOR_EVER for _, refusal in report.refused)
    for each in Correction:
        shows = each is Correction.EXIT_CODES and each in corrections and (report.failed or broken)
        if counts[each] or shows:
            yield Deciding(
                correction=each, pods=counts[each], ours=each.ours, upstream=each.upstream
            )
