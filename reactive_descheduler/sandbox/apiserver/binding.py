"""The subresource `pods/binding`, by which a scheduler places a Pod."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactive_descheduler.sandbox.apiserver.pods import set_condition
from reactive_descheduler.sandbox.apiserver.resources import NODES, PODS
from reactive_descheduler.sandbox.apiserver.status import ApiError, conflict
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    attach,
    is_terminating,
    labels,
    string_map,
    text,
    uid_of,
)

if TYPE_CHECKING:
    from reactive_descheduler.sandbox.apiserver.registry import Registry
    from reactive_descheduler.sandbox.apiserver.store import ObjectKey


_TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def bind(registry: Registry, key: ObjectKey, binding: JsonObject, *, dry_run: bool) -> None:
    """Assign a Pod to a node, and set its condition PodScheduled and its labels of topology.

    Raises ApiError 409 if it is terminating, bound already, or of another uid.
    """
    stored = registry.get(PODS, key)
    node = text(binding, "target", "name")
    kind = text(binding, "target", "kind")
    # A real server answers these as failures of its own.
    if kind not in ("", "Node"):
        why = f'target.kind: Unsupported value: "{kind}": supported values: "Node", "<empty>"'
        raise ApiError(500, why, reason="")
    if not node:
        raise ApiError(500, "target.name: Required value", reason="")
    pod = stored.copy()
    wanted = text(binding, "metadata", "uid")
    if wanted and wanted != uid_of(pod):
        why = f"UID in precondition: {wanted}, UID in object meta: {uid_of(pod)}"
        raise conflict(PODS, key[1], f"Precondition failed: {why}")
    if is_terminating(pod):
        why = f"pod {key[1]} is being deleted, cannot be assigned to a host"
        raise conflict(PODS, key[1], why)
    if bound := text(pod, "spec", "nodeName"):
        why = f'pod {key[1]} is already assigned to node "{bound}"'
        raise conflict(PODS, key[1], why, subresource="binding")
    attach(pod, "spec")["nodeName"] = node
    annotations = string_map(binding, "metadata", "annotations")
    if annotations:
        attach(pod, "metadata", "annotations").update(annotations)
    if topology := _topology(registry, node):
        attach(pod, "metadata", "labels").update(topology)
    scheduled: JsonObject = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
    set_condition(pod, scheduled, registry.now())
    if not dry_run:
        registry.store.put(PODS, pod)


def _topology(registry: Registry, node: str) -> dict[str, str]:
    """The labels that the admission plugin PodTopologyLabels copies from the node to the Pod."""
    stored = registry.store.of(NODES).objects.get(("", node))
    values = labels(stored.document) if stored is not None else {}
    return {key: values[key] for key in _TOPOLOGY_LABELS if key in values}
