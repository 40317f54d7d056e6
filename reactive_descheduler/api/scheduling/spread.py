"""Whether a Pod on a node would break a hard topology spread constraint of its own.

The arithmetic is the scheduler's: a node is part of the domains if it carries the topology keys of
all constraints and passes their inclusion policies; every active Pod of the namespace that the
selector matches counts, wherever it comes from, unless it terminates; skew is what the domain would
hold, less the least of all domains.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Kin, Pod, PodTemplate
from reactive_descheduler.api.scheduling.node_affinity import AffinityError, accepts_node
from reactive_descheduler.api.scheduling.tolerations import HARD_EFFECTS, untolerated
from reactive_descheduler.api.selectors import Requirements, SelectorError, check_selector
from reactive_descheduler.api.terms import (
    LabelSelector,
    NodeSelector,
    Requirement,
    Toleration,
    TopologySpreadConstraint,
)

HARD = "DoNotSchedule"
SOFT = "ScheduleAnyway"


class Inclusion(NamedTuple):
    """Which nodes a constraint looks at, as far as its policies honour that."""

    node_selector: tuple[tuple[str, str], ...] = ()
    required_node_affinity: NodeSelector | None = None
    tolerations: tuple[Toleration, ...] | None = None
    """None: taints play no part."""

    def accepts(self, node: Node) -> bool:
        """Say whether the node is looked at; what cannot be read is taken as no."""
        if self == _EVERYWHERE:
            return True
        labels = node.labels
        return (
            all(labels.get(key) == value for key, value in self.node_selector)
            and _accepts(self.required_node_affinity, node)
            and (
                self.tolerations is None
                or untolerated(self.tolerations, node.taints, HARD_EFFECTS) is None
            )
        )


_EVERYWHERE = Inclusion()


class DomainShape(NamedTuple):
    """What decides which node lies in which domain."""

    topology_key: str
    keys: tuple[str, ...]
    """The labels that a node must carry, in order; the topology key is among them."""
    inclusion: Inclusion

    def value(self, node: Node) -> str | None:
        """Return the node's domain; None if it is in none."""
        labels = node.labels
        for key in self.keys:
            if key not in labels:
                return None
        return labels[self.topology_key] if self.inclusion.accepts(node) else None


class Spread(msgspec.Struct, frozen=True, eq=False, gc=False, kw_only=True):
    """One constraint, as it reads for the Pods of one template. Shared by content: to compare and
    to hash it costs nothing."""

    shape: DomainShape
    selector: Requirements
    """With `matchLabelKeys` resolved."""
    max_skew: int
    min_domains: int = 1

    @property
    def topology_key(self) -> str:
        return self.shape.topology_key


class Domains(NamedTuple):
    """The domains of one shape: those that have a node at all."""

    of_node: Mapping[str, str]
    nodes: Mapping[str, Sequence[str]]
    """The names of each domain's nodes, in order."""


def recounted_domains(shape: DomainShape, nodes: Iterable[Node]) -> Domains:
    """Return the domains of a shape among these nodes."""
    of_node: dict[str, str] = {}
    by_domain: dict[str, list[str]] = {}
    for node in nodes:
        value = shape.value(node)
        if value is not None:
            of_node[node.name] = value
            by_domain.setdefault(value, []).append(node.name)
    return Domains(of_node, by_domain)


class DomainCounts(NamedTuple):
    """What a constraint counts."""

    domains: Domains
    counts: Mapping[str, int]
    """Matching Pods by domain; a domain that is missing has none."""
    least: int | None
    """The least of all domains; None if there are none."""


T = TypeVar("T")


class SpreadOccupancy(Protocol):
    """Who stands in which domain; the cache's Lister is one."""

    def spread_counts(self, namespace: str, spread: Spread, /) -> DomainCounts:
        """Return what is counted now, without what is promised."""

    def pod(self, uid: str, /) -> Pod | None: ...
    def has_promise(self, uid: str, /) -> bool: ...

    def promised_kins(self, namespace: str, /) -> Iterable[Kin]:
        """Return whom of a namespace room is promised to, by template."""

    def promised_of(self, kin: Kin, /) -> Iterable[Pod]: ...
    def once(self, key: Hashable, make: Callable[[], T], /) -> T: ...


