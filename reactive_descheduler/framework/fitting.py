"""Where a Pod would find room, remembered for as long as nothing moves.

Pods of one shape fit the same nodes, so one search answers for all of them. Pods with
anti-affinity of their own are searched for one by one: upstream tells them from their neighbours
by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from reactive_descheduler.api.changes import Action, On
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod, Shape, shape
from reactive_descheduler.api.scheduling.fit import misfit
from reactive_descheduler.cache.lister import Lister

NODE_FIT = (
    Action.NODE_TAINTS
    | Action.NODE_LABELS
    | Action.NODE_ALLOCATABLE
    | Action.NODE_SCHEDULABLE
    | Action.NODE_READY
    | Action.NODE_OPAQUE
)
"""What on a node that stays can turn its fit, either way."""


class _Found(NamedTuple):
    witness: Node | None
    left_out: str
    """Without a witness: the only node that was not tried, or none."""


class Fitting:
    """Finds a node for a Pod, with a memory of one state of the cluster."""

    def __init__(self) -> None:
        self._lister: Lister | None = None
        self._version = -1
        self._memory: dict[Shape, _Found] = {}

    def elsewhere(self, pod: Pod, nodes: Iterable[Node], lister: Lister) -> Node | None:
        """Return the first of the nodes, other than the Pod's own, that it fits.

        `nodes` has to be the same for one state of the lister; it may be lazy.
        """
        if pod.template.anti_affinity:
            return _first(pod, nodes, lister)
        if lister is not self._lister or lister.version != self._version:
            self._lister, self._version = lister, lister.version
            self._memory.clear()
        key = shape(pod)
        known = self._memory.get(key)
        if known is None or (known.witness is not None and known.witness.name == pod.node_name):
            witness = _first(pod, nodes, lister)
            self._memory[key] = _Found(witness, "" if witness else pod.node_name)
            return witness
        if known.witness is not None or known.left_out in ("", pod.node_name):
            return known.witness
        untried = (node for node in nodes if node.name == known.left_out)
        self._memory[key] = _Found(_first(pod, untried, lister), "")
        return self._memory[key].witness


def _first(pod: Pod, nodes: Iterable[Node], lister: Lister) -> Node | None:
    return next(
        (
            node
            for node in nodes
            if node.name != pod.node_name and misfit(pod, node, lister) is None
        ),
        None,
    )


def room_wakes(pod: Pod) -> tuple[On, On]:
    """Return what could make room for a Pod that fits nowhere: a better node, or less on one."""
    freed = Action.POD_GONE | Action.POD_RESOURCES
    if pod.template.anti_affinity:
        freed |= Action.POD_LABELS
    return (
        On(Action.NODE_ADDED | NODE_FIT, None, shape(pod)),
        On(freed, None, shape(pod)),
    )


def own_room_wake(pod: Pod, node: Node) -> On:
    """Return what could let a Pod fit its own node again.

    Its shape alone does not tell: on its own node it has its room, and meets itself.
    """
    freed = Action.POD_GONE | Action.POD_LABELS if pod.template.anti_affinity else Action(0)
    return On(NODE_FIT | freed, node.ref)


def loss_wake(pod: Pod, node: Node) -> On:
    """Return what could end the Pod's fit on this node."""
    filled = Action.POD_BOUND | Action.POD_RESOURCES | Action.POD_PHASE
    if pod.template.anti_affinity:
        filled |= Action.POD_LABELS
    return On(Action.NODE_REMOVED | NODE_FIT | filled, node.ref)
