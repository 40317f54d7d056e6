"""Required Pod affinity as the scheduler reads it: over topology domains.

Each term needs a Pod in the node's domain that all the terms choose. While there is none anywhere,
one that its own terms choose may be the first, wherever the topology keys are.

Where it is not sure that a Pod will still be there it is no Pod to be near, and yet others have to
keep to it: one that terminates, that cannot be read, whose room is promised elsewhere, or who is to
come and may go anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Kin, Pod, kin
from reactive_descheduler.api.scheduling.occupancy import Occupancy
from reactive_descheduler.api.scheduling.pod_terms import (
    LabelsOf,
    chooses,
    domains_of,
    kins_at,
    labels_in,
    own_domains,
    unreadable_at,
    without_labels,
)
from reactive_descheduler.api.selectors import SelectorError, check_selector
from reactive_descheduler.api.terms import PodAffinityTerm


def pod_affinity_misfit(pod: Pod, node: Node, occupancy: Occupancy) -> str | None:
    """Return where in the node's domains nobody is whom the Pod must be near, or for whom it has to
    stay.

    The Pod itself does not count: it goes.
    """
    coming = needed_by(pod, occupancy)
    if coming is not None:
        return f"Pod {coming.namespace}/{coming.name}, which is to come, has to be near it"
    if not pod.template.pod_affinity:
        return None
    near = _near(pod, occupancy)
    if near.flaw:
        return near.flaw
    missing = ""
    for key in near.keys:
        value = node.labels.get(key)
        if value is None:
            return f"the node has no label {key}"
        if not _other_than(pod, near.there.get((key, value), ())):
            missing = missing or f"no Pod that it must be near is in {key} {value}"
    if not missing or (near.may_be_first and not _other_than(pod, near.others)):
        return None
    return missing


def needed_by(pod: Pod, occupancy: Occupancy) -> Pod | None:
    """Return who is promised room in a domain where nobody but this Pod is whom it must be near."""
    if not occupancy.promised_with_affinity():
        return None
    return occupancy.once("needed", lambda: _needed(occupancy)).get(pod.uid)


def _needed(occupancy: Occupancy) -> Mapping[str, Pod]:
    found: dict[str, Pod] = {}
    for coming in occupancy.promised_with_affinity():
        near = _near(coming, occupancy)
        for domain in domains_of(occupancy.node(coming.node_name), near.keys):
            there = near.there.get(domain, ())
            if len(there) == 1:
                found[there[0]] = coming
    return found


class Alone(NamedTuple):
    """What the leaving of a Pod itself means to its Pod affinity."""

    everywhere: bool
    """Nobody else is anywhere whom it would have to keep to."""
    domains: tuple[tuple[str, str], ...]
    """Where, by topology key and value, nobody else is whom it must be near."""


NOT_ALONE = Alone(everywhere=False, domains=())


def aloneness(pod: Pod, occupancy: Occupancy) -> Alone:
    if not pod.template.pod_affinity:
        return NOT_ALONE
    near = _near(pod, occupancy)
    return Alone(
        not _other_than(pod, near.others),
        tuple(
            each
            for each in own_domains(pod, near.keys, occupancy)
            if (there := near.there.get(each)) and not _other_than(pod, there)
        ),
    )


class _Near(NamedTuple):
    """Whom the Pods of one kind must be near. Of each group two UIDs will do: one of them may be of
    the very Pod that is asked about."""

    keys: tuple[str, ...]
    """Topology keys of the terms."""
    there: Mapping[tuple[str, str], tuple[str, ...]]
    """By topology key and value, who is there for sure."""
    others: tuple[str, ...]
    """Who is, or may be, anywhere in a domain."""
    may_be_first: bool
    """Whether the terms choose these Pods themselves."""
    flaw: str
    """Why the terms cannot be read: then they fit nowhere."""


def _near(pod: Pod, occupancy: Occupancy) -> _Near:
    of = kin(pod)
    return occupancy.once(("near", of), lambda: _looked_up(of, occupancy))


def _looked_up(of: Kin, occupancy: Occupancy) -> _Near:
    terms = of.template.pod_affinity
    keys = tuple(sorted({term.topology_key for term in terms}))
    flaw = _flaw(terms)
    if flaw:
        return _Near(
            keys, {}, (), may_be_first=False, flaw=f"the Pod affinity is malformed: {flaw}"
        )
    there: dict[tuple[str, str], tuple[str, ...]] = {}
    others = _with(unreadable_at(terms, of.namespace, occupancy), ())
    surely, perhaps = (labels_in(occupancy, doubtful=each) for each in (False, True))
    # All terms have to choose a Pod, so it is enough to look where the first does.
    for other in dict.fromkeys(kins_at(terms[:1], of.namespace, occupancy)):
        if not _all_choose(of, other, perhaps):
            continue
        others = _with(occupancy.promised_of(other), others)
        is_chosen = _all_choose(of, other, surely)
        for pod in occupancy.placed_pods(other):
            node = occupancy.node(pod.node_name)
            domains = domains_of(node, keys)
            if domains or node is None or node.opaque:
                others = _with((pod,), others)
            if is_chosen and _stays(pod, occupancy):
                for domain in domains:
                    there[domain] = _with((pod,), there.get(domain, ()))
    return _Near(keys, there, others, may_be_first=_all_choose(of, of, surely), flaw="")


def _flaw(terms: Iterable[PodAffinityTerm]) -> str:
    try:
        for term in terms:
            for selector in (term.label_selector, term.namespace_selector):
                if selector is not None:
                    check_selector(selector)
    except SelectorError as error:
        return str(error)
    return ""


def _all_choose(of: Kin, other: Kin, labels_of: LabelsOf) -> bool:
    return all(
        chooses(term, of, other, labels_of) or chooses(term, of, other, without_labels)
        for term in of.template.pod_affinity
    )


def _stays(pod: Pod, occupancy: Occupancy) -> bool:
    return pod.deleted is None and not pod.opaque and not occupancy.has_promise(pod.uid)


def _with(pods: Iterable[Pod], uids: tuple[str, ...]) -> tuple[str, ...]:
    """Return these UIDs and those of the Pods, two at most."""
    for pod in pods:
        if len(uids) == 2:
            break
        if pod.uid not in uids:
            uids = (*uids, pod.uid)
    return uids


def _other_than(pod: Pod, uids: Iterable[str]) -> bool:
    """Say whether there is anybody but the Pod itself."""
    return any(uid != pod.uid for uid in uids)
