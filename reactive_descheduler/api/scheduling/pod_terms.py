"""Whom terms of required Pod affinity and anti-affinity choose, as the scheduler reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Kin, Pod
from reactive_descheduler.api.scheduling.occupancy import Occupancy
from reactive_descheduler.api.selectors import matches
from reactive_descheduler.api.terms import PodAffinityTerm

LabelsOf = Callable[[str], Mapping[str, str] | None]
"""Returns the labels of a namespace; None if it is not known."""

ANY_NAMESPACE = ""
"""Stands for the namespaces of a term that chooses them by their labels."""

ANY_LABELS: Mapping[str, str] = MappingProxyType({})
"""Stands for the labels of a namespace that every selector is taken to match."""


def chooses(term: PodAffinityTerm, owner: Kin, other: Kin, labels_of: LabelsOf) -> bool:
    """Say whether a term of the owner's Pods means the other's.

    Raises:
        SelectorError: a selector of the term is malformed.
    """
    return (
        looks_into(term, owner.namespace, other.namespace, labels_of)
        and matches(term.label_selector, other.template.labels)
        and _label_keys_agree(term, owner.template.labels, other.template.labels)
    )


def looks_into(term: PodAffinityTerm, own: str, namespace: str, labels_of: LabelsOf) -> bool:
    """Say whether a term of a Pod in namespace `own` looks at the Pods of `namespace`.

    Raises:
        SelectorError: its namespaceSelector is malformed.
    """
    if namespace in (term.namespaces or ()):
        return True
    if term.namespace_selector is None:
        return not term.namespaces and namespace == own
    labels = labels_of(namespace)
    return labels is not None and (matches(term.namespace_selector, labels) or labels is ANY_LABELS)


def without_labels(_: str) -> Mapping[str, str]:
    """Take every namespace for one without labels.

    Of an incoming Pod's own terms the scheduler also asks whether they would choose such a one, and
    if so looks into all (seen with 1.36).
    """
    return {}


def labels_in(occupancy: Occupancy, *, doubtful: bool) -> LabelsOf:
    """Return how the labels of namespaces are now.

    `doubtful`: whether of a namespace that cannot be read all is taken to match, or nothing.
    """

    def labels_of(name: str) -> Mapping[str, str] | None:
        namespace = occupancy.namespace(name)
        if namespace is None:
            return None
        if namespace.opaque:
            return ANY_LABELS if doubtful else None
        return namespace.labels

    return labels_of


def namespaces_of(terms: Iterable[PodAffinityTerm], own: str) -> frozenset[str]:
    """Return the namespaces that terms of a Pod in namespace `own` name, ANY_NAMESPACE for those
    chosen by labels."""
    found: set[str] = set()
    for term in terms:
        found.update(term.namespaces or ())
        if term.namespace_selector is not None:
            found.add(ANY_NAMESPACE)
        elif not term.namespaces:
            found.add(own)
    return frozenset(found)


def namespaces_at(
    terms: Iterable[PodAffinityTerm], own: str, occupancy: Occupancy
) -> Iterable[str]:
    """Return by name, in order, the namespaces that these terms may look into."""
    names = namespaces_of(terms, own)
    if ANY_NAMESPACE in names:
        names = names | {each.name for each in occupancy.namespaces()}
    return sorted(names - {ANY_NAMESPACE})


def kins_at(terms: Iterable[PodAffinityTerm], own: str, occupancy: Occupancy) -> Iterator[Kin]:
    """Yield all at whom these terms may look: who is on a node, or promised room there."""
    for name in namespaces_at(terms, own, occupancy):
        yield from (Kin(name, template) for template in occupancy.templates_in(name))
        yield from occupancy.promised_kins(name)


def unreadable_at(
    terms: Sequence[PodAffinityTerm], own: str, occupancy: Occupancy
) -> Iterator[Pod]:
    """Yield the Pods that cannot be read and that all of an incoming Pod's own terms may mean."""
    labels_of = labels_in(occupancy, doubtful=True)
    for name in namespaces_at(terms[:1], own, occupancy):
        if all(
            looks_into(term, own, name, labels_of) or looks_into(term, own, name, without_labels)
            for term in terms
        ):
            yield from occupancy.unreadable(name)


def domains_of(node: Node | None, keys: Iterable[str]) -> Sequence[tuple[str, str]]:
    """Return the topology domains, by key and value, that a node is in."""
    if node is None:
        return ()
    return [(key, node.labels[key]) for key in keys if key in node.labels]


def own_domains(pod: Pod, keys: Iterable[str], occupancy: Occupancy) -> Sequence[tuple[str, str]]:
    """Return the topology domains that a Pod stands in now."""
    known = occupancy.pod(pod.uid)
    return domains_of(occupancy.node(known.node_name) if known is not None else None, keys)


def _label_keys_agree(
    term: PodAffinityTerm, own: Mapping[str, str], other: Mapping[str, str]
) -> bool:
    """Read `matchLabelKeys` and `mismatchLabelKeys`; a key that the owner lacks says nothing.

    The API server writes them into the selector too, where its version does so.
    """
    return all(
        other.get(key) == own[key] for key in term.match_label_keys or () if key in own
    ) and all(other.get(key) != own[key] for key in term.mismatch_label_keys or () if key in own)
