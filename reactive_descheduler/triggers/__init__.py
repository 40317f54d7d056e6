"""What a change amounts to: one small pure extractor `(old, new) -> Action` per property.

To add one: a function in the kind's file, and its line in that file's tuple.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from reactive_descheduler.api.changes import Action, Change
from reactive_descheduler.api.meta import KubeObject, Ref
from reactive_descheduler.api.pod import Pod, kin
from reactive_descheduler.api.scheduling.anti_affinity import namespaces_looked_into

from . import budget, claim, namespace, node, pod, volume

_Extractor = Callable[[KubeObject | None, KubeObject | None], Action]

_BY_KIND = cast(
    Mapping[str, Sequence[_Extractor]],  # the kind of a change says which objects it holds
    {
        "Node": node.EXTRACTORS,
        "Pod": pod.EXTRACTORS,
        "Namespace": namespace.EXTRACTORS,
        "PodDisruptionBudget": budget.EXTRACTORS,
        "PersistentVolumeClaim": claim.EXTRACTORS,
        "PersistentVolume": volume.EXTRACTORS,
    },
)


def cluster_events(change: Change) -> Action:
    """Return every property that differs; nothing for a change that decides nothing."""
    found = Action(0)
    for extract in _BY_KIND.get(change.kind, ()):
        if action := extract(change.old, change.new):  # flags are slow to join, and most are none
            found |= action
    return found


def touched(change: Change) -> tuple[Ref, ...]:
    """Return the objects under which those who wait may have filed this change.

    The object itself; for a Pod also the nodes it is and was on ("a Pod was bound there"), its
    owners ("a replica came"; by UID, as they are counted, under the kind `Owner`), its namespace,
    and under the kind `AntiAffinity` the namespaces that its terms look into; for a budget also its
    namespace ("a budget there selects others").
    """
    refs = {change.ref: None}
    if change.kind == "PodDisruptionBudget":
        refs["Namespace", "", change.object.namespace] = None
    for side in (change.old, change.new):
        if isinstance(side, Pod):
            refs["Namespace", "", side.namespace] = None
            if side.node_name:
                refs["Node", "", side.node_name] = None
            for owner in side.template.owners:
                refs["Owner", "", owner.uid] = None
            if side.template.anti_affinity:
                for name in namespaces_looked_into(kin(side)):
                    refs["AntiAffinity", "", name] = None
    return tuple(refs)