def spread_misfit(
    pod: Pod, node: Node, occupancy: SpreadOccupancy, *, leaving: Pod | None
) -> str | None:
    """Return which hard constraint of its own the Pod would break on the node; None if none.

    `leaving` is a Pod that is to be counted no longer, as a rule the very Pod on its present node.
    If the occupancy does not count it anyway, it makes no difference. Whoever is promised room
    counts as being there.
    """
    for key in hard_keys(pod.template):
        if key not in node.labels:
            return f"the node has no label {key}"
    for spread in spreads(pod.template, HARD):
        value = node.labels[spread.topology_key]
        counted = _expected(spread, pod, occupancy)
        if counted.least is None or not spread.selector.requirements:
            continue  # for the scheduler an empty selector counts nobody
        left, least = _remainder(spread, counted, pod, occupancy, leaving)
        here = counted.counts.get(value, 0) - (left == value)
        skew = here + selects(spread, pod.template) - least
        if skew > spread.max_skew:
            return f"topology spread over {spread.topology_key}: skew {skew} in {value}"
    return None


class Remainder(NamedTuple):
    """What a constraint counts once a Pod has left."""

    domain: str | None
    """Where it is one less; None if nowhere."""
    least: int
    """The least of all domains."""


def remainders(pod: Pod, occupancy: SpreadOccupancy) -> tuple[tuple[Spread, Remainder], ...]:
    """Return what is left of what the Pod's own hard constraints count, once it has left: all that
    `spread_misfit` reads of a leaving Pod beyond namespace and template, its promise aside."""
    return tuple(
        (spread, _remainder(spread, counted, pod, occupancy, pod))
        for spread in spreads(pod.template, HARD)
        if (counted := _expected(spread, pod, occupancy)).least is not None
    )


def _remainder(
    spread: Spread,
    counted: DomainCounts,
    pod: Pod,
    occupancy: SpreadOccupancy,
    leaving: Pod | None,
) -> Remainder:
    least = counted.least or 0
    left = _left(spread, counted, pod.namespace, occupancy, leaving)
    return Remainder(left, least if left is None else min(least, counted.counts[left] - 1))


def _expected(spread: Spread, pod: Pod, occupancy: SpreadOccupancy) -> DomainCounts:
    """Return what is counted once all have come that are promised room, but for the Pod itself."""
    own = pod.uid if occupancy.has_promise(pod.uid) else ""

    def expected() -> DomainCounts:
        come = [
            each
            for kin in occupancy.promised_kins(pod.namespace)
            if selects(spread, kin.template)
            for each in occupancy.promised_of(kin)
            if each.uid != own
        ]
        counted = occupancy.spread_counts(pod.namespace, spread)
        return shifted(counted, spread, pod.namespace, come=come)

    return occupancy.once((spread, pod.namespace, own), expected)


def _left(
    spread: Spread,
    counted: DomainCounts,
    namespace: str,
    occupancy: SpreadOccupancy,
    leaving: Pod | None,
) -> str | None:
    """Return the domain in which the leaving Pod is among those counted; None if in none."""
    known = occupancy.pod(leaving.uid) if leaving is not None else None
    if known is None or known.namespace != namespace or not is_counted(known):
        return None
    return counted.domains.of_node.get(known.node_name) if selects(spread, known.template) else None


def shifted(
    counted: DomainCounts,
    spread: Spread,
    namespace: str,
    *,
    gone: Iterable[Pod] = (),
    come: Iterable[Pod] = (),
) -> DomainCounts:
    """Return what is counted once these Pods have gone and come; each stands where its
    `node_name` says. Those that have gone have to be among the counted."""
    counts: dict[str, int] | None = None
    of_node = counted.domains.of_node
    for step, pods in ((-1, gone), (1, come)):
        for pod in pods:
            value = of_node.get(pod.node_name)
            if value is None or pod.namespace != namespace or not selects(spread, pod.template):
                continue
            counts = dict(counted.counts) if counts is None else counts
            counts[value] = counts.get(value, 0) + step
            if not counts[value]:
                del counts[value]
    if counts is None:
        return counted
    least = least_of(counted.domains, counts, spread.min_domains)
    return DomainCounts(counted.domains, counts, least)


