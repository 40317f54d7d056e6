"""The objects that the end-to-end tests and the latency benchmark create."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from tests.controlplane.given import OURS

if TYPE_CHECKING:
    from collections.abc import Mapping

READY_AFTER = "e2e.test/ready-after"
"""An annotation of Pods: how long after it is bound kwok makes it Ready, such as 1500ms."""
GONE_AFTER = "e2e.test/gone-after"
"""The same for how long it is terminating."""
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
            "labels": {
                "kubernetes.io/hostname": name,
                "topology.kubernetes.io/zone": zone,
                **OURS,
            },
        },
        "status": {"capacity": room, "allocatable": room},
    }


def asking(cpu: str) -> dict[str, object]:
    """What of a Pod's spec makes it request so much cpu; a node has 32."""
    requests = {"cpu": cpu, "memory": "16Mi"}
    container = {
        "name": "main",
        "image": "example.test/none",
        "resources": {"requests": requests},
    }
    return {"containers": [container]}


def make_deployment(
    name: str,
    *,
    replicas: int,
    nodes: tuple[str, ...] = (),
    tolerates: str = "",
    spread: bool = False,
    grace_seconds: int = 1,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    extra: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """A Deployment labelled app=`name`.

    nodes: the only ones it may run on (default: all). tolerates: the key of a taint. spread:
    strictly as many Pods on each node as on the others, not what the scheduler finds best.
    grace_seconds: how long its Pods are terminating (kwok does not wait; with 0 no server does).
    labels: more of its Pods' labels. annotations: of its Pods; kwok heeds READY_AFTER and
    GONE_AFTER. extra: of its Pods' spec.
    """
    own = {"app": name}
    pod: dict[str, object] = {
        "terminationGracePeriodSeconds": grace_seconds,
        **asking("10m"),
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "DoNotSchedule" if spread else "ScheduleAnyway",
                "labelSelector": {"matchLabels": own},
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
        "metadata": {"name": name, "labels": own},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": own},
            "template": {
                "metadata": {
                    "labels": {**own, **(labels or {})},
                    "annotations": dict(annotations or {}),
                },
                "spec": pod | dict(extra or {}),
            },
        },
    }


def make_daemon_set(name: str) -> dict[str, object]:
    """A DaemonSet labelled app=`name`, with a Pod on every node."""
    document = make_deployment(name, replicas=0)
    spec = document["spec"]
    assert isinstance(spec, dict)
    return document | {
        "kind": "DaemonSet",
        "spec": {key: value for key, value in spec.items() if key != "replicas"},
    }


def make_job(name: str, *, ends: str) -> dict[str, object]:
    """A Job of one Pod labelled app=`name`, which kwok ends at once: Failed or Succeeded."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "backoffLimit": 0,
            "template": {
                "metadata": {"labels": {"app": name, "e2e.test/ends": ends}},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "main", "image": "example.test/none"}],
                },
            },
        },
    }


def on_our_nodes(document: Mapping[str, object]) -> Mapping[str, object]:
    """A workload whose Pods run on nodes of `make_node` alone; anything else as it is."""
    match document:
        case {"spec": {"template": {"spec": dict(pod), **template}, **spec}}:
            placed = pod | {"nodeSelector": OURS}
            return {**document, "spec": {**spec, "template": {**template, "spec": placed}}}
    return document


def make_budget(name: str, *, min_available: int) -> dict[str, object]:
    """A PodDisruptionBudget for the Pods labelled app=`name`."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"minAvailable": min_available, "selector": {"matchLabels": {"app": name}}},
    }
