"""Required anti-affinity as the scheduler reads it: over topology domains, and both ways.

Upstream reads less of a term (`fit`): no `namespaceSelector`, no Pods elsewhere in the domain, and
a Pod tells itself by its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Kin, Pod, kin
from reactive_descheduler.api.scheduling.occupancy import Occupancy
from reactive_descheduler.api.scheduling.pod_terms import (
    LabelsOf,
    chooses,
    kins_at,
    labels_in,
    namespaces_of,
    own_domains,
    unreadable_at,
    without_labels,
)
from reactive_descheduler.api.selectors import SelectorError, matches


def namespaces_looked_into(of: Kin) -> frozenset[str]:
    """Return the namespaces that the terms name, ANY_NAMESPACE for those chosen by labels."""
    return namespaces_of(of.template.anti_affinity, of.namespace)


def anti_affinity_misfit(pod: Pod, node: Node, occupancy: Occupancy) -> str | None:
    """Return which Pod keeps this one out of a topology domain that the node is in."""
    found = neighbours(pod, occupancy)
    if found.flaw:
        return found.flaw
    for key in found.keys:
        value = node.labels.get(key)
        others = found.taken.get((key, value), ()) if value is not None else ()
        for other in others:
            if other.uid != pod.uid:
                place = f" on {other.node_name}" if other.node_name != node.name else ""
                return f"anti-affinity between it and Pod {other.namespace}/{other.name}{place}"
    return None


def kept_closed(pod: Pod, occupancy: Occupancy) -> Sequence[tuple[str, str]]:
    """Return the domains, by topology key and value, that nobody but the Pod itself closes to its
    kind: to the Pod alone they are open."""
    found = neighbours(pod, occupancy)
    return [
        each
        for each in own_domains(pod, found.keys, occupancy)
        if [other.uid for other in found.taken.get(each, ())] == [pod.uid]
    ]


class Neighbours(NamedTuple):
    """Where the Pods of one kind cannot go for anti-affinity."""

    taken: Mapping[tuple[str, str], tuple[Pod, ...]]
    """By topology key and value, two Pods that are in the way, if there are as many: one of them
    may be the very Pod that is asked about."""
    keys: tuple[str, ...]
    """The topology keys among these."""
    flaw: str
    """Why they fit nowhere: their own terms cannot be read, as upstream has it, or nobody knows in
    which domain it is that somebody is in the way."""


_NOBODY = Neighbours({}, (), "")


def neighbours(pod: Pod, occupancy: Occupancy) -> Neighbours:
    """Return which domains are closed to Pods of this namespace and template."""
    if not (
        pod.template.anti_affinity
        or occupancy.kept_apart(pod.namespace)
        or occupancy.promised_apart(pod.namespace)
    ):
        return _NOBODY
    of = kin(pod)
    return occupancy.once(("neighbours", of), lambda: _neighbours(of, occupancy))


def _neighbours(of: Kin, occupancy: Occupancy) -> Neighbours:
    taken: dict[tuple[str, str], tuple[Pod, ...]] = {}
    try:
        for term in of.template.anti_affinity:  # a malformed one is told though there is no Pod
            matches(term.label_selector, {})
        for key, other in chain(_in_the_way(of, occupancy), _may_be_in_the_way(of, occupancy)):
            node = occupancy.node(other.node_name)
            if node.opaque if node is not None else other.opaque:
                return Neighbours({}, (), _no_place_known(other))
            value = node.labels.get(key) if node is not None else None
            if value is None:
                continue
            known = taken.get((key, value), ())
            if len(known) < 2 and other.uid not in (each.uid for each in known):
                taken[key, value] = (*known, other)
    except SelectorError as error:
        return Neighbours({}, (), f"the anti-affinity is malformed: {error}")
    return Neighbours(taken, tuple(sorted({key for key, _ in taken})), "")


def _no_place_known(other: Pod) -> str:
    return f"anti-affinity between it and Pod {other.namespace}/{other.name}, wherever that is"


def _may_be_in_the_way(of: Kin, occupancy: Occupancy) -> Iterator[tuple[str, Pod]]:
    """Yield a topology key and a Pod that cannot be read for each term of theirs that may mean
    it. What such a Pod itself keeps away is anybody's guess, and left to its own node."""
    for term in of.template.anti_affinity:
        pods = unreadable_at((term,), of.namespace, occupancy)
        yield from ((term.topology_key, pod) for pod in pods)


def _in_the_way(of: Kin, occupancy: Occupancy) -> Iterator[tuple[str, Pod]]:
    """Yield a topology key and a Pod for every term that keeps one of the two from the other."""
    labels_of = labels_in(occupancy, doubtful=True)
    looked_at = kins_at(of.template.anti_affinity, of.namespace, occupancy)
    for other in dict.fromkeys(looked_at):
        own = {*_keys(of, other, labels_of), *_keys(of, other, without_labels)}
        pods = (*occupancy.placed_pods(other), *occupancy.promised_of(other)) if own else ()
        yield from ((key, pod) for pod in pods for key in sorted(own))
    owners = (*occupancy.kept_apart(of.namespace), *occupancy.promised_apart(of.namespace))
    for owner in dict.fromkeys(owners):
        try:
            keys = _keys(owner, of, labels_of)
        except SelectorError:
            continue  # the API server lets none in
        pods = (*occupancy.apart_pods(owner), *occupancy.promised_of(owner)) if keys else ()
        yield from ((key, pod) for pod in pods for key in keys)


def _keys(owner: Kin, other: Kin, labels_of: LabelsOf) -> Sequence[str]:
    """Return over which topology keys the owner's terms keep the other away."""
    terms = owner.template.anti_affinity
    if all(term.namespace_selector is None for term in terms):
        return _keys_by_name(owner, other)
    return [term.topology_key for term in terms if chooses(term, owner, other, labels_of)]


@lru_cache(maxsize=65_536)
def _keys_by_name(owner: Kin, other: Kin) -> Sequence[str]:
    """Return the same where no labels of namespaces matter: then it never changes."""
    return tuple(
        term.topology_key
        for term in owner.template.anti_affinity
        if chooses(term, owner, other, lambda _: None)
    )
