"""One full pass over a snapshot: nothing is sent, and the snapshot is afterwards what it was."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from reactive_descheduler.api.eviction import Answer, Candidate, EvictionOutcome, Held, Rejection
from reactive_descheduler.app.booking import rooms_of
from reactive_descheduler.app.pass_driver import PassReport, Refusal, run_pass
from reactive_descheduler.app.policy import in_tree_registry, pass_limits, usage_sources
from reactive_descheduler.app.snapshot import Snapshot
from reactive_descheduler.config.corrections import Correction
from reactive_descheduler.config.loaded import LoadedPolicy
from reactive_descheduler.evictor.gates.lane import LaneGate
from reactive_descheduler.framework.cycle import CycleNodes

REFUSED_NOW, REFUSED_FOR_EVER = 429, 500
"""What the API server answers for a budget that is used up, and for more than one budget."""


class Trial(NamedTuple):
    report: PassReport
    profiles: tuple[str, ...]
    """Names, in the order of the file."""


def nodes_of_cycle(policy: LoadedPolicy, snapshot: Snapshot) -> CycleNodes:
    """Return the nodes that the policy looks at."""
    nodes = {node.name: node for node in snapshot.lister.nodes()}
    return CycleNodes(policy.node_selector, nodes)


def try_pass(policy: LoadedPolicy, snapshot: Snapshot, *, now: datetime) -> Trial:
    """Run one full pass, as if every request were granted that no budget stands against.

    Raises:
        PolicyError: a priority class that the policy names is missing, or its value is too high.
    """
    profiles = in_tree_registry().profiles(policy, priority_classes=snapshot.priority_classes)
    sources = usage_sources(policy)
    snapshot.usage.configure(sources, samples=1, max_age=policy.reactive.usage.max_age)
    report = run_pass(
        profiles,
        store=snapshot.store,
        nodes=nodes_of_cycle(policy, snapshot),
        now=now,
        limits=pass_limits(policy),
        ask=_Budgets(snapshot, now).ask,
        one_offer=Correction.ONE_OFFER_PER_PASS in policy.corrections,
        rooms=rooms_of(policy),
        observing=policy.reactive.observing,
        usage=snapshot.usage if sources else None,
    )
    if Correction.ONE_OFFER_PER_PASS not in policy.corrections:
        for candidate in report.evicted:  # which became terminating in the store
            snapshot.store.put(candidate.pod)
    return Trial(report, tuple(profile.name for profile in profiles))


class _Budgets:
    """Answers for the API server by the gate for budgets, as if what it let pass were granted."""

    def __init__(self, snapshot: Snapshot, now: datetime) -> None:
        self._lane = LaneGate(
            budgets_of=snapshot.lister.budgets_of,
            is_stale=lambda: False,
            pod_now=snapshot.lister.pod,
        )
        self._now = now

    def ask(self, candidate: Candidate) -> Refusal | None:
        stands_in_the_way = self._lane.check(candidate, self._now)
        if isinstance(stands_in_the_way, Rejection):
            return Refusal(REFUSED_FOR_EVER, stands_in_the_way.reason)
        if isinstance(stands_in_the_way, Held):
            return Refusal(REFUSED_NOW, stands_in_the_way.reason)
        self._lane.take(candidate, self._now)
        granted = EvictionOutcome(candidate, Answer.EVICTED, 201, "", None, self._now, self._now)
        self._lane.on_outcome(granted, self._now)
        return None
