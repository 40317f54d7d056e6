"""The whole daemon over a sandbox API server in this process, on the clock of the test."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import cast

import anyio

from reactive_descheduler.app.daemon import Daemon
from reactive_descheduler.app.policy_file import PolicyFile
from reactive_descheduler.app.settings import RunSettings
from reactive_descheduler.client.credentials import Target
from reactive_descheduler.client.events import Regarding
from reactive_descheduler.client.kube import connect
from reactive_descheduler.config.feature_gates import FeatureGates
from reactive_descheduler.kit.clock import LoopClock
from reactive_descheduler.sandbox.client import ApiClient
from reactive_descheduler.sandbox.cluster import SandboxCluster, running_sandbox
from reactive_descheduler.sandbox.faults import Fault, Faults
from tests.builders import Manifest, make_namespace, make_node, make_pod, taint

START = datetime(2026, 1, 1, tzinfo=UTC)

TAINTS = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: default
  plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaints]}}
"""
AT_ONCE = "reactive: {settle: {default: 0s}, debounce: {quiet: 0s}, resync: 10h}\n"
"""No debounce, no settle time, and no resync that could hide a missed change."""


def life_time(seconds: int) -> str:
    return f"""
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: default
  pluginConfig:
  - name: PodLifeTime
    args: {{maxPodLifeTimeSeconds: {seconds}}}
  plugins: {{deschedule: {{enabled: [PodLifeTime]}}}}
reactive: {{debounce: {{quiet: 0s}}, resync: 10h}}
"""


class Here:
    """Credentials of a server that asks for none."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def load(self) -> Target:
        return Target(self._url, None)

    async def authorization(self) -> str | None:
        return None


class PolicyText:
    """A policy file in memory."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.error: OSError | None = None

    async def read(self) -> bytes:
        if self.error is not None:
            raise self.error
        return self.text.encode()


@dataclass
class World:
    cluster: SandboxCluster
    daemon: Daemon
    clock: LoopClock
    requests: Fault
    """Covers every eviction request and changes nothing; it counts them."""
    ended: anyio.Event
    file: PolicyText

    @property
    def client(self) -> ApiClient:
        return self.cluster.client

    @property
    def faults(self) -> Faults:
        return self.cluster.faults

    async def live(self) -> None:
        """Return once the daemon works."""
        await eventually(lambda: not self.daemon.not_ready())

    async def end(self) -> None:
        """Stop the daemon and return when it has ended."""
        self.daemon.stop()
        await self.ended.wait()

    async def rest(self, seconds: float = 3.0) -> None:
        """Let what is under way come to its end."""
        await anyio.sleep(seconds)

    async def taint(self, node: str = "node-1", key: str = "dedicated") -> None:
        await self.client.patch("nodes", node, {"spec": {"taints": [taint(key)]}})

    async def untaint(self, node: str = "node-1") -> None:
        await self.client.patch("nodes", node, {"spec": {"taints": []}})

    async def leaving(self) -> set[str]:
        """Return the names of the Pods that are terminating."""
        pods, _ = await self.client.list("pods")
        metas = [cast(Manifest, pod["metadata"]) for pod in pods]
        return {str(meta["name"]) for meta in metas if meta.get("deletionTimestamp")}

    async def remove(self, name: str) -> None:
        """Let a Pod end, as a kubelet would."""
        await self.client.delete("pods", name, namespace="default", grace=0)

    def fault(self, fault: Fault) -> Fault:
        """Put a fault in force before those that are."""
        self.faults.active.insert(0, fault)
        return fault

    def answers(self) -> list[tuple[str, str]]:
        """Return Pod and answer of the last requests, in order."""
        outcomes = cast(list[Mapping[str, object]], self.status()["recentOutcomes"])
        return [
            (str(each["pod"]).removeprefix("default/"), str(each["answer"])) for each in outcomes
        ]

    def status(self) -> Mapping[str, object]:
        return self.daemon.status.snapshot()

    def closed(self) -> str:
        """Return which gate holds everything."""
        closed = self.status()["closed"]
        return str(cast(Mapping[str, object], closed)["by"]) if closed else ""

    def held(self) -> dict[str, str]:
        """Return the gate that holds each candidate, by the name of its Pod."""
        held = cast(list[Mapping[str, object]], self.status()["held"])
        return {str(each["pod"]).removeprefix("default/"): str(each["by"]) for each in held}

    def metric(self, name: str, **labels: str) -> float:
        """Return the sum of a metric's samples that carry these labels."""
        family = getattr(self.daemon.metrics, name)
        return math.fsum(
            sample.value
            for metric in family.collect()
            for sample in metric.samples
            if not sample.name.endswith("_created") and labels.items() <= sample.labels.items()
        )


async def eventually(holds: Callable[[], bool], *, within: float = 30.0) -> None:
    """Wait until it holds, on the clock of the test."""
    with anyio.fail_after(within):
        while not holds():  # noqa: ASYNC110 - the state is the daemon's
            await anyio.sleep(0.01)


def small_cluster() -> list[Manifest]:
    """Two nodes; `a` and `b` on the first, `c` on the second; `b` tolerates everything."""
    tolerant = [{"operator": "Exists"}]
    return [
        make_namespace(),
        make_node("node-1"),
        make_node("node-2"),
        make_pod("a", node="node-1"),
        make_pod("b", node="node-1", tolerations=tolerant),
        make_pod("c", node="node-2"),
    ]


@asynccontextmanager
async def world(
    policy: str = TAINTS + AT_ONCE,
    objects: Iterable[Manifest] | None = None,
    *,
    faults: Iterable[Fault] = (),
    dry_run: bool = False,
    grace_period: float = 25.0,
    feature_gates: FeatureGates = frozenset(),
    own_pod: Regarding | None = None,
) -> AsyncIterator[World]:
    """Run the daemon until the block ends; it is stopped in good order."""
    clock = LoopClock(START)
    text = PolicyText(policy)
    file = PolicyFile(text.read, source="policy.yaml", corrections=None, clock=clock)
    loaded = await file.load()
    async with running_sandbox(tls=False, controllers=False, clock=clock) as cluster:
        cluster.load(deepcopy(list(objects)) if objects is not None else small_cluster())
        for fault in faults:
            cluster.faults.add(fault)
        requests = cluster.faults.add(Fault(verb="create", resource="pods/eviction"))
        async with await connect(source=Here(cluster.url), clock=clock) as connection:
            daemon = Daemon(
                RunSettings(
                    policy_config_file="policy.yaml",
                    dry_run=dry_run,
                    grace_period=grace_period,
                    feature_gates=feature_gates,
                ),
                loaded,
                connection,
                clock=clock,
                random=Random(1),
                priority_classes={},
                policy_file=file,
                own_pod=own_pod,
            )
            ended = anyio.Event()

            async def run() -> None:
                await daemon.run()
                ended.set()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run)
                yield World(cluster, daemon, clock, requests, ended, text)
                daemon.stop()
