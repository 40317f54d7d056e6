"""Columns and cells of `kubectl get`, of the resources that people look at most."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from reactive_descheduler.sandbox.documents import (
    JsonObject,
    condition,
    integer,
    is_terminating,
    labels,
    lookup,
    mapping,
    name_of,
    objects,
    seconds_of,
    string_map,
    strings,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    Cells: TypeAlias = Callable[[JsonObject, float], list[object]]

_NONE = "<none>"


def _age(document: JsonObject, now: float) -> str:
    created = text(document, "metadata", "creationTimestamp")
    return _duration(now - seconds_of(created)) if created else "<unknown>"


def _duration(seconds: float) -> str:
    """The two largest units that matter, as kubectl shows ages."""
    whole = max(0, int(seconds))
    if whole < 120:
        return f"{whole}s"
    if whole < 600:
        return f"{whole // 60}m{whole % 60}s" if whole % 60 else f"{whole // 60}m"
    if whole < 3 * 3_600:
        return f"{whole // 60}m"
    return f"{whole // 3_600}h" if whole < 48 * 3_600 else f"{whole // 86_400}d"


def _template(workload: JsonObject) -> list[object]:
    """Names and images of the containers."""
    containers = objects(workload, "spec", "template", "spec", "containers")
    return [",".join(text(c, field) for c in containers) for field in ("name", "image")]


def _selector(workload: JsonObject) -> str:
    return _pairs(string_map(workload, "spec", "selector", "matchLabels"))


def _pairs(values: dict[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(values.items())) or _NONE


def _plain(document: JsonObject, now: float) -> list[object]:
    return [name_of(document), _age(document, now)]


def _pod(pod: JsonObject, now: float) -> list[object]:
    statuses = objects(pod, "status", "containerStatuses")
    ready = sum(entry.get("ready") is True for entry in statuses)
    restarts = sum(integer(entry, "restartCount") for entry in statuses)
    waiting = [text(entry, "state", "waiting", "reason") for entry in statuses]
    state = next(filter(None, waiting), "") or text(pod, "status", "reason")
    state = "Terminating" if is_terminating(pod) else state or text(pod, "status", "phase")
    return [
        name_of(pod),
        f"{ready}/{len(objects(pod, 'spec', 'containers'))}",
        state,
        str(restarts),
        _age(pod, now),
        text(pod, "status", "podIP") or _NONE,
        text(pod, "spec", "nodeName") or _NONE,
        text(pod, "status", "nominatedNodeName") or _NONE,
        _NONE,
    ]


def _node(node: JsonObject, now: float) -> list[object]:
    ready = condition(node, "Ready").get("status")
    state = {"True": "Ready", "False": "NotReady"}.get(str(ready), "Unknown")
    if lookup(node, "spec", "unschedulable") is True:
        state += ",SchedulingDisabled"
    prefix = "node-role.kubernetes.io/"
    roles = sorted(key.removeprefix(prefix) for key in labels(node) if key.startswith(prefix))
    addresses = {
        text(entry, "type"): text(entry, "address")
        for entry in objects(node, "status", "addresses")
    }
    info = mapping(node, "status", "nodeInfo")
    return [
        name_of(node),
        state,
        ",".join(roles) or _NONE,
        _age(node, now),
        text(info, "kubeletVersion"),
        addresses.get("InternalIP", _NONE),
        addresses.get("ExternalIP", _NONE),
        text(info, "osImage") or "<unknown>",
        text(info, "kernelVersion") or "<unknown>",
        text(info, "containerRuntimeVersion") or "<unknown>",
    ]


def _deployment(deployment: JsonObject, now: float) -> list[object]:
    status = mapping(deployment, "status")
    wanted = integer(deployment, "spec", "replicas")
    return [
        name_of(deployment),
        f"{integer(status, 'readyReplicas')}/{wanted}",
        integer(status, "updatedReplicas"),
        integer(status, "availableReplicas"),
        _age(deployment, now),
        *_template(deployment),
        _selector(deployment),
    ]


def _replica_set(replica_set: JsonObject, now: float) -> list[object]:
    status = mapping(replica_set, "status")
    return [
        name_of(replica_set),
        integer(replica_set, "spec", "replicas"),
        integer(status, "replicas"),
        integer(status, "readyReplicas"),
        _age(replica_set, now),
        *_template(replica_set),
        _selector(replica_set),
    ]


def _daemon_set(daemon_set: JsonObject, now: float) -> list[object]:
    status = mapping(daemon_set, "status")
    return [
        name_of(daemon_set),
        integer(status, "desiredNumberScheduled"),
        integer(status, "currentNumberScheduled"),
        integer(status, "numberReady"),
        integer(status, "updatedNumberScheduled"),
        integer(status, "numberAvailable"),
        _pairs(string_map(daemon_set, "spec", "template", "spec", "nodeSelector")),
        _age(daemon_set, now),
        *_template(daemon_set),
        _selector(daemon_set),
    ]


def _stateful_set(stateful_set: JsonObject, now: float) -> list[object]:
    ready = integer(stateful_set, "status", "readyReplicas")
    return [
        name_of(stateful_set),
        f"{ready}/{integer(stateful_set, 'spec', 'replicas')}",
        _age(stateful_set, now),
        *_template(stateful_set),
    ]


def _job(job: JsonObject, now: float) -> list[object]:
    status = mapping(job, "status")
    verdicts = ("Complete", "Failed", "Suspended")
    state = next((kind for kind in verdicts if condition(job, kind).get("status") == "True"), "")
    began, ended = text(status, "startTime"), text(status, "completionTime")
    until = seconds_of(ended) if ended else now
    return [
        name_of(job),
        state or "Running",
        f"{integer(status, 'succeeded')}/{integer(job, 'spec', 'completions', default=1)}",
        _duration(until - seconds_of(began)) if began else "",
        _age(job, now),
        *_template(job),
        _selector(job),
    ]


def _service(service: JsonObject, now: float) -> list[object]:
    ports = objects(service, "spec", "ports")
    return [
        name_of(service),
        text(service, "spec", "type") or "ClusterIP",
        text(service, "spec", "clusterIP") or _NONE,
        text(service, "spec", "externalName") or _NONE,
        ",".join(f"{integer(p, 'port')}/{text(p, 'protocol') or 'TCP'}" for p in ports) or _NONE,
        _age(service, now),
        _pairs(string_map(service, "spec", "selector")),
    ]


def _config_map(config_map: JsonObject, now: float) -> list[object]:
    entries = len(mapping(config_map, "data")) + len(mapping(config_map, "binaryData"))
    return [name_of(config_map), entries, _age(config_map, now)]


def _secret(secret: JsonObject, now: float) -> list[object]:
    kind = text(secret, "type") or "Opaque"
    return [name_of(secret), kind, len(mapping(secret, "data")), _age(secret, now)]


def _priority_class(priority_class: JsonObject, now: float) -> list[object]:
    return [
        name_of(priority_class),
        integer(priority_class, "value"),
        priority_class.get("globalDefault") is True,
        _age(priority_class, now),
        text(priority_class, "preemptionPolicy") or "PreemptLowerPriority",
    ]


def _namespace(namespace: JsonObject, now: float) -> list[object]:
    return [name_of(namespace), text(namespace, "status", "phase"), _age(namespace, now)]


def _budget(budget: JsonObject, now: float) -> list[object]:
    def bound(name: str) -> str:
        value = lookup(budget, "spec", name)
        return "N/A" if value is None else str(value)

    allowed = integer(budget, "status", "disruptionsAllowed")
    return [
        name_of(budget), bound("minAvailable"), bound("maxUnavailable"), allowed, _age(budget, now)
    ]  # fmt: skip


def _event(event: JsonObject, now: float) -> list[object]:
    began = text(event, "eventTime") or text(event, "firstTimestamp")
    last = text(event, "series", "lastObservedTime") or text(event, "lastTimestamp") or began
    about, created = mapping(event, "involvedObject"), text(event, "metadata", "creationTimestamp")
    return [
        _duration(now - seconds_of(last or created)),
        text(event, "type"),
        text(event, "reason"),
        f"{text(about, 'kind').lower()}/{text(about, 'name')}",
        text(about, "fieldPath"),
        text(event, "source", "component") or text(event, "reportingComponent"),
        text(event, "message").strip(),
        _duration(now - seconds_of(began or created)),
        max(1, integer(event, "count"), integer(event, "series", "count")),
        name_of(event),
    ]


def _claim(claim: JsonObject, now: float) -> list[object]:
    return [
        name_of(claim),
        text(claim, "status", "phase"),
        text(claim, "spec", "volumeName"),
        text(claim, "status", "capacity", "storage"),
        ",".join(strings(claim, "status", "accessModes")),
        text(claim, "spec", "storageClassName"),
        "<unset>",
        _age(claim, now),
        text(claim, "spec", "volumeMode") or "Filesystem",
    ]


def _volume(volume: JsonObject, now: float) -> list[object]:
    claim = mapping(volume, "spec", "claimRef")
    return [
        name_of(volume),
        text(volume, "spec", "capacity", "storage"),
        ",".join(strings(volume, "spec", "accessModes")),
        text(volume, "spec", "persistentVolumeReclaimPolicy") or "Retain",
        text(volume, "status", "phase"),
        f"{text(claim, 'namespace')}/{text(claim, 'name')}" if claim else "",
        text(volume, "spec", "storageClassName"),
        "<unset>",
        text(volume, "status", "reason"),
        _age(volume, now),
        text(volume, "spec", "volumeMode") or "Filesystem",
    ]


def _lease(lease: JsonObject, now: float) -> list[object]:
    return [name_of(lease), text(lease, "spec", "holderIdentity"), _age(lease, now)]


def _node_metrics(metrics: JsonObject, _now: float) -> list[object]:
    usage = mapping(metrics, "usage")
    return [name_of(metrics), usage.get("cpu"), usage.get("memory"), text(metrics, "window")]


PLAIN: tuple[str, Cells] = ("Name Age", _plain)
_EVENT_COLUMNS = "Last_Seen Type Reason Object Subobject+ Source+ Message First_Seen+ Count+ Name+"
_OWNED = "Containers+ Images+ Selector+"
LAYOUTS: dict[str, tuple[str, Cells]] = {
    "pods": ("Name Ready Status Restarts Age IP+ Node+ Nominated_Node+ Readiness_Gates+", _pod),
    "nodes": (
        "Name Status Roles Age Version Internal-IP+ External-IP+ OS-Image+ Kernel-Version+ "
        "Container-Runtime+",
        _node,
    ),
    "deployments.apps": (f"Name Ready Up-to-date Available Age {_OWNED}", _deployment),
    "replicasets.apps": (f"Name Desired# Current# Ready# Age {_OWNED}", _replica_set),
    "daemonsets.apps": (
        f"Name Desired# Current# Ready# Up-to-date# Available# Node_Selector Age {_OWNED}",
        _daemon_set,
    ),
    "statefulsets.apps": ("Name Ready Age Containers+ Images+", _stateful_set),
    "jobs.batch": (f"Name Status Completions Duration Age {_OWNED}", _job),
    "services": ("Name Type Cluster-IP External-IP Port(s) Age Selector+", _service),
    "configmaps": ("Name Data Age", _config_map),
    "secrets": ("Name Type Data Age", _secret),
    "priorityclasses.scheduling.k8s.io": (
        "Name Value# Global-Default? Age PreemptionPolicy",
        _priority_class,
    ),
    "namespaces": ("Name Status Age", _namespace),
    "poddisruptionbudgets.policy": (
        "Name Min_Available Max_Unavailable Allowed_Disruptions# Age",
        _budget,
    ),
    "events": (_EVENT_COLUMNS, _event),
    "events.events.k8s.io": (_EVENT_COLUMNS, _event),
    "persistentvolumeclaims": (
        "Name Status Volume Capacity Access_Modes StorageClass VolumeAttributesClass Age "
        "VolumeMode+",
        _claim,
    ),
    "persistentvolumes": (
        "Name Capacity Access_Modes Reclaim_Policy Status Claim StorageClass "
        "VolumeAttributesClass Reason Age VolumeMode+",
        _volume,
    ),
    "nodes.metrics.k8s.io": ("Name CPU Memory Window", _node_metrics),
    "leases.coordination.k8s.io": ("Name Holder Age", _lease),
}
