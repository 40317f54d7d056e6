"""Pods that have to do with an object that could not be read: anything else would be a guess."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from reactive_descheduler.api.changes import Action, On
from reactive_descheduler.api.eviction import Rejection
from reactive_descheduler.api.meta import Ref
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.framework.filter import Reading


class Opaque:
    """Refuses a Pod that is opaque, on an opaque node, or in a namespace with an opaque budget."""

    NAME: ClassVar[str] = "opaque"

    def check(self, pod: Pod, reading: Reading, /) -> Rejection | None:
        if pod.opaque:
            wake = On(Action.POD_OPAQUE, pod.ref)
            return Rejection(
                self.NAME, f"the Pod could not be read: {pod.opaque}", (wake,), pod.ref
            )
        node = reading.lister.node(pod.node_name)
        if node is not None and node.opaque:
            reason = f"node {node.name} could not be read: {node.opaque}"
            return Rejection(self.NAME, reason, (_node(pod),), pod.ref)
        for budget in reading.lister.budgets(pod.namespace):
            if budget.opaque:
                reason = f"PodDisruptionBudget {budget.name} could not be read: {budget.opaque}"
                return Rejection(self.NAME, reason, (_budgets(pod),), pod.ref)
        return None

    def depends(self, pod: Pod, _reading: Reading, /) -> Iterable[On]:
        return (_node(pod), _budgets(pod))


def _node(pod: Pod) -> On:
    ref: Ref = ("Node", "", pod.node_name)
    return On(Action.NODE_OPAQUE | Action.NODE_ADDED | Action.NODE_REMOVED, ref)


def _budgets(pod: Pod) -> On:
    return On(Action.BUDGET_SELECTION, ("Namespace", "", pod.namespace))
