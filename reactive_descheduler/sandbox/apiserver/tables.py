"""Rows and columns for `kubectl get`, of the resources that people look at most."""

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
    text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reactive_descheduler.sandbox.apiserver.resources import Resource

    Cells: TypeAlias = Callable[[JsonObject, float], list[object]]


def table(resource: Resource, rows: list[JsonObject], metadata: JsonObject) -> JsonObject:
    """A `Table` with the columns of a resource."""
    columns, _ = _LAYOUTS.get(resource.qualified, _PLAIN)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [_column(name) for name in columns.split()],
        "rows": rows,
    }


def table_rows(resource: Resource, documents: Sequence[JsonObject], now: float) -> list[JsonObject]:
    """One row an object; each carries the object's metadata, which kubectl sorts and labels by."""
    _, cells = _LAYOUTS.get(resource.qualified, _PLAIN)
    return [
        {
            "cells": cells(document, now),
            "object": {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": document["metadata"],
            },
        }
        for document in documents
    ]


def _column(name: str) -> JsonObject:
    """A name ending in + shows with `-o wide` only; underscores stand for spaces."""
    wide = name.endswith("+")
    title = name.rstrip("+").replace("_", " ")
    return {
        "name": title,
        "type": "string",
        "format": "name" if title == "Name" else "",
        "description": "",
        "priority": int(wide),
    }


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
        text(pod, "status", "podIP") or "<none>",
        text(pod, "spec", "nodeName") or "<none>",
        text(pod, "status", "nominatedNodeName") or "<none>",
        "<none>",
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
        ",".join(roles) or "<none>",
        _age(node, now),
        text(info, "kubeletVersion"),
        addresses.get("InternalIP", "<none>"),
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
    ]


def _replica_set(replica_set: JsonObject, now: float) -> list[object]:
    status = mapping(replica_set, "status")
    return [
        name_of(replica_set),
        integer(replica_set, "spec", "replicas"),
        integer(status, "replicas"),
        integer(status, "readyReplicas"),
        _age(replica_set, now),
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
        _age(daemon_set, now),
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
    last = text(event, "lastTimestamp") or text(event, "metadata", "creationTimestamp")
    about = mapping(event, "involvedObject") or mapping(event, "regarding")
    return [
        _duration(now - seconds_of(last)),
        text(event, "type"),
        text(event, "reason"),
        f"{text(about, 'kind').lower()}/{text(about, 'name')}",
        (text(event, "message") or text(event, "note")).strip(),
    ]


def _lease(lease: JsonObject, now: float) -> list[object]:
    return [name_of(lease), text(lease, "spec", "holderIdentity"), _age(lease, now)]


_PLAIN: tuple[str, Cells] = ("Name Age", _plain)
_LAYOUTS: dict[str, tuple[str, Cells]] = {
    "pods": ("Name Ready Status Restarts Age IP+ Node+ Nominated_Node+ Readiness_Gates+", _pod),
    "nodes": ("Name Status Roles Age Version Internal-IP+", _node),
    "deployments.apps": ("Name Ready Up-to-date Available Age", _deployment),
    "replicasets.apps": ("Name Desired Current Ready Age", _replica_set),
    "daemonsets.apps": ("Name Desired Current Ready Up-to-date Available Age", _daemon_set),
    "namespaces": ("Name Status Age", _namespace),
    "poddisruptionbudgets.policy": (
        "Name Min_Available Max_Unavailable Allowed_Disruptions Age",
        _budget,
    ),
    "events": ("Last_Seen Type Reason Object Message", _event),
    "events.events.k8s.io": ("Last_Seen Type Reason Object Message", _event),
    "leases.coordination.k8s.io": ("Name Holder Age", _lease),
}
