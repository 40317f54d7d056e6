"""RemovePodsViolatingNodeTaints: evicts Pods that do not tolerate a taint of their node.

Only `NoSchedule` taints count, and `PreferNoSchedule` ones if asked for: `NoExecute` is the taint
manager's. Without the evictor's `nodeFit`, Pods go even if no other node would take them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from reactive_descheduler.api.changes import Action, Change, Key
from reactive_descheduler.api.eviction import Cause
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.scheduling.tolerations import taint_text, untolerated
from reactive_descheduler.api.terms import Taint
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.config.args import Listed
from reactive_descheduler.config.corrections import Correction, Corrections
from reactive_descheduler.config.evictor import DefaultEvictorArguments
from reactive_descheduler.framework.pod_strategy import (
    COMMON_EVENTS,
    PodArguments,
    PodStrategy,
    Violation,
)
from reactive_descheduler.framework.strategy import Scope, Subscription, View

CORDON_TAINT = "node.kubernetes.io/unschedulable"
"""Put on a node by the control plane when it is cordoned, and taken away soon after that ends."""


class NodeTaintsArguments(PodArguments):
    """Arguments of RemovePodsViolatingNodeTaints."""

    include_prefer_no_schedule: Annotated[
        bool, Field(description="Whether taints with effect PreferNoSchedule count too.")
    ] = False
    excluded_taints: Annotated[
        Listed[str],
        Field(description="Taints that do not count, as `key` (any value) or `key=value`."),
    ] = ()
    included_taints: Annotated[
        Listed[str] | None,
        Field(description="The only taints that count; an empty list means that none does."),
    ] = None

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if self.excluded_taints and self.included_taints:
            raise ValueError("only one of includedTaints and excludedTaints may be set")
        return self


def _may_violate(change: Change, lister: Lister, key: Key) -> bool:
    """Say whether the changed node has some taint now that the Pod does not tolerate."""
    pod = lister.pod(key.unit[0])
    return (
        pod is not None
        and isinstance(change.new, Node)
        and untolerated(pod.template.tolerations, change.new.taints, _SOFT_TOO) is not None
    )


def _only_taints(change: Change) -> bool:
    """Say whether nothing else changed that brings the node's Pods under review."""
    old, new = change.old, change.new
    return (
        isinstance(old, Node)
        and isinstance(new, Node)
        and old.labels == new.labels
        and old.ready == new.ready
        and old.opaque == new.opaque
    )


_HARD = frozenset({"NoSchedule"})
_SOFT_TOO = _HARD | {"PreferNoSchedule"}


class RemovePodsViolatingNodeTaints(PodStrategy):
    NAME: ClassVar[str] = "RemovePodsViolatingNodeTaints"
    EVENTS: ClassVar[tuple[Subscription, ...]] = (
        *COMMON_EVENTS,
        Subscription(Action.NODE_TAINTS, Scope.NODE, _may_violate),
        Subscription(Action.POD_TOLERATIONS, Scope.POD),
    )
    READS_NODE: ClassVar[Action] = Action.NODE_TAINTS

    def __init__(
        self,
        arguments: NodeTaintsArguments,
        *,
        profile: int,
        corrections: Corrections,
        evictor: DefaultEvictorArguments | None = None,
    ) -> None:
        super().__init__(arguments, profile=profile, predicates=(self._violation,))
        self._effects = _SOFT_TOO if arguments.include_prefer_no_schedule else _HARD
        self._excluded = frozenset(arguments.excluded_taints)
        self._included = arguments.included_taints
        self._spares_cordoned = Correction.CORDON_ALONE in corrections

    def keys_for(self, scope: Scope, change: Change, lister: Lister, /) -> Iterable[Key]:
        node = change.new
        if scope is not Scope.NODE or not isinstance(node, Node) or not _only_taints(change):
            return super().keys_for(scope, change, lister)
        # On the way of every taint: most Pods share their tolerations with others of the node, and
        # to make a key costs more than to look at one.
        violates: dict[int, bool] = {}
        keys = []
        for pod in lister.pods_on(node.name):
            tolerations = pod.template.tolerations
            found = violates.get(id(tolerations))
            if found is None:
                found = untolerated(tolerations, node.taints, _SOFT_TOO) is not None
                violates[id(tolerations)] = found
            if found:
                keys.append(self._key(pod))
        return keys

    def breaks(self, cause: Cause, change: Change, /) -> bool:
        """Say whether the taint went, if only for a moment; who tolerates it does not matter."""
        name, *taint = cause.ident
        if change.kind != "Node" or change.object.name != name:
            return False
        node = change.new
        return not isinstance(node, Node) or taint not in (list(_parts(t)) for t in node.taints)

    def _violation(self, _view: View, pod: Pod, node: Node) -> Violation | None:
        counting = (taint for taint in node.taints if self._counts(taint))
        taint = untolerated(pod.template.tolerations, counting, self._effects)
        if taint is None:
            return None
        cause = Cause("taint", (node.name, *_parts(taint)), (node.ref,))
        return Violation(cause, f"it does not tolerate taint {taint_text(taint)} of {node.name}")

    def _counts(self, taint: Taint) -> bool:
        names = {taint.key, f"{taint.key}={taint.value}"} if taint.value else {taint.key}
        if self._included is not None:
            return not names.isdisjoint(self._included)
        # Not only while the node is cordoned: an uncordon takes the flag away before the taint.
        if self._spares_cordoned and taint.key == CORDON_TAINT:
            return False
        return names.isdisjoint(self._excluded)


def _parts(taint: Taint) -> tuple[str, str, str]:
    return (taint.key, taint.value or "", taint.effect)
