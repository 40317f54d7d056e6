"""Pods on nodes that another drainer has claimed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from reactive_descheduler.api.changes import Action, On
from reactive_descheduler.api.eviction import Rejection
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.framework.filter import Reading


class ClaimedNode:
    """Leaves them to it: it evicts them itself, by its own order and pace.

    `taints`: keys of the taints by which drainers say that they have begun. A node that somebody
    may only drain later (`DeletionCandidateOfClusterAutoscaler`) is treated like others. As places
    for Pods claimed nodes need no rule: their taints have the effect NoSchedule.
    """

    NAME: ClassVar[str] = "drainers"

    def __init__(self, taints: Iterable[str]) -> None:
        self._taints = frozenset(taints)

    def check(self, pod: Pod, reading: Reading, /) -> Rejection | None:
        node = reading.lister.node(pod.node_name)
        claims = (each.key for each in node.taints if each.key in self._taints) if node else ()
        claim = next(iter(claims), None)
        if claim is None:
            return None
        reason = f"it is left to whoever drains node {pod.node_name} (taint {claim})"
        return Rejection(self.NAME, reason, (_claimed(pod),), pod.ref)

    def depends(self, pod: Pod, _reading: Reading, /) -> Iterable[On]:
        return (_claimed(pod),)


def _claimed(pod: Pod) -> On:
    return On(
        Action.NODE_TAINTS | Action.NODE_ADDED | Action.NODE_OPAQUE, ("Node", "", pod.node_name)
    )
