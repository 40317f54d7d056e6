"""The stage of the demo: a sandbox with workloads, the descheduler on it, and our own watch."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import anyio

from reactive_descheduler.app.daemon import Daemon
from reactive_descheduler.app.process import read_policy
from reactive_descheduler.app.settings import RunSettings
from reactive_descheduler.cli.demo_timeline import Observer, Timeline
from reactive_descheduler.client.kube import connect
from reactive_descheduler.kit.clock import SystemClock
from reactive_descheduler.sandbox.client import ApiClient
from reactive_descheduler.sandbox.cluster import SandboxCluster, running_sandbox
from reactive_descheduler.sandbox.documents import JsonObject, name_of
from reactive_descheduler.sandbox.mirror import Mirror
from reactive_descheduler.sandbox.sample import create_sample_workloads

POLICY = Path(__file__).with_name("demo-policy.yaml")
"""In the package, so that an installed program has it too."""
DISK_LABEL = "disk"
"""Label of the nodes that the Pods of `api` ask for, with the value `ssd`."""

_NODES = 5
_DISK_NODES = 4
_POLL_EVERY = 0.01  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What scenes are played on. `client` is the audience's hand, `pods` its eye."""

    client: ApiClient
    pods: Mirror
    daemon: Daemon
    timeline: Timeline
    kubeconfig: Path


@asynccontextmanager
async def open_stage() -> AsyncIterator[Stage]:
    """Run the cluster and the descheduler; the block begins when both are ready.

    Nothing is left when it ends. Holds task groups: enter and leave it in the same task.
    """
    async with (
        anyio.TemporaryDirectory(prefix="descheduler-demo-") as directory,
        running_sandbox(nodes=_NODES) as cluster,
    ):
        await _furnish(cluster.client)
        kubeconfig = Path(directory) / "kubeconfig"
        await cluster.write_kubeconfig(kubeconfig)
        async with _watched(cluster, kubeconfig) as stage:
            yield stage


@asynccontextmanager
async def _watched(cluster: SandboxCluster, kubeconfig: Path) -> AsyncIterator[Stage]:
    clock = SystemClock()
    timeline = Timeline(clock)
    observer = Observer(timeline)
    settings = RunSettings(policy_config_file=str(POLICY), kubeconfig=str(kubeconfig))
    policy = await read_policy(settings)
    pods = Mirror(cluster.client, "pods")
    async with await connect(settings.kubeconfig, clock=clock) as connection:
        daemon = Daemon(
            settings,
            policy,
            connection,
            clock=clock,
            random=Random(),
            priority_classes={},
            hooks=(observer,),
        )
        async with anyio.create_task_group() as watching, anyio.create_task_group() as working:
            watching.start_soon(pods.run)
            while not pods.version:
                await pods.next_change()
            pods.listeners.append(observer.on_pod)  # from here on: what is there is no news
            working.start_soon(daemon.run)
            while daemon.not_ready():  # noqa: ASYNC110 - readiness is asked for, as by a probe
                await anyio.sleep(_POLL_EVERY)
            yield Stage(
                client=cluster.client,
                pods=pods,
                daemon=daemon,
                timeline=timeline,
                kubeconfig=kubeconfig,
            )
            daemon.stop()
            watching.cancel_scope.cancel()


async def _furnish(client: ApiClient) -> None:
    nodes, _ = await client.list("nodes")
    for node in nodes[:_DISK_NODES]:
        patch = {"metadata": {"labels": {DISK_LABEL: "ssd"}}}
        await client.patch("nodes", name_of(node), patch)
    wanted = {"key": DISK_LABEL, "operator": "In", "values": ["ssd"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    affinity: JsonObject = {"affinity": {"nodeAffinity": required}}
    await create_sample_workloads(client, pod_specs={"api": affinity})
