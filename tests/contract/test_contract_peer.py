"""The established descheduler as a client: it evicts in the sandbox what it evicts elsewhere.

One pass of it over the same objects and with the same policy, on the sandbox's API server and on a
real one. Neither has controllers, so what is terminating afterwards is what it evicted. Which of
several equal Pods it takes is chance, so nodes and workloads are compared, not names.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
import pytest

from reactive_descheduler.sandbox.documents import JsonObject, is_terminating, labels, text
from tests.contract.world import Endpoint, World, sandbox_endpoint, world_at
from tests.controlplane.upstream import DESCHEDULER, needs

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.real_time,
    pytest.mark.timeout(120),
    needs(DESCHEDULER),
]


@dataclass(frozen=True)
class Workload:
    """Ready Pods of one owner, by node: `{"a": 2}` are two on node `a`."""

    name: str
    places: dict[str, int]
    spec: JsonObject = field(default_factory=dict)
    restarts: int = 0
    phase: str = "Running"
    allowed: int | None = None
    """What the workload's PodDisruptionBudget allows; None without one."""


@dataclass(frozen=True)
class Scene:
    """Objects, one plugin of the policy, and what is evicted: how many by (node, workload)."""

    plugin: str
    args: JsonObject
    workloads: tuple[Workload, ...]
    evicted: dict[tuple[str, str], int]
    taints: dict[str, list[JsonObject]] = field(default_factory=dict)
    node_labels: dict[str, dict[str, str]] = field(default_factory=dict)


def _asks(cpu: str) -> JsonObject:
    requests = {"cpu": cpu, "memory": "64Mi"}
    container = {"name": "main", "image": "example/image:1", "resources": {"requests": requests}}
    return {"containers": [container]}


def _apart(app: str) -> JsonObject:
    term = {"topologyKey": "name", "labelSelector": {"matchLabels": {"app": app}}}
    return {
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    }


_GONE: JsonObject = {"key": "maintenance", "value": "yes", "effect": "NoSchedule"}
_ON_DISK: JsonObject = {
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
                ]
            }
        }
    }
}
_EVEN: JsonObject = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "name",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
}

SCENES = {
    "taints": Scene(
        plugin="RemovePodsViolatingNodeTaints",
        args={},
        taints={"a": [_GONE]},
        workloads=(
            Workload("web", {"a": 2, "b": 1}),
            Workload("bears-it", {"a": 1}, {"tolerations": [{"operator": "Exists"}]}),
        ),
        evicted={("a", "web"): 2},
    ),
    "budget": Scene(
        plugin="RemovePodsViolatingNodeTaints",
        args={},
        taints={"a": [_GONE]},
        workloads=(
            Workload("web", {"a": 3, "b": 1}, allowed=1),
            Workload("held", {"a": 1}, allowed=0),
        ),
        evicted={("a", "web"): 1},
    ),
    "affinity": Scene(
        plugin="RemovePodsViolatingNodeAffinity",
        args={"nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]},
        node_labels={"b": {"disk": "ssd"}},
        workloads=(Workload("web", {"a": 1, "b": 1, "c": 1}, _ON_DISK), Workload("api", {"a": 1})),
        evicted={("a", "web"): 1, ("c", "web"): 1},
    ),
    "neighbours": Scene(
        plugin="RemovePodsViolatingInterPodAntiAffinity",
        args={},
        workloads=(Workload("web", {"a": 1, "b": 1}, _apart("api")), Workload("api", {"a": 1})),
        evicted={("a", "web"): 1},
    ),
    "duplicates": Scene(
        plugin="RemoveDuplicates",
        args={},
        workloads=(Workload("web", {"a": 3}), Workload("api", {"a": 1, "b": 1})),
        evicted={("a", "web"): 2},
    ),
    "spread": Scene(
        plugin="RemovePodsViolatingTopologySpreadConstraint",
        args={},
        workloads=(Workload("web", {"a": 4, "b": 1, "c": 1}, _EVEN),),
        evicted={("a", "web"): 2},
    ),
    "restarts": Scene(
        plugin="RemovePodsHavingTooManyRestarts",
        args={"podRestartThreshold": 5},
        workloads=(Workload("web", {"a": 1}, restarts=7), Workload("api", {"a": 1}, restarts=4)),
        evicted={("a", "web"): 1},
    ),
    "failed": Scene(
        plugin="RemoveFailedPods",
        args={"minPodLifetimeSeconds": 0},
        workloads=(Workload("web", {"a": 1}, phase="Failed"), Workload("api", {"a": 1})),
        evicted={("a", "web"): 1},
    ),
    "utilization": Scene(
        plugin="LowNodeUtilization",
        args={"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}},
        workloads=(Workload("web", {"a": 3, "b": 1}, _asks("1")),),
        evicted={("a", "web"): 1},
    ),
}
_BALANCE = {"RemoveDuplicates", "RemovePodsViolatingTopologySpreadConstraint", "LowNodeUtilization"}


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
async def test_the_established_descheduler_evicts_the_same(
    scene: Scene, real_endpoint: Endpoint, tmp_path: Path
) -> None:
    on_real = await _evicted_at(real_endpoint, scene, tmp_path / "real")
    async with sandbox_endpoint() as sandbox:
        on_sandbox = await _evicted_at(sandbox, scene, tmp_path / "sandbox")

    assert on_sandbox == on_real == scene.evicted


async def _evicted_at(
    endpoint: Endpoint, scene: Scene, directory: Path
) -> Counter[tuple[str, str]]:
    await anyio.Path(directory).mkdir()
    async with world_at(endpoint) as world:
        nodes = await _set_up(world, scene)
        before = await _pods(world)
        try:
            await _run_peer(world, scene, directory)
        finally:
            for node in nodes:
                await world.client.delete("nodes", node)
        remaining = {text(pod, "metadata", "name"): pod for pod in await _pods(world)}
    gone = [
        pod
        for pod in before
        if (now := remaining.get(text(pod, "metadata", "name"))) is None or is_terminating(now)
    ]
    short = {node: node.rsplit("-", 1)[1] for node in nodes}
    return Counter((short[text(pod, "spec", "nodeName")], labels(pod)["app"]) for pod in gone)


async def _pods(world: World) -> list[JsonObject]:
    return (await world.client.list("pods", world.namespace))[0]


async def _set_up(world: World, scene: Scene) -> list[str]:
    """Nodes `...-a`, `...-b`, `...-c` and the scene's Pods on them; gives the nodes' names."""
    nodes = {short: f"{world.unique('peer')}-{short}" for short in ("a", "b", "c")}
    for short, name in nodes.items():
        await _add_node(world, name, scene.taints.get(short, []), scene.node_labels.get(short, {}))
    for workload in scene.workloads:
        if workload.allowed is not None:
            await world.budget(workload.name, allowed=workload.allowed, app=workload.name)
        for short, count in workload.places.items():
            for number in range(count):
                await _add_pod(world, workload, f"{workload.name}-{short}{number}", nodes[short])
    return list(nodes.values())


async def _add_node(
    world: World, name: str, taints: list[JsonObject], more_labels: dict[str, str]
) -> None:
    node: JsonObject = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"peer": world.namespace, "name": name, **more_labels},
        },
    }
    await world.client.create(node)
    # A real server admits each node with the taint not-ready, which its controllers take away.
    await world.client.patch("nodes", name, {"spec": {"taints": taints}})
    amounts = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True"}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
    await world.client.patch("nodes", name, {"status": status}, subresource="status")


