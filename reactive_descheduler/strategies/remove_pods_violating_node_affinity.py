"""RemovePodsViolatingNodeAffinity: evicts Pods whose node does not, or no longer, suit them.

Required: the Pod's selector and affinity refuse its node. Preferred: some other node of the cycle
weighs more, and would take the Pod; for upstream it need not. In both cases the Pod must fit some
node of the cycle, its own among them; for a required one that is another node, as its own refuses
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, ClassVar, NamedTuple

import structlog
from pydantic import Field

from reactive_descheduler.api.changes import Action, Change, Key, On
from reactive_descheduler.api.eviction import Cause, Rejection
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.scheduling.node_affinity import (
    accepts,
    label_keys,
    preferred_weight,
    preferring_shape,
)
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.config.args import Listed
from reactive_descheduler.config.corrections import Correction, Corrections
from reactive_descheduler.config.evictor import DefaultEvictorArguments
from reactive_descheduler.framework.fitting import Fitting, fit_rules
from reactive_descheduler.framework.pod_strategy import (
    COMMON_EVENTS,
    PodArguments,
    PodStrategy,
    Predicate,
    Violation,
)
from reactive_descheduler.framework.strategy import Scope, Subscription, View

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class NodeAffinityArguments(PodArguments):
    """Arguments of RemovePodsViolatingNodeAffinity."""

    node_affinity_type: Annotated[
        Listed[str],
        Field(
            min_length=1,
            description=f"Passes, in order: {REQUIRED}, {PREFERRED}; others do nothing.",
        ),
    ]


def _raises_weight(change: Change, lister: Lister, key: Key) -> bool:
    """Say whether the changed node now suits the Pod better than its own."""
    pod, node = lister.pod(key.unit[0]), change.new
    if pod is None or not isinstance(node, Node) or not node.ready:
        return False
    own = lister.node(pod.node_name)
    weight = preferred_weight(pod.template, node)
    return own is not None and weight > preferred_weight(pod.template, own)


class _Weighed(NamedTuple):
    """A node with what it weighs to a Pod, negative so that the heaviest comes first."""

    weight: int
    name: str
    node: Node


class RemovePodsViolatingNodeAffinity(PodStrategy):
    NAME: ClassVar[str] = "RemovePodsViolatingNodeAffinity"
    EVENTS: ClassVar[tuple[Subscription, ...]] = (
        *COMMON_EVENTS,
        # Selectors and affinity of a running Pod stay; a new API server may see it otherwise.
        Subscription(Action.POD_SPEC, Scope.POD),
        # Preferred affinity compares with every node of the cycle.
        Subscription(
            Action.NODE_ADDED | Action.NODE_LABELS | Action.NODE_READY, Scope.ALL, _raises_weight
        ),
    )

    def __init__(
        self,
        arguments: NodeAffinityArguments,
        *,
        profile: int,
        corrections: Corrections,
        evictor: DefaultEvictorArguments | None = None,
    ) -> None:
        known: dict[str, Predicate] = {REQUIRED: self._mismatch, PREFERRED: self._better_elsewhere}
        for name in arguments.node_affinity_type:
            if name not in known:
                structlog.get_logger().warning("unknown node affinity type", type=name)
        passes = [known[name] for name in arguments.node_affinity_type if name in known]
        super().__init__(arguments, profile=profile, predicates=passes)
        self._compares = PREFERRED in arguments.node_affinity_type
        self._fitting = Fitting(fit_rules(corrections))
        self._looks_elsewhere = evictor is None or evictor.looks_elsewhere(corrections)
        self._asks_if_it_fits = (
            Correction.PREFERRED_AFFINITY_FITS in corrections and self._looks_elsewhere
        )

    def keys_for(self, scope: Scope, change: Change, lister: Lister, /) -> Iterable[Key]:
        if scope is not Scope.ALL:
            return super().keys_for(scope, change, lister)
        if not self._compares:
            return ()
        return (
            self._key(pod)
            for pod in lister.pods()
            if pod.template.preferred_node_affinity and pod.node_name
        )

    def breaks(self, cause: Cause, change: Change, /) -> bool:
        """Say whether a node that the cause stands on left, or a label that it reads changed."""
        if change.ref not in cause.objects:
            return False
        old, new = change.old, change.new
        if not isinstance(old, Node) or not isinstance(new, Node) or not new.ready:
            return True
        _node, _uid, *keys = cause.ident
        return any(old.labels.get(key) != new.labels.get(key) for key in keys)

    def _mismatch(self, _view: View, pod: Pod, node: Node) -> Violation | None:
        if pod.template.required_node_affinity is None or accepts(pod.template, node):
            return None
        cause = Cause("required-affinity", _ident(pod, node), (node.ref,))
        return Violation(cause, f"its selector or required affinity refuses node {node.name}")

    def _better_elsewhere(self, view: View, pod: Pod, node: Node) -> Violation | Rejection | None:
        if not pod.template.preferred_node_affinity:
            return None
        weight = preferred_weight(pod.template, node)
        better = [
            _Weighed(-found, each.name, each)
            for each in view.nodes.values()
            if (found := preferred_weight(pod.template, each)) > weight
        ]
        if not better:
            return None
        better.sort()
        best = better[0].node
        view.note(On(Action.NODE_REMOVED | Action.NODE_READY | Action.NODE_LABELS, best.ref))
        if self._asks_if_it_fits:
            taker = self._taker(view, pod, better)
            if taker is None:
                wakes = self._fitting.room_wakes(pod, view.lister, on=preferring_shape(pod))
                reason = f"it prefers {best.name} to {node.name}, but fits no node that it prefers"
                return Rejection(self.NAME, reason, wakes, pod.ref)
            best = taker
        cause = Cause("preferred-affinity", _ident(pod, node), (node.ref, best.ref))
        best_weight = preferred_weight(pod.template, best)
        reason = f"it prefers {best.name} (weight {best_weight}) to {node.name} (weight {weight})"
        return Violation(cause, reason)

    def _taker(self, view: View, pod: Pod, better: Sequence[_Weighed]) -> Node | None:
        """Return the first of these nodes that would take the Pod; take note of what may change
        that."""
        fitting, lister = self._fitting, view.lister
        for each in better:
            if fitting.misfit(pod, each.node, lister) is None:
                if each is not better[0]:
                    view.note(*fitting.room_wakes(pod, lister, on=preferring_shape(pod)))
                view.note(*fitting.loss_wakes(pod, each.node, lister))
                return each.node
        return None

    def _refuses(self, view: View, pod: Pod, node: Node) -> Rejection | None:
        if not self._looks_elsewhere:
            return None
        fitting = self._fitting
        if fitting.misfit(pod, node, view.lister) is None:
            witness: Node | None = node
        else:
            witness = fitting.elsewhere(
                pod, view.nodes.values(), view.lister, among=lambda node: node.name in view.nodes
            )
        if witness is None:
            wakes = (fitting.own_room_wake(pod, node), *fitting.room_wakes(pod, view.lister))
            return Rejection(self.NAME, "it fits no node of the cycle", wakes, pod.ref)
        view.note(*fitting.loss_wakes(pod, witness, view.lister))
        return None


def _ident(pod: Pod, node: Node) -> tuple[str, ...]:
    """Name what the verdict stands on: node, Pod, and the keys of the labels that were read."""
    return (node.name, pod.uid, *sorted(label_keys(pod.template)))
