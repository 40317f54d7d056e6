"""The objects that the end-to-end tests and the latency benchmark create."""

from __future__ import annotations

from typing import TypedDict

ZONES = ("zone-a", "zone-b")


class Toleration(TypedDict):
    """One entry of a Pod's tolerations."""

    key: str
    operator: str


def make_node(name: str, *, zone: str = ZONES[0]) -> dict[str, object]:
    """A node with room for 110 Pods; kwok makes it Ready."""
    room = {"cpu": "32", "memory": "64Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone},
        },
        "status": {"capacity": room, "allocatable": room},
    }


def make_deployment(
    name: str,
    *,
    replicas: int,
    nodes: tuple[str, ...] = (),
    tolerates: str = "",
    spread: bool = False,
    grace_seconds: int = 1,
) -> dict[str, object]:
    """A Deployment labelled app=`name`.

    nodes: the only ones it may run on (default: all). tolerates: the key of a taint. spread:
    strictly as many Pods on each node as on the others, not what the scheduler finds best.
    grace_seconds: how long its Pods are terminating (kwok does not wait; with 0 no server does).
    """
    labels = {"app": name}
    pod: dict[str, object] = {
        "terminationGracePeriodSeconds": grace_seconds,
        "containers": [
            {
                "name": "main",
                "image": "example.test/none",
                "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
            }
        ],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "DoNotSchedule" if spread else "ScheduleAnyway",
                "labelSelector": {"matchLabels": labels},
            }
        ],
    }
    if tolerates:
        pod["tolerations"] = [Toleration(key=tolerates, operator="Exists")]
    if nodes:
        term = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(nodes)}
        pod["affinity"] = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [term]}]
                }
            }
        }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def make_budget(name: str, *, min_available: int) -> dict[str, object]:
    """A PodDisruptionBudget for the Pods labelled app=`name`."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"minAvailable": min_available, "selector": {"matchLabels": {"app": name}}},
    }
