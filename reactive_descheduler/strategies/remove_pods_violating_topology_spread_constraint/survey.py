"""One group of constraints as a view shows it: who is counted where, who may go, and in which
order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from reactive_descheduler.api.changes import Key
from reactive_descheduler.api.eviction import (
    TAKEN,
    Candidate,
    Cause,
    Pause,
    Stop,
    Verdict,
)
from reactive_descheduler.api.pod import Kin, Pod, PodTemplate
from reactive_descheduler.api.scheduling.fit import FitRules
from reactive_descheduler.api.scheduling.spread import (
    DomainCounts,
    Spread,
    is_counted,
    least_of,
    selects,
    spreads,
)
from reactive_descheduler.api.selectors import matches
from reactive_descheduler.cache.spread_groups import SpreadGroup, text
from reactive_descheduler.config.args import LabelSelector
from reactive_descheduler.framework.strategy import Step, View

from .domains import CycleDomains

_PODS_AT_ONCE = 100
"""After how many that were looked at an evaluation gives way."""


class Rules(NamedTuple):
    """What arguments and corrections ask for."""

    kinds: tuple[str, ...]
    """Values of whenUnsatisfiable."""
    label_selector: LabelSelector | None
    only_fitting: bool
    """Whether a Pod goes only if a node of an emptier domain takes it."""
    counts_all: bool
    """Whether Pods count that may not go."""
    reads_min_domains: bool
    books: bool
    """Whether several Pods may not go for the same room."""
    fit: FitRules


@dataclass(frozen=True, slots=True)
class Survey:
    """A group under evaluation."""

    rules: Rules
    view: View
    namespace: str
    key: Key
    left: set[str]
    """Nodes whose limit is reached."""
    constraints: Mapping[Spread, Sequence[PodTemplate]]
    """In a fixed order, with the templates that carry each."""
    templates: tuple[PodTemplate, ...]
    domains: CycleDomains
    listed: Sequence[Pod] = field(default=())
    """Where not all are counted: the Pods in scope that may go."""

    def lists(self, pod: Pod) -> bool:
        """Say whether the Pod is in scope, on a node of the cycle."""
        selector = self.rules.label_selector
        return pod.node_name in self.view.nodes and (
            selector is None or matches(selector, pod.template.labels)
        )

    def may_go(self, pod: Pod) -> bool:
        return self.lists(pod) and self.view.filter(pod) is None

    def pods(self, templates: Iterable[PodTemplate]) -> Iterable[Pod]:
        for template in templates:
            yield from self.view.lister.placed_pods(Kin(self.namespace, template))

    def evictable(self, templates: Iterable[PodTemplate]) -> Step[list[Pod]]:
        """Return the Pods of these templates that may go, by node and name."""
        found: list[Pod] = []
        for looked_at, pod in enumerate(self.pods(templates), 1):
            if self.may_go(pod):
                found.append(pod)
            if looked_at % _PODS_AT_ONCE == 0:
                yield Pause()
        return sorted(found, key=_place)

    def selected(
        self, spread: Spread, on: Callable[[str], bool] = lambda _node_name: True
    ) -> list[Pod]:
        """Return the Pods on such nodes that a constraint counts, by node and name."""
        if not self.rules.counts_all:
            return [pod for pod in self.listed if _counts(spread, pod) and on(pod.node_name)]
        selected = [each for each in self.templates if selects(spread, each)]
        found = (pod for pod in self.pods(selected) if on(pod.node_name) and is_counted(pod))
        return sorted(found, key=_place)

    def counted(self, spread: Spread) -> DomainCounts:
        if self.rules.counts_all:
            return self.view.lister.spread_counts(self.namespace, spread)
        return self.domains.counted(spread, self.selected(spread), self.view)

    def floor(self, spread: Spread, counted: DomainCounts) -> int:
        """Return what a domain is held against: the least of all."""
        if not self.rules.reads_min_domains:
            return least_of(counted.domains, counted.counts, 1) or 0
        return counted.least or 0

    def is_uneven(self, spread: Spread, counted: DomainCounts) -> bool:
        most = max(counted.counts.values(), default=0)
        return most - self.floor(spread, counted) > spread.max_skew

    def is_carried(self, spread: Spread) -> bool:
        """Say whether a Pod that may go carries the constraint; as upstream, others do not ask for
        it."""
        if not self.rules.counts_all:
            return any(pod.template in self.constraints[spread] for pod in self.listed)
        return any(map(self.may_go, self.pods(self.constraints[spread])))

    def offer(self, pod: Pod, reason: str) -> Step[Verdict]:
        cause = Cause("spread", self.key.unit, ())
        verdict = (yield Candidate(self.key, pod, cause, reason)) or TAKEN
        if verdict.stop is Stop.NODE:
            self.left.add(pod.node_name)
        return verdict


def by_domain(counted: DomainCounts, pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """Return the Pods of each domain, in the order in which they came."""
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        value = counted.domains.of_node.get(pod.node_name)
        if value is not None:
            found.setdefault(value, []).append(pod)
    return found


def last_goes_first(pods: Iterable[Pod], may_go: Callable[[Pod], bool]) -> list[Pod]:
    """Order a domain's Pods so that those to go stand last, as upstream has it.

    Who may not go stands first; then who is bound to some nodes by selector or affinity; each of
    these by priority, none at all being the lowest. Upstream turns those without one round.
    """
    ranked = {_rank(pod, may_go(pod), at): pod for at, pod in enumerate(pods)}
    return [ranked[rank] for rank in sorted(ranked)]


def least_important_last(pods: Iterable[Pod]) -> list[Pod]:
    """Order a domain's Pods so that those to go first stand last: who is bound to no nodes, then
    who is of least priority."""
    return sorted(pods, key=_importance)[::-1]


def _importance(pod: Pod) -> tuple[bool, bool, int]:
    priority = pod.template.priority
    return _is_bound(pod.template), priority is not None, priority or 0


def _is_bound(template: PodTemplate) -> bool:
    return bool(
        template.node_selector
        or template.required_node_affinity is not None
        or template.preferred_node_affinity
    )


def _rank(pod: Pod, may_go: bool, at: int) -> tuple[bool, bool, bool, int, int]:
    bound, priority = _is_bound(pod.template), pod.template.priority
    if priority is None:
        return may_go, not bound, False, 0, -at
    return may_go, not bound, True, priority, at


def constraints_of(group: SpreadGroup, rules: Rules) -> Mapping[Spread, Sequence[PodTemplate]]:
    """Return a group's constraints of the kinds asked for, in a fixed order, and who carries each.

    One with an empty selector selects all to upstream; the scheduler counts nobody by it.
    """
    found: dict[Spread, list[PodTemplate]] = {}
    for template in group.templates:
        for spread in dict.fromkeys(
            each for kind in rules.kinds for each in spreads(template, kind)
        ):
            if rules.counts_all and not spread.selector.requirements:
                continue
            found.setdefault(spread, []).append(template)
    return {spread: found[spread] for spread in sorted(found, key=_order)}


@lru_cache(maxsize=20_000)
def _order(spread: Spread) -> tuple[str, str, int, int, str]:
    skew = (spread.max_skew, spread.min_domains)
    return (spread.topology_key, text(spread.selector), *skew, repr(spread.shape))


def _counts(spread: Spread, pod: Pod) -> bool:
    return is_counted(pod) and selects(spread, pod.template)


def _place(pod: Pod) -> tuple[str, str]:
    return pod.node_name, pod.name