def least_of(domains: Domains, counts: Mapping[str, int], min_domains: int) -> int | None:
    """Return the least of all domains; zero where there are fewer than `minDomains`."""
    known = len(domains.nodes)
    if known < min_domains or known > len(counts):
        return 0
    return min(counts.values(), default=None)


def is_counted(pod: Pod) -> bool:
    """Say whether constraints count the Pod: bound, not finished and not terminating."""
    return bool(pod.node_name) and pod.active and pod.deleted is None


@lru_cache(maxsize=65_536)
def selects(spread: Spread, template: PodTemplate) -> bool:
    """Say whether the constraint counts Pods of this template, given that their namespace is the
    same."""
    return spread.selector.matches(template.labels)


@lru_cache(maxsize=20_000)
def hard_keys(template: PodTemplate) -> tuple[str, ...]:
    """Return the labels that a node must carry for a template's hard constraints, in their order:
    also for those that count nothing."""
    hard = (each for each in template.spread_constraints if each.when_unsatisfiable == HARD)
    return tuple(dict.fromkeys(each.topology_key for each in hard))


@lru_cache(maxsize=20_000)
def spreads(template: PodTemplate, when: str) -> tuple[Spread, ...]:
    """Return a template's constraints of one kind, HARD or SOFT, in their order.

    Left out are those that count nothing: without a selector, or with one that cannot be read
    (which the API server refuses).
    """
    constraints = [each for each in template.spread_constraints if each.when_unsatisfiable == when]
    keys = tuple(sorted({each.topology_key for each in constraints}))
    found = (_spread(each, keys, template) for each in constraints)
    return tuple(dict.fromkeys(each for each in found if each is not None))


def _spread(
    constraint: TopologySpreadConstraint, keys: tuple[str, ...], template: PodTemplate
) -> Spread | None:
    selector = _selector(constraint, template)
    if selector is None:
        return None
    honours = constraint.node_affinity_policy != "Ignore"
    inclusion = Inclusion(
        tuple(sorted(template.node_selector.items())) if honours else (),
        template.required_node_affinity if honours else None,
        template.tolerations if constraint.node_taints_policy == "Honor" else None,
    )
    shape = DomainShape(constraint.topology_key, keys, inclusion)
    return _shared(shape, selector, constraint.max_skew, constraint.min_domains or 1)


@lru_cache(maxsize=20_000)
def _shared(shape: DomainShape, selector: Requirements, max_skew: int, min_domains: int) -> Spread:
    return Spread(shape=shape, selector=selector, max_skew=max_skew, min_domains=min_domains)


def _selector(constraint: TopologySpreadConstraint, template: PodTemplate) -> Requirements | None:
    selector = constraint.label_selector
    if selector is None or not _is_sound(selector):
        return None
    wanted = [*(selector.match_labels or {}).items()]
    labels = template.labels
    wanted += [(key, labels[key]) for key in constraint.match_label_keys or () if key in labels]
    found = {Requirement(key, "In", (value,)) for key, value in wanted}
    found |= {
        Requirement(each.key, each.operator, tuple(each.values or ()))
        for each in selector.match_expressions or ()
    }
    return Requirements(tuple(sorted(found, key=_order)))


def _order(requirement: Requirement) -> tuple[str, str, tuple[str, ...]]:
    return requirement.key, requirement.operator, requirement.values or ()


def _accepts(required: NodeSelector | None, node: Node) -> bool:
    try:
        return required is None or accepts_node(required, node)
    except AffinityError:
        return False


def _is_sound(selector: LabelSelector) -> bool:
    try:
        check_selector(selector)
    except SelectorError:
        return False
    return True
