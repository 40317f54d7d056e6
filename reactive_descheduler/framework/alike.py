"""Which Pods fit the same nodes, but for the node that each is on: one search answers for all."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from reactive_descheduler.api.pod import Kin, Pod, kin
from reactive_descheduler.api.scheduling.anti_affinity import kept_closed
from reactive_descheduler.api.scheduling.fit import FitRules
from reactive_descheduler.api.scheduling.pod_affinity import NOT_ALONE, Alone, aloneness, needed_by
from reactive_descheduler.api.scheduling.spread import (
    DomainShape,
    Inclusion,
    Remainder,
    Spread,
    remainders,
)
from reactive_descheduler.cache.lister import Lister

_ALL_NODES = Inclusion()


class Likeness(NamedTuple):
    """What node fit reads of a Pod, beside the resources that are its own on its own node.

    Of a domain that is a single node nothing needs to be told: it is the Pod's own, which is not
    asked about.
    """

    kin: Kin
    opens: tuple[tuple[str, str], ...]
    """Topology domains, of other nodes too, that are closed only by the Pod itself."""
    alone: Alone
    remainders: tuple[tuple[Spread, Remainder], ...]


def likeness(pod: Pod, lister: Lister, rules: FitRules) -> Hashable:
    """Return the same for Pods that one state treats alike; its UID for one unlike all others."""
    if (
        lister.has_promise(pod.uid)
        or (rules.pod_affinity and needed_by(pod, lister) is not None)
        or (not rules.anti_affinity and _is_told_by_name(pod, lister))
    ):
        return pod.uid
    alone = aloneness(pod, lister) if rules.pod_affinity else NOT_ALONE
    opens = kept_closed(pod, lister) if rules.anti_affinity else ()
    spread = remainders(pod, lister) if rules.spread else ()
    return Likeness(
        kin(pod),
        tuple(each for each in opens if _is_shared(*each, lister)),
        Alone(
            alone.everywhere,
            tuple(each for each in alone.domains if _is_shared(*each, lister)),
        ),
        tuple(
            (constraint, _without_own_node(constraint, left, lister)) for constraint, left in spread
        ),
    )


def _is_told_by_name(pod: Pod, lister: Lister) -> bool:
    """Say whether the Pod could take one of another namespace, or of another time, for itself: to
    upstream's anti-affinity the name alone tells."""
    known = lister.pod(pod.uid)
    return bool(pod.template.anti_affinity) and (
        known is None
        or known.node_name != pod.node_name
        or any(
            name != pod.namespace
            for term in pod.template.anti_affinity
            for name in term.namespaces or ()
        )
    )


def _without_own_node(constraint: Spread, left: Remainder, lister: Lister) -> Remainder:
    if left.domain is not None and not _is_shared(constraint.topology_key, left.domain, lister):
        return left._replace(domain=None)
    return left


def _is_shared(key: str, value: str, lister: Lister) -> bool:
    """Say whether several nodes are in a topology domain."""
    return len(lister.nodes_in(DomainShape(key, (key,), _ALL_NODES), value)) > 1
