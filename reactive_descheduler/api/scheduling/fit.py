"""Whether a Pod would fit a node: as upstream reckons it (spec/strategies 2.9), and beyond.

Not looked at, as upstream does not: preferred affinity, readiness (callers pass ready nodes); and,
unless the rules say so, what `FitRules` names. Every check is against the present state, in which
promised room counts as taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod, PodTemplate, Shape
from reactive_descheduler.api.quantity import milli_value, value
from reactive_descheduler.api.scheduling.anti_affinity import anti_affinity_misfit
from reactive_descheduler.api.scheduling.host_ports import host_port_misfit
from reactive_descheduler.api.scheduling.node_affinity import AffinityError, matches_node
from reactive_descheduler.api.scheduling.occupancy import Occupancy
from reactive_descheduler.api.scheduling.pod_affinity import pod_affinity_misfit
from reactive_descheduler.api.scheduling.spread import HARD, spread_misfit, spreads
from reactive_descheduler.api.scheduling.tolerations import HARD_EFFECTS, taint_text, untolerated
from reactive_descheduler.api.scheduling.volumes import volume_misfit
from reactive_descheduler.api.selectors import SelectorError, matches
from reactive_descheduler.api.terms import PodAffinityTerm


class FitRules(NamedTuple):
    """What is looked at beyond upstream; each a correction of its own."""

    anti_affinity: bool = False
    """Over whole topology domains, and that of the Pods already there."""
    pod_affinity: bool = False
    host_ports: bool = False
    volumes: bool = False
    spread: bool = False


UPSTREAM = FitRules()
_NOTHING: Mapping[str, int] = {}


def misfit(pod: Pod, node: Node, occupancy: Occupancy, rules: FitRules = UPSTREAM) -> str | None:
    """Return why the Pod does not fit the node; None if it does.

    On its own node a Pod has its resources already, so they are not checked there.
    """
    return (
        _own_misfit(node)
        or _affinity_misfit(pod, node)
        or _taint_misfit(pod, node)
        or (None if rules.anti_affinity else _neighbour_misfit(pod, node, occupancy))
        or (_resource_misfit(pod, node, occupancy) if pod.node_name != node.name else None)
        or _further_misfit(pod, node, occupancy, rules)
    )


def _further_misfit(pod: Pod, node: Node, occupancy: Occupancy, rules: FitRules) -> str | None:
    """Look at what upstream leaves out, the dearest last."""
    return (
        (host_port_misfit(pod, node, occupancy) if rules.host_ports else None)
        or (volume_misfit(pod, node, occupancy) if rules.volumes else None)
        or (anti_affinity_misfit(pod, node, occupancy) if rules.anti_affinity else None)
        or (pod_affinity_misfit(pod, node, occupancy) if rules.pod_affinity else None)
        or (_spread_misfit(pod, node, occupancy) if rules.spread else None)
    )


def _spread_misfit(pod: Pod, node: Node, occupancy: Occupancy) -> str | None:
    if spreads(pod.template, HARD):
        for other in occupancy.unreadable(pod.namespace):
            return f"topology spread: Pod {other.namespace}/{other.name} cannot be read"
    return spread_misfit(pod, node, occupancy, leaving=pod)


def shape_misfit(shape: Shape, node: Node, occupancy: Occupancy) -> str | None:
    """Return why no Pod of this shape, coming from elsewhere, fits the node; None if one may.

    Neighbours and what hangs on more than the shape are left out.
    """
    template = PodTemplate(
        labels={},
        owners=(),
        node_selector=dict(shape.node_selector),
        required_node_affinity=shape.required_node_affinity,
        tolerations=shape.tolerations,
        requests=dict(shape.requests),
    )
    pod = Pod(namespace="", name="", uid="", resource_version="", template=template)
    return (
        _own_misfit(node)
        or _affinity_misfit(pod, node)
        or _taint_misfit(pod, node)
        or _resource_misfit(pod, node, occupancy)
    )


def _own_misfit(node: Node) -> str | None:
    if node.opaque:
        return f"the node could not be read: {node.opaque}"
    return "the node is cordoned" if node.unschedulable else None


def _affinity_misfit(pod: Pod, node: Node) -> str | None:
    try:
        if matches_node(pod.template, node):
            return None
    except AffinityError as error:
        return f"the node affinity is malformed: {error}"
    return "node selector or required affinity does not match"


def _taint_misfit(pod: Pod, node: Node) -> str | None:
    taint = untolerated(pod.template.tolerations, node.taints, HARD_EFFECTS)
    return None if taint is None else f"taint {taint_text(taint)} is not tolerated"


def _neighbour_misfit(pod: Pod, node: Node, occupancy: Occupancy) -> str | None:
    for term in pod.template.anti_affinity:
        if term.topology_key not in node.labels:
            # Still a malformed selector fails the fit, as upstream converts it before it looks.
            neighbours: Iterable[Pod] = ()
        else:
            neighbours = occupancy.pods_on(node.name)
        try:
            matches(term.label_selector, {})
            hit = next((each for each in neighbours if _hits(term, pod, each)), None)
        except SelectorError as error:
            return f"the anti-affinity is malformed: {error}"
        if hit is not None:
            return f"anti-affinity to Pod {hit.namespace}/{hit.name}"
    return None


def _hits(term: PodAffinityTerm, pod: Pod, other: Pod) -> bool:
    # Upstream tells the Pod itself by its name alone, and ignores namespaceSelector.
    namespaces = term.namespaces or (pod.namespace,)
    return (
        other.active
        and other.name != pod.name
        and other.namespace in namespaces
        and matches(term.label_selector, other.template.labels)
    )


def _resource_misfit(pod: Pod, node: Node, occupancy: Occupancy) -> str | None:
    unreadable = occupancy.unreadable_on(node.name)
    if unreadable:
        other = unreadable[0]
        return f"Pod {other.namespace}/{other.name} cannot be read, and what it takes is not known"
    used, promised, pods = _load(pod, node, occupancy)
    for name, requested in sorted(pod.template.requests.items()):
        taken = used.get(name, 0) + promised.get(name, 0)
        if milli_value(requested) > _free_millis(name, node, taken):
            return f"insufficient {name}"
    return "insufficient pods" if value(node.allocatable.get("pods", 0)) <= pods else None


def slots(pod: Pod, node: Node, occupancy: Occupancy) -> int:
    """Return for how many Pods like this one, coming from elsewhere, a node has resources."""
    used, promised, pods = _load(pod, node, occupancy)
    free = [value(node.allocatable.get("pods", 0)) - pods]
    for name, requested in pod.template.requests.items():
        if requested:
            taken = used.get(name, 0) + promised.get(name, 0)
            free.append(_free_millis(name, node, taken) // milli_value(requested))
    return max(0, min(free))


def _load(
    pod: Pod, node: Node, occupancy: Occupancy
) -> tuple[Mapping[str, int], Mapping[str, int], int]:
    """Return what is requested on a node, what others will request who are promised room there,
    and how many all of them are."""
    used, pods = occupancy.requests_on(node.name), occupancy.active_pods_on(node.name)
    to_come = occupancy.promised_on(node.name)
    if not to_come:
        return used, _NOTHING, pods
    if not occupancy.has_promise(pod.uid):
        return used, occupancy.promised_requests_on(node.name), pods + len(to_come)
    others = [each for each in to_come if each.uid != pod.uid]
    promised: Counter[str] = Counter()
    for other in others:
        promised.update(other.template.requests)
    return used, promised, pods + len(others)


def _free_millis(name: str, node: Node, used: int) -> int:
    # Upstream rounds both sides up before it subtracts: cpu to millis, all else to whole units.
    allocatable = node.allocatable.get(name)
    if name == "cpu":
        return milli_value(allocatable or 0) - milli_value(used)
    if allocatable is None and name != "memory":
        return 0
    return 1000 * (value(allocatable or 0) - value(used))
