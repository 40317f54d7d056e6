"""Where the API serves the kinds that are watched."""

from __future__ import annotations

from typing import NamedTuple

METRICS_GROUP = "metrics.k8s.io"
"""Where usage is listed; it cannot be watched."""


class Resource(NamedTuple):
    """One kind: the path of all its objects, and its name as RBAC rules spell it."""

    kind: str
    path: str
    group: str
    plural: str
    namespaced: bool


RESOURCES = {
    resource.kind: resource
    for resource in (
        Resource("Node", "/api/v1/nodes", "", "nodes", namespaced=False),
        Resource("Pod", "/api/v1/pods", "", "pods", namespaced=True),
        Resource("Namespace", "/api/v1/namespaces", "", "namespaces", namespaced=False),
        Resource(
            "PodDisruptionBudget",
            "/apis/policy/v1/poddisruptionbudgets",
            "policy",
            "poddisruptionbudgets",
            namespaced=True,
        ),
        Resource(
            "PersistentVolumeClaim",
            "/api/v1/persistentvolumeclaims",
            "",
            "persistentvolumeclaims",
            namespaced=True,
        ),
        Resource(
            "PersistentVolume",
            "/api/v1/persistentvolumes",
            "",
            "persistentvolumes",
            namespaced=False,
        ),
        Resource(
            "PriorityClass",
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            "scheduling.k8s.io",
            "priorityclasses",
            namespaced=False,
        ),
    )
}


def pod_path(namespace: str, name: str) -> str:
    """Return the path of one Pod; its sub-resources lie below it."""
    return f"/api/v1/namespaces/{namespace}/pods/{name}"
