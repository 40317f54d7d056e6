"""What one full pass would evict now, and why the rest stays: decided as the daemon would.

Nothing is sent. Settle times and the rate of evictions do not apply to a pass; what a disruption
budget would refuse is told from what the budget shows, since the API server is not asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from reactive_descheduler.api.changes import At
from reactive_descheduler.api.errors import SnapshotError
from reactive_descheduler.api.eviction import Candidate, Rejection
from reactive_descheduler.api.pod import EVICT_ANNOTATION, workload
from reactive_descheduler.app.pass_driver import PassReport
from reactive_descheduler.app.policy import (
    needed_kinds,
    needs_priority_classes,
    volumes_decide,
    wanted_usage,
)
from reactive_descheduler.app.snapshot import Snapshot
from reactive_descheduler.app.trial import nodes_of_cycle, try_pass
from reactive_descheduler.app.wording import describe_ref, describe_wake
from reactive_descheduler.cache.measured import NODE_METRICS, POD_METRICS
from reactive_descheduler.config.corrections import Correction
from reactive_descheduler.config.doubts import doubt_problems
from reactive_descheduler.config.evictor import Protection
from reactive_descheduler.config.loaded import LoadedPolicy
from reactive_descheduler.framework.cycle import LEAST_NODES, CycleNodes
from reactive_descheduler.guardrails import is_annotated_true
from reactive_descheduler.guardrails.node_fit import NodeFit
from reactive_descheduler.strategies import PLUGINS

PRIORITY_CLASS = "PriorityClass"
_MEASURED = "nodes.metrics.k8s.io,pods.metrics.k8s.io"
_CLAIM, _VOLUME = "PersistentVolumeClaim", "PersistentVolume"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPod:
    """A Pod that would go, that its budget would refuse, or that a limit holds."""

    profile: str
    strategy: str
    namespace: str
    name: str
    node: str
    workload: str
    """What replaces it, `Deployment default/web`; empty for a bare Pod."""
    cause: str
    reason: str
    note: str
    """What stands in the way: its budget, or the limit that holds it; empty if it would go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedPod:
    """A Pod that violates a placement and stays all the same."""

    namespace: str
    name: str
    by: str
    reason: str
    lifted_when: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterPod:
    """A Pod that violates nothing yet, and will do so by time alone."""

    namespace: str
    name: str
    strategy: str
    due: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedStrategy:
    profile: str
    strategy: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    time: datetime
    corrections: tuple[str, ...]
    nodes: int
    nodes_looked_at: int
    evictions: tuple[PlannedPod, ...]
    refused_by_budget: tuple[PlannedPod, ...]
    """As if all evictions before were granted. They count for no limit, as in a pass."""
    observed: tuple[PlannedPod, ...]
    """What strategies in mode `observe` would evict if they acted."""
    refused: tuple[RefusedPod, ...]
    """Without those that go all the same, by another strategy."""
    later: tuple[LaterPod, ...]
    """The soonest first."""
    held: tuple[PlannedPod, ...]
    failed: tuple[FailedStrategy, ...]
    warnings: tuple[str, ...]


def kinds_to_read(policy: LoadedPolicy) -> tuple[str, ...]:
    """Return the kinds that a plan for this policy reads."""
    kinds = needed_kinds(policy)
    return (*kinds, PRIORITY_CLASS) if needs_priority_classes(policy) else kinds


def check_dump(policy: LoadedPolicy, dump: Snapshot, *, source: str) -> None:
    """Refuse a dump in which a kind is missing that this policy's decisions rest on.

    A kind of which a cluster may well have none cannot be told from one that was not dumped.

    Raises:
        SnapshotError: a kind is missing.
    """
    kinds = ["Node", "Pod"]
    if any(profile.evictor.namespace_label_selector is not None for profile in policy.profiles):
        kinds.append("Namespace")
    if needs_priority_classes(policy):
        kinds.append(PRIORITY_CLASS)
    claims = _CLAIM in needed_kinds(policy)
    if claims and any(pod.template.claims for pod in dump.lister.pods()):
        kinds.append(_CLAIM)
    if volumes_decide(policy) and _names_a_volume(dump):
        kinds.append(_VOLUME)
    measured = wanted_usage(policy).metrics_server
    if measured:
        kinds += [NODE_METRICS, POD_METRICS]
    missing = [kind for kind in kinds if not dump.counts[kind]]
    if missing:
        error = SnapshotError(f"{source}: holds no {' and no '.join(missing)}, which are needed")
        more = f",{_MEASURED}" if measured else ""
        error.hint = f"make one with: kubectl get nodes,pods,ns,pdb,pvc,pv,pc{more} -A -o json"
        raise error


def _names_a_volume(dump: Snapshot) -> bool:
    return any(
        claim is not None and claim.volume
        for pod in dump.lister.pods()
        for claim in (dump.lister.claim(pod.namespace, name) for name in pod.template.claims)
    )


