"""Without corrections, a plan names the Pods that upstream's own program would evict.

One cluster with something for each of the ten strategies, each limited to an app of its own: which
of several alike Pods goes is chance upstream, so how many of each app and node are compared.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.controlplane.upstream import DESCHEDULER, needs
from tests.e2e.conftest import NODES
from tests.e2e.objects import asking, make_deployment, make_job
from tests.e2e.policies import BALANCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from tests.e2e.api import Api
    from tests.e2e.scene import Scene

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.real_time,
    pytest.mark.timeout(120),
    needs(DESCHEDULER),
]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
POOL = "e2e.test/pool"
STRATEGIES: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "PodLifeTime": ("aged", {"maxPodLifeTimeSeconds": 1}),
    "RemoveFailedPods": ("work", {"minPodLifetimeSeconds": 0}),
    "RemovePodsHavingTooManyRestarts": ("moody", {"podRestartThreshold": 5}),
    "RemovePodsViolatingInterPodAntiAffinity": ("shy", {}),
    "RemovePodsViolatingNodeAffinity": ("picky", {"nodeAffinityType": [REQUIRED]}),
    "RemovePodsViolatingNodeTaints": ("drained", {}),
    "HighNodeUtilization": ("lonely", {"thresholds": {"cpu": 20}}),
    "LowNodeUtilization": ("big", {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 55}}),
    "RemoveDuplicates": ("twin", {}),
    "RemovePodsViolatingTopologySpreadConstraint": ("even", {"constraints": ["ScheduleAnyway"]}),
}
"""With the app that each looks after here."""
DRY = re.compile(r'"Evicted pod in dry run mode" pod="[^"]*/([^"]*)".* strategy="([^"]*)"')
PASS_ENDS = b'"Number of evictions/requests" totalEvicted='
Evicted = set[tuple[str, str]]
"""Names of Pods, each with the strategy that wants it to go."""


def make_policy() -> dict[str, object]:
    """A profile for each strategy."""
    profiles = []
    for strategy, (app, arguments) in STRATEGIES.items():
        point = "balance" if strategy in BALANCE else "deschedule"
        evictor = {"labelSelector": {"matchLabels": {"app": app}}}
        profiles.append(
            {
                "name": app,
                "pluginConfig": [
                    {"name": "DefaultEvictor", "args": evictor},
                    {"name": strategy, "args": arguments},
                ],
                "plugins": {point: {"enabled": [strategy]}},
            }
        )
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "profiles": profiles,
    }


@pytest.fixture
async def api(api: Api) -> AsyncIterator[Api]:
    """It leaves no node in a pool."""
    yield api
    for node in NODES:
        await set_pool(api, node, None)


async def set_pool(api: Api, node: str, pool: str | None) -> None:
    """Put a node into a pool, or into none."""
    await api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {POOL: pool}}})


async def open_only(scene: Scene, *nodes: str) -> None:
    """Cordon all other nodes."""
    for node in NODES:
        await scene.api.cordon(node, on=node not in nodes)


async def add_apps(scene: Scene) -> None:
    """Give each strategy its app, and then the cause to evict some of it."""
    await set_pool(scene.api, "node-2", "blue")
    await open_only(scene, "node-4")
    await scene.deploy(make_deployment("lonely", replicas=2), pods=2)
    await open_only(scene, "node-1")
    zones = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone"}
    soft = {
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "even"}},
    }
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"loud": "y"}},
    }
    apps: list[tuple[str, int, Mapping[str, object]]] = [
        ("aged", 1, {}),
        ("moody", 2, {}),
        ("noisy", 1, {}),
        ("shy", 2, {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}),
        ("big", 3, asking("7")),
        ("twin", 4, {}),
        ("even", 4, {"topologySpreadConstraints": [zones | soft]}),
    ]
    pods = await asyncio.gather(
        *(
            scene.deploy(make_deployment(name, replicas=count, extra=extra), pods=count)
            for name, count, extra in apps
        )
    )
    await open_only(scene, *NODES)
    is_blue = {"matchExpressions": [{"key": POOL, "operator": "In", "values": ["blue"]}]}
    blue = {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [is_blue]}}}}
    await asyncio.gather(
        scene.deploy(make_deployment("picky", replicas=2, extra=blue), pods=2),
        scene.deploy(make_deployment("drained", replicas=2, nodes=("node-3",)), pods=2),
        scene.create(make_job("work", ends="Failed")),
    )
    await scene.pods("work", count=1, phase="Failed")
    by_app = {app: found for (app, _, _), found in zip(apps, pods, strict=True)}
    await scene.restart_containers(by_app["moody"][:1], 5)
    for pod in by_app["noisy"]:
        path = f"/api/v1/namespaces/{scene.namespace}/pods/{pod.metadata.name}"
        await scene.api.patch(path, {"metadata": {"labels": {"loud": "y"}}})
    await set_pool(scene.api, "node-2", None)
    await set_pool(scene.api, "node-4", "blue")
    await scene.api.taint("node-3", ("maintenance", "NoSchedule"))
    await scene.quiet()  # until the scheduler's and controllers' marks on the nodes are gone


async def upstreams(scene: Scene) -> Evicted:
    """What a dry run of upstream's program evicts, in its third pass.

    Its copy of the cluster fills while the first goes on; each begins with the same Pods.
    """
    process = await asyncio.create_subprocess_exec(
        str(DESCHEDULER),
        *("--descheduling-interval=1s", "--secure-port=0", "--disable-metrics", "--dry-run"),
        *("--v=1", f"--policy-config-file={scene.directory / 'policy.json'}"),
        *("--client-connection-qps=500", "--client-connection-burst=1000"),
        f"--kubeconfig={scene.plane.kubeconfig()}",
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        for _ in range(2):
            await process.stderr.readuntil(PASS_ENDS)
        return set(DRY.findall((await process.stderr.readuntil(PASS_ENDS)).decode()))
    finally:
        process.kill()
        await process.wait()


async def ours(scene: Scene, corrections: str) -> dict[str, object]:
    """What `plan` says."""
    printed = await _run(
        *(sys.executable, "-m", "reactive_descheduler", "plan", "-o", "json"),
        *("-f", str(scene.directory / "policy.json"), "--corrections", corrections),
        *("--kubeconfig", str(scene.plane.kubeconfig())),
    )
    document = json.loads(printed)
    assert isinstance(document, dict)
    return document


async def _run(*command: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return output.decode()


async def counted(scene: Scene, evicted: Iterable[tuple[str, str]]) -> Counter[tuple[str, ...]]:
    """How many Pods of each app and node go, by strategy."""
    apps = {app for app, _ in STRATEGIES.values()}
    pods = [pod for app in apps for pod in await scene.api.pods(scene.namespace, app)]
    found = {pod.metadata.name: (pod.metadata.labels["app"], pod.node) for pod in pods}
    return Counter((strategy, *found[name]) for name, strategy in evicted)


def planned(plan: Mapping[str, object]) -> Evicted:
    """The evictions of a plan."""
    match plan:
        case {"evictions": list(evictions)}:
            return {(each["name"], each["strategy"]) for each in evictions}
    raise ValueError("no plan")


@pytest.mark.usefixtures("own_control_plane")
async def test_the_same_pods_go_by_each_of_the_ten_strategies(scene: Scene) -> None:
    (scene.directory / "policy.json").write_text(json.dumps(make_policy()))
    await add_apps(scene)
    theirs = await upstreams(scene)
    plan, difference = await ours(scene, "none"), await ours(scene, "diff")

    assert {strategy for _, strategy in theirs} == set(STRATEGIES)
    assert await counted(scene, planned(plan)) == await counted(scene, theirs)
    assert isinstance(both := difference["evictedByBoth"], int)
    assert isinstance(only := difference["evictedByUpstreamOnly"], int)
    assert both + only == len(theirs)
    assert not scene.evicted()
