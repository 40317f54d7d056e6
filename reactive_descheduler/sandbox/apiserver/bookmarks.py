"""BOOKMARK events: an otherwise empty object that carries a resourceVersion.

An empty object in Go is not `{}`: it has the fields that are always written, some of them null.
Decoders must bear that, so the sandbox sends what was seen on a real server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from reactive_descheduler.sandbox.apiserver.store import watch_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reactive_descheduler.sandbox.apiserver.resources import Resource
    from reactive_descheduler.sandbox.documents import JsonObject

INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}

_NODE_INFO = (
    "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion",
    "kubeletVersion", "kubeProxyVersion", "operatingSystem", "architecture",
)  # fmt: skip
_BUDGET_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_TEMPLATE: JsonObject = {"metadata": {}, "spec": {"containers": None}}

_EMPTY: dict[str, JsonObject] = {
    "pods": {"spec": {"containers": None}, "status": {}},
    "nodes": {
        "spec": {},
        "status": {
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
            "nodeInfo": dict.fromkeys(_NODE_INFO, ""),
        },
    },
    "namespaces": {"spec": {}, "status": {}},
    "persistentvolumeclaims": {"spec": {"resources": {}}, "status": {}},
    "replicasets.apps": {
        "spec": {"replicas": 0, "selector": None, "template": _TEMPLATE},
        "status": {"replicas": 0},
    },
    "poddisruptionbudgets.policy": {"spec": {}, "status": dict.fromkeys(_BUDGET_COUNTS, 0)},
    "leases.coordination.k8s.io": {"spec": {}},
    "priorityclasses.scheduling.k8s.io": {"value": 0},
    "events": {
        "involvedObject": {},
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": None,
        "reportingComponent": "",
        "reportingInstance": "",
    },
}


def bookmark(resource: Resource, version: int, annotations: Mapping[str, str]) -> bytes:
    """The watch line."""
    metadata: JsonObject = {"resourceVersion": str(version)}
    if annotations:
        metadata["annotations"] = annotations
    document: JsonObject = {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": metadata,
        **_EMPTY.get(resource.qualified, {}),
    }
    return watch_line("BOOKMARK", orjson.dumps(document))