def make_plan(policy: LoadedPolicy, snapshot: Snapshot, *, now: datetime) -> Plan:
    """Run one full pass over a snapshot.

    Raises:
        PolicyError: a priority class that the policy names is missing, or its value is too high.
    """
    report, names = try_pass(policy, snapshot, now=now)
    nodes = nodes_of_cycle(policy, snapshot)
    return Plan(
        time=now,
        corrections=tuple(sorted(policy.corrections)),
        nodes=len(snapshot.lister.nodes()),
        nodes_looked_at=len(nodes),
        evictions=tuple(_planned(candidate, names) for candidate in report.evicted),
        refused_by_budget=tuple(
            _planned(candidate, names, note=refusal.message)
            for candidate, refusal in report.refused
        ),
        observed=tuple(_planned(candidate, names) for candidate in report.observed),
        refused=tuple(_refused(report)),
        later=tuple(sorted(_later(report), key=lambda pod: (pod.due, pod.namespace, pod.name))),
        held=tuple(_planned(candidate, names, note=held.reason) for candidate, held in report.held),
        failed=failures(report, names),
        warnings=(*warnings(policy, snapshot, nodes), *_fit_nowhere(report)),
    )


def failures(report: PassReport, profiles: Sequence[str]) -> tuple[FailedStrategy, ...]:
    return tuple(
        FailedStrategy(profile=profiles[each.profile], strategy=each.strategy, error=each.error)
        for each in report.failed
    )


def _planned(candidate: Candidate, profiles: Sequence[str], *, note: str = "") -> PlannedPod:
    pod = candidate.pod
    owner = workload(pod)
    return PlannedPod(
        profile=profiles[candidate.key.profile],
        strategy=candidate.key.strategy,
        namespace=pod.namespace,
        name=pod.name,
        node=pod.node_name,
        workload=describe_ref(owner) if owner is not None else "",
        cause=candidate.cause.kind,
        reason=candidate.reason,
        note=note,
    )


def _refused(report: PassReport) -> Iterator[RefusedPod]:
    """Yield each refusal once, though several strategies may have met it."""
    told: set[tuple[object, str, str]] = set()
    for rejection in _staying(report):
        found = (rejection.pod, rejection.by, rejection.reason)
        if found in told or _due(rejection) is not None:
            continue
        told.add(found)
        _, namespace, name = rejection.pod or ("", "", "")
        yield RefusedPod(
            namespace=namespace,
            name=name,
            by=rejection.by,
            reason=rejection.reason,
            lifted_when=tuple(dict.fromkeys(map(describe_wake, rejection.wakes))),
        )


def _later(report: PassReport) -> Iterator[LaterPod]:
    for rejection in _staying(report):
        due = _due(rejection)
        if due is not None and rejection.pod is not None:
            _, namespace, name = rejection.pod
            yield LaterPod(namespace=namespace, name=name, strategy=rejection.by, due=due)


def _fit_nowhere(report: PassReport) -> Iterator[str]:
    """Say so where node fit alone keeps a whole pass from evicting anybody."""
    wanted = (report.evicted, report.observed, report.held, report.refused, report.in_background)
    refused = {each.pod for each in report.rejected if each.by == NodeFit.NAME}
    if refused and not any(wanted):
        pods = "1 Pod" if len(refused) == 1 else f"all {len(refused)} Pods"
        yield f"node fit keeps {pods} that would go otherwise, so nothing is evicted"


def _staying(report: PassReport) -> Iterator[Rejection]:
    going = {candidate.pod.ref for candidate in report.evicted}
    return (rejection for rejection in report.rejected if rejection.pod not in going)


def _due(rejection: Rejection) -> datetime | None:
    """Return when a strategy itself will say yes, if only time is missing."""
    if rejection.by in PLUGINS and isinstance(rejection.wakes[0], At):
        return rejection.wakes[0].time if len(rejection.wakes) == 1 else None
    return None


def warnings(policy: LoadedPolicy, snapshot: Snapshot, nodes: CycleNodes) -> Iterator[str]:
    """Yield what is odd about the policy on this cluster."""
    for problem in doubt_problems(policy):
        yield problem.told(policy.source)
    for why in snapshot.unmeasured:
        yield f"usage cannot be measured: {why}"
    if any(not snapshot.usage.vectors(query) for query in wanted_usage(policy).queries):
        yield "nothing is known of what Prometheus measures, so what goes by it evicts nothing"
    if not nodes.alive:
        total = len(snapshot.lister.nodes())
        selected = " and selected by the policy's nodeSelector" if policy.node_selector else ""
        yield (
            f"fewer than {LEAST_NODES} of the {total} nodes are ready{selected}, so nothing is"
            " looked at"
        )
    unreadable = [
        f"{kind} {found.namespace + '/' if found.namespace else ''}{found.name}"
        for kind in sorted(snapshot.counts)
        for found in snapshot.store.all(kind)
        if found.opaque
    ]
    if unreadable:
        yield f"unreadable, so what has to do with it stays: {', '.join(unreadable)}"
    yield from _annotated_in_vain(policy, snapshot)
    sees_budgets = Correction.PODS_WITHOUT_PDB in policy.corrections and any(
        Protection.WITHOUT_PDB in profile.evictor.protections for profile in policy.profiles
    )
    if sees_budgets and not snapshot.counts["PodDisruptionBudget"]:
        yield "there is no PodDisruptionBudget, so PodsWithoutPDB protects every Pod"


_NAMED = 5
"""Pods that a warning names; the rest are a number."""


def _annotated_in_vain(policy: LoadedPolicy, snapshot: Snapshot) -> Iterator[str]:
    if Correction.EVICT_ANNOTATION not in policy.corrections:
        return
    found = sorted(
        f"{pod.namespace}/{pod.name}"
        for pod in snapshot.lister.pods()
        if EVICT_ANNOTATION in pod.annotations and not is_annotated_true(pod)
    )
    if found:
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        yield (
            f"the annotation {EVICT_ANNOTATION} has no effect with another value than true:"
            f" {', '.join(found[:_NAMED])}{more}"
        )