async def _add_pod(world: World, workload: Workload, name: str, node: str) -> None:
    spec = {**_asks("100m"), **workload.spec}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": workload.name, "uid": "1-2-3"}
    pod: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": world.namespace,
            "labels": {"app": workload.name},
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": spec,
    }
    created = await world.client.create(pod)
    await world.client.bind(created, node)
    running = {
        "name": "main",
        "ready": True,
        "restartCount": workload.restarts,
        "image": "i",
        "imageID": "",
    }
    status = {
        "phase": workload.phase,
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [running],
    }
    await world.client.patch(
        "pods", name, {"status": status}, namespace=world.namespace, subresource="status"
    )


async def _run_peer(world: World, scene: Scene, directory: Path) -> None:
    """One pass over the world's own nodes and namespace."""
    namespaces = {"namespaces": {"include": [world.namespace]}}
    if scene.plugin == "LowNodeUtilization":
        # It has no choice of namespaces but by exclusion; the nodes are the world's own.
        namespaces = {}
    point = "balance" if scene.plugin in _BALANCE else "deschedule"
    policy: JsonObject = {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "nodeSelector": f"peer={world.namespace}",
        "profiles": [
            {
                "name": "contract",
                "pluginConfig": [
                    {"name": "DefaultEvictor", "args": {}},
                    {"name": scene.plugin, "args": {**scene.args, **namespaces}},
                ],
                "plugins": {point: {"enabled": [scene.plugin]}},
            }
        ],
    }
    await anyio.Path(directory / "policy.yaml").write_text(json.dumps(policy))
    await anyio.Path(directory / "ca.crt").write_text(world.endpoint.ca_pem)
    await anyio.Path(directory / "kubeconfig").write_text(json.dumps(_kubeconfig(world.endpoint)))
    result = await anyio.run_process(
        [
            str(DESCHEDULER),
            f"--kubeconfig={directory / 'kubeconfig'}",
            f"--policy-config-file={directory / 'policy.yaml'}",
            "--descheduling-interval=0",
            "--secure-port=0",
            "--client-connection-qps=500",
            "--client-connection-burst=1000",
        ],
        check=False,
    )
    assert result.returncode == 0, result.stderr.decode()


def _kubeconfig(endpoint: Endpoint) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "c",
                "cluster": {"server": endpoint.url, "certificate-authority": "ca.crt"},
            }
        ],
        "users": [{"name": "u", "user": {"token": endpoint.token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
