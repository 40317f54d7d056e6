"""Makes the objects of a test: manifests as the API server would send them, views, a small cluster.

Every builder gives a complete, ordinary object; a test names only what it is about. Times may be
datetimes or RFC 3339 texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from reactive_descheduler.api.decoding import Decoder
from reactive_descheduler.api.meta import KubeObject
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.surroundings import (
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    PriorityClass,
)
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.store import Store

Manifest = dict[str, object]
Time = datetime | str

_DECODER = Decoder()


def make_pod(
    name: str = "web-1",
    *,
    namespace: str = "default",
    uid: str | None = None,
    version: str = "1",
    node: str = "",
    phase: str = "Running",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    owners: Sequence[Mapping[str, object]] | None = None,
    requests: Mapping[str, str | int] | None = None,
    limits: Mapping[str, str | int] | None = None,
    tolerations: Sequence[Mapping[str, object]] = (),
    node_selector: Mapping[str, str] | None = None,
    affinity: Mapping[str, object] | None = None,
    spread: Sequence[Mapping[str, object]] = (),
    priority: int | None = None,
    images: Sequence[str] = ("app:1",),
    init_containers: Sequence[Mapping[str, object]] = (),
    volumes: Sequence[Mapping[str, object]] = (),
    created: Time | None = "2026-01-01T00:00:00Z",
    started: Time | None = "2026-01-01T00:00:00Z",
    deleted: Time | None = None,
    restarts: int = 0,
    init_restarts: int | None = None,
    state: Mapping[str, object] | None = None,
    reason: str = "",
    ready: bool = True,
    qos: str = "",
    conditions: Sequence[Mapping[str, object]] = (),
    spec: Mapping[str, object] | None = None,
    status: Mapping[str, object] | None = None,
) -> Manifest:
    """Return a Pod; by default a replica of the ReplicaSet `web`, labelled `app: web`, ready.

    `owners=[]` makes it a bare Pod. `uid` defaults to `uid-<namespace>-<name>`. `restarts` and
    `state` (as in `containerStatuses[].state`) go to every container; `init_restarts` adds the
    status of one init container. `spec` and `status` are laid over the rest, field by field.
    """
    labelled = {"app": "web"} if labels is None else labels
    metadata = _metadata(name, namespace, uid or f"uid-{namespace}-{name}", version, labelled)
    metadata["ownerReferences"] = list(owners) if owners is not None else [owner("web")]
    if annotations:
        metadata["annotations"] = dict(annotations)
    _put_times(metadata, creationTimestamp=created, deletionTimestamp=deleted)
    resources = {"requests": dict(requests or {}), "limits": dict(limits or {})}
    containers = [
        {"name": f"c{place}", "image": image, "resources": resources}
        for place, image in enumerate(images)
    ]
    statuses = [_container_status(each["name"], restarts, state, ready) for each in containers]
    full_status: Manifest = {
        "phase": phase,
        "conditions": [{"type": "Ready", "status": str(ready)}, *conditions],
        "containerStatuses": statuses,
    }
    if init_restarts is not None:
        ended = {"terminated": {"exitCode": 0, "reason": "Completed"}}
        full_status["initContainerStatuses"] = [
            _container_status("init", init_restarts, ended, True)
        ]
    _put_times(full_status, startTime=started)
    _put_filled(full_status, reason=reason, qosClass=qos)
    full_spec: Manifest = {"containers": containers, "initContainers": list(init_containers)}
    _put_filled(
        full_spec,
        nodeName=node,
        tolerations=list(tolerations),
        nodeSelector=dict(node_selector or {}),
        affinity=dict(affinity or {}),
        topologySpreadConstraints=list(spread),
        volumes=list(volumes),
    )
    if priority is not None:
        full_spec["priority"] = priority
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": full_spec | dict(spec or {}),
        "status": full_status | dict(status or {}),
    }


def owner(
    name: str = "web", *, kind: str = "ReplicaSet", uid: str | None = None, controller: bool = True
) -> Manifest:
    """Return an owner reference. `uid` defaults to `uid-<kind>-<name>` in lower case."""
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "name": name,
        "uid": uid or f"uid-{kind.lower()}-{name}",
        "controller": controller,
    }


def make_node(
    name: str = "node-1",
    *,
    uid: str | None = None,
    version: str = "1",
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, object]] = (),
    unschedulable: bool = False,
    ready: bool = True,
    allocatable: Mapping[str, str | int] | None = None,
    capacity: Mapping[str, str | int] | None = None,
) -> Manifest:
    """Return a Node; by default a ready one with 4 cpus, 8Gi and room for 110 Pods.

    It carries the label `kubernetes.io/hostname` beside those given.
    """
    room = dict(allocatable or {"cpu": "4", "memory": "8Gi", "pods": "110"})
    metadata = _metadata(
        name,
        "",
        uid or f"uid-{name}",
        version,
        {"kubernetes.io/hostname": name, **(labels or {})},
    )
    spec: Manifest = {}
    _put_filled(spec, taints=[dict(taint) for taint in taints], unschedulable=unschedulable)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": spec,
        "status": {
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "allocatable": room,
            "capacity": dict(capacity or room),
        },
    }


def taint(key: str = "dedicated", value: str = "", effect: str = "NoSchedule") -> Manifest:
    return {"key": key, "value": value, "effect": effect}


def make_namespace(
    name: str = "default", *, version: str = "1", labels: Mapping[str, str] | None = None
) -> Manifest:
    named = {"kubernetes.io/metadata.name": name, **(labels or {})}
    metadata = _metadata(name, "", f"uid-{name}", version, named)
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def make_budget(
    name: str = "web",
    *,
    namespace: str = "default",
    uid: str | None = None,
    version: str = "1",
    selector: Mapping[str, object] | None = None,
    allowed: int = 1,
    healthy: int = 2,
    desired: int = 1,
    expected: int = 2,
    generation: int = 1,
    observed: int | None = None,
    policy: str | None = None,
    disrupted: Iterable[str] = (),
) -> Manifest:
    """Return a PodDisruptionBudget; by default over `app: web`, allowing one disruption, its spec
    observed by the disruption controller."""
    chosen = dict(selector) if selector is not None else {"matchLabels": {"app": "web"}}
    metadata = _metadata(name, namespace, uid or f"uid-{namespace}-{name}", version, None)
    metadata["generation"] = generation
    spec: Manifest = {"selector": chosen}
    _put_filled(spec, unhealthyPodEvictionPolicy=policy)
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata,
        "spec": spec,
        "status": {
            "observedGeneration": generation if observed is None else observed,
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
        },
    }


def make_claim(
    name: str = "data",
    *,
    namespace: str = "default",
    version: str = "1",
    storage_class: str | None = "standard",
    volume: str = "",
    deleted: Time | None = None,
) -> Manifest:
    """Return a PersistentVolumeClaim; `storage_class=None` leaves the class out, `volume` names
    what it is bound to."""
    metadata = _metadata(name, namespace, f"uid-{namespace}-{name}", version, None)
    _put_times(metadata, deletionTimestamp=deleted)
    spec: Manifest = {} if storage_class is None else {"storageClassName": storage_class}
    _put_filled(spec, volumeName=volume)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": spec,
    }


def make_volume(
    name: str = "disk",
    *,
    version: str = "1",
    labels: Mapping[str, str] | None = None,
    terms: Sequence[Mapping[str, object]] | None = None,
) -> Manifest:
    """Return a PersistentVolume; `terms`: of the nodes that can reach it, all of them if None."""
    spec: Manifest = {}
    if terms is not None:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [*terms]}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": _metadata(name, "", f"uid-{name}", version, labels),
        "spec": spec,
    }


def make_priority_class(name: str = "high", value: int = 1000, *, version: str = "1") -> Manifest:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": _metadata(name, "", f"uid-{name}", version, None),
        "value": value,
    }


def view(manifest: Mapping[str, object]) -> KubeObject:
    """Decode a manifest of any kind. All views of a test run share one table of templates."""
    return _DECODER.decode_object(str(manifest["kind"]), manifest)


def pod_view(manifest: Mapping[str, object]) -> Pod:
    found = view(manifest)
    assert isinstance(found, Pod)
    return found


def node_view(manifest: Mapping[str, object]) -> Node:
    found = view(manifest)
    assert isinstance(found, Node)
    return found


def namespace_view(manifest: Mapping[str, object]) -> Namespace:
    found = view(manifest)
    assert isinstance(found, Namespace)
    return found


def budget_view(manifest: Mapping[str, object]) -> PodDisruptionBudget:
    found = view(manifest)
    assert isinstance(found, PodDisruptionBudget)
    return found


def claim_view(manifest: Mapping[str, object]) -> PersistentVolumeClaim:
    found = view(manifest)
    assert isinstance(found, PersistentVolumeClaim)
    return found


def volume_view(manifest: Mapping[str, object]) -> PersistentVolume:
    found = view(manifest)
    assert isinstance(found, PersistentVolume)
    return found


def priority_class_view(manifest: Mapping[str, object]) -> PriorityClass:
    found = view(manifest)
    assert isinstance(found, PriorityClass)
    return found


def cluster_store(*manifests: Mapping[str, object]) -> Store:
    """Return a store that holds these objects."""
    store = Store()
    for manifest in manifests:
        store.put(view(manifest))
    return store


def cluster(*manifests: Mapping[str, object]) -> Lister:
    """Return a lister over a store that holds these objects."""
    return Lister(cluster_store(*manifests))


def _metadata(
    name: str, namespace: str, uid: str, version: str, labels: Mapping[str, str] | None
) -> Manifest:
    metadata: Manifest = {"name": name, "uid": uid, "resourceVersion": version}
    _put_filled(metadata, namespace=namespace, labels=dict(labels or {}))
    return metadata


def _container_status(
    name: object, restarts: int, state: Mapping[str, object] | None, ready: bool
) -> Manifest:
    return {
        "name": name,
        "restartCount": restarts,
        "ready": ready,
        "state": dict(state) if state is not None else {"running": {}},
    }


def _put_filled(target: Manifest, **fields: object) -> None:
    target.update({name: found for name, found in fields.items() if found})


def _put_times(target: Manifest, **times: Time | None) -> None:
    for name, time in times.items():
        if time is not None:
            target[name] = time.isoformat() if isinstance(time, datetime) else time
