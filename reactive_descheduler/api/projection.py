"""Makes read views out of decoded wire objects, with the API's defaults for what is left out."""

from __future__ import annotations

import sys

import msgspec

from reactive_descheduler.api import wire
from reactive_descheduler.api.meta import KubeObject
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import READ_ANNOTATIONS, ContainerStatus, Pod, PodTemplate
from reactive_descheduler.api.surroundings import (
    PLACE_LABELS,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    PriorityClass,
)
from reactive_descheduler.api.templates import NO_TEXTS, TemplateTable, decode_texts, read_amounts

UNREADABLE_TEMPLATE = PodTemplate(labels=NO_TEXTS, owners=(), node_selector=NO_TEXTS, requests={})
"""The template of every Pod that could not be read."""

_NO_POD_SPEC = wire.PodSpec()
_NO_POD_STATUS = wire.PodStatus()
_NO_NODE_SPEC = wire.NodeSpec()
_NO_NODE_STATUS = wire.NodeStatus()
_QUIET = ContainerStatus()


class Identity(msgspec.Struct, frozen=True):
    """What can still be said of an object that cannot be read."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    node_name: str


def pod(found: wire.WirePod, templates: TemplateTable) -> Pod:
    meta = found.metadata
    spec, status = found.spec or _NO_POD_SPEC, found.status or _NO_POD_STATUS
    conditions = status.conditions or ()
    namespace = meta.namespace or "default"
    return Pod(
        namespace=sys.intern(namespace),
        name=meta.name,
        uid=meta.uid or f"{namespace}/{meta.name}",
        resource_version=meta.resource_version or "",
        template=templates.template(meta, spec),
        created=meta.creation_timestamp,
        deleted=meta.deletion_timestamp,
        annotations=_annotations(meta),
        node_name=sys.intern(spec.node_name or ""),
        phase=sys.intern(status.phase or ""),
        reason=status.reason or "",
        started=status.start_time,
        ready=any(each.type == "Ready" and each.status == "True" for each in conditions),
        qos_class=sys.intern(status.qos_class or ""),
        containers=_statuses(status.container_statuses),
        init_containers=_statuses(status.init_container_statuses),
        ephemeral_containers=_statuses(status.ephemeral_container_statuses),
        conditions=conditions,
    )


def node(found: wire.WireNode) -> Node:
    meta = found.metadata
    spec, status = found.spec or _NO_NODE_SPEC, found.status or _NO_NODE_STATUS
    return Node(
        name=meta.name,
        uid=meta.uid or meta.name,
        resource_version=meta.resource_version or "",
        labels=decode_texts(meta.labels),
        taints=spec.taints or (),
        unschedulable=bool(spec.unschedulable),
        ready=not any(
            each.type == "Ready" and each.status != "True" for each in status.conditions or ()
        ),
        allocatable=read_amounts(status.allocatable),
        capacity=read_amounts(status.capacity),
    )


def namespace(found: wire.WireNamespace) -> Namespace:
    meta = found.metadata
    return Namespace(
        name=meta.name,
        uid=meta.uid or meta.name,
        resource_version=meta.resource_version or "",
        labels=decode_texts(meta.labels),
    )


def budget(found: wire.WireBudget) -> PodDisruptionBudget:
    meta = found.metadata
    spec, status = found.spec or wire.BudgetSpec(), found.status or wire.BudgetStatus()
    namespace = meta.namespace or "default"
    return PodDisruptionBudget(
        namespace=namespace,
        name=meta.name,
        uid=meta.uid or f"{namespace}/{meta.name}",
        resource_version=meta.resource_version or "",
        selector=spec.selector,
        unhealthy_pod_eviction_policy=spec.unhealthy_pod_eviction_policy or "IfHealthyBudget",
        generation=meta.generation or 0,
        observed_generation=status.observed_generation or 0,
        disruptions_allowed=status.disruptions_allowed or 0,
        current_healthy=status.current_healthy or 0,
        desired_healthy=status.desired_healthy or 0,
        expected_pods=status.expected_pods or 0,
        disrupted_pods=tuple(status.disrupted_pods or ()),
    )


def claim(found: wire.WireClaim) -> PersistentVolumeClaim:
    meta, spec = found.metadata, found.spec or wire.ClaimSpec()
    namespace = meta.namespace or "default"
    return PersistentVolumeClaim(
        namespace=namespace,
        name=meta.name,
        uid=meta.uid or f"{namespace}/{meta.name}",
        resource_version=meta.resource_version or "",
        storage_class=spec.storage_class_name or "",
        volume=spec.volume_name or "",
        deleted=meta.deletion_timestamp is not None,
    )


def volume(found: wire.WireVolume) -> PersistentVolume:
    meta, spec = found.metadata, found.spec or wire.VolumeSpec()
    labels = decode_texts(meta.labels)
    return PersistentVolume(
        name=meta.name,
        uid=meta.uid or meta.name,
        resource_version=meta.resource_version or "",
        affinity=spec.node_affinity.required if spec.node_affinity else None,
        places={key: labels[key] for key in PLACE_LABELS if key in labels},
    )


def priority_class(found: wire.WirePriorityClass) -> PriorityClass:
    meta = found.metadata
    return PriorityClass(
        name=meta.name,
        uid=meta.uid or meta.name,
        resource_version=meta.resource_version or "",
        value=found.value or 0,
    )


def opaque(kind: str, identity: Identity, why: str) -> KubeObject:
    """Return the view of an object that cannot be read. `why` must not be empty."""
    cluster_wide = _CLUSTER_WIDE.get(kind)
    if cluster_wide is not None:
        return cluster_wide(
            name=identity.name,
            uid=identity.uid or identity.name,
            resource_version=identity.resource_version,
            opaque=why,
        )
    namespace = identity.namespace or "default"
    uid = identity.uid or f"{namespace}/{identity.name}"
    if kind == "Pod":
        return Pod(
            namespace=namespace,
            name=identity.name,
            uid=uid,
            resource_version=identity.resource_version,
            template=UNREADABLE_TEMPLATE,
            node_name=identity.node_name,
            opaque=why,
        )
    return _NAMESPACED[kind](
        namespace=namespace,
        name=identity.name,
        uid=uid,
        resource_version=identity.resource_version,
        opaque=why,
    )


_CLUSTER_WIDE: dict[str, type[Node | Namespace | PersistentVolume | PriorityClass]] = {
    "Node": Node,
    "Namespace": Namespace,
    "PersistentVolume": PersistentVolume,
    "PriorityClass": PriorityClass,
}
_NAMESPACED: dict[str, type[PodDisruptionBudget | PersistentVolumeClaim]] = {
    "PodDisruptionBudget": PodDisruptionBudget,
    "PersistentVolumeClaim": PersistentVolumeClaim,
}


def _annotations(meta: wire.Meta) -> dict[str, str]:
    raw = bytes(meta.annotations)
    # Most Pods carry annotations and none of ours: a search for the common stem saves decoding.
    if b"kubernetes.io/" not in raw:
        return NO_TEXTS
    found = decode_texts(meta.annotations)
    return {name: text for name, text in found.items() if name in READ_ANNOTATIONS} or NO_TEXTS


def _statuses(found: list[wire.StatusOfContainer] | None) -> tuple[ContainerStatus, ...]:
    return tuple([_status(each) for each in found]) if found else ()


def _status(found: wire.StatusOfContainer) -> ContainerStatus:
    state = found.state
    if state is None or (state.waiting is None and state.terminated is None):
        return ContainerStatus(found.restart_count) if found.restart_count else _QUIET
    ended = state.terminated
    return ContainerStatus(
        restarts=found.restart_count or 0,
        waiting=(state.waiting.reason or "") if state.waiting else "",
        terminated=(ended.reason or "") if ended else "",
        exit_code=(ended.exit_code or 0) if ended else None,
    )
