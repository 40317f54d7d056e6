"""A whole cluster in this process: the API server and what makes it live."""

from __future__ import annotations

import base64
import secrets
import string
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import anyio
import orjson
from anyio import to_thread

from reactive_descheduler.kit.clock import Clock, SystemClock
from reactive_descheduler.sandbox.apiserver.certificates import make_certificates
from reactive_descheduler.sandbox.apiserver.server import ApiServer
from reactive_descheduler.sandbox.budgets import BudgetController
from reactive_descheduler.sandbox.client import ApiClient, connect
from reactive_descheduler.sandbox.documents import is_ready
from reactive_descheduler.sandbox.faults import SPARED_USER_AGENT, Faults
from reactive_descheduler.sandbox.kubelet import Kubelet, Pace, make_node
from reactive_descheduler.sandbox.measurements import Measurements
from reactive_descheduler.sandbox.mirror import Mirrors
from reactive_descheduler.sandbox.nodes import NodeController
from reactive_descheduler.sandbox.scheduler import Scheduler
from reactive_descheduler.sandbox.workloads.daemon_sets import DaemonSetController
from reactive_descheduler.sandbox.workloads.deployments import DeploymentController
from reactive_descheduler.sandbox.workloads.garbage import GarbageCollector
from reactive_descheduler.sandbox.workloads.jobs import JobController
from reactive_descheduler.sandbox.workloads.replica_sets import ReplicaSetController
from reactive_descheduler.sandbox.workloads.stateful_sets import StatefulSetController

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable
    from pathlib import Path

    from anyio.abc import TaskGroup

    from reactive_descheduler.sandbox.documents import JsonObject

_HOST = "127.0.0.1"
_CONTEXT = "sandbox"
_POLL_EVERY = 0.02  # seconds


@dataclass(frozen=True)
class SandboxCluster:
    """A running sandbox. `ca_pem` and `token` are None where it speaks plain HTTP."""

    url: str
    ca_pem: bytes | None
    token: str | None
    client: ApiClient
    server: ApiServer
    measurements: Measurements
    """What its metrics API reports."""

    @property
    def faults(self) -> Faults:
        return self.server.faults

    def load(self, documents: Iterable[JsonObject]) -> None:
        """Bulk set-up past HTTP, before anyone watches: no watch events come of it."""
        self.server.load(documents)

    def compact(self) -> None:
        """Let everything that starts from an old version get 410."""
        self.server.compact()

    def kubeconfig(self) -> JsonObject:
        """A kubeconfig with the CA and the token inside."""
        cluster: JsonObject = {"server": self.url}
        if self.ca_pem is not None:
            cluster["certificate-authority-data"] = base64.b64encode(self.ca_pem).decode()
        context = {"cluster": _CONTEXT, "user": _CONTEXT, "namespace": "default"}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": _CONTEXT, "cluster": cluster}],
            "users": [{"name": _CONTEXT, "user": {"token": self.token} if self.token else {}}],
            "contexts": [{"name": _CONTEXT, "context": context}],
            "current-context": _CONTEXT,
        }

    async def write_kubeconfig(self, path: Path) -> None:
        """Write the kubeconfig as JSON, which is YAML too; only its owner may read it."""
        target = anyio.Path(path)
        await target.touch(mode=0o600)
        await target.write_bytes(orjson.dumps(self.kubeconfig(), option=orjson.OPT_INDENT_2))


@asynccontextmanager
async def running_sandbox(
    *,
    nodes: int = 0,
    zones: int = 2,
    controllers: bool = True,
    pace: Pace | None = None,
    port: int = 0,
    tls: bool = True,
    clock: Clock | None = None,
    random: Random | None = None,
    bookmark_every: float = 60.0,
    history: int = 4_000,
) -> AsyncIterator[SandboxCluster]:
    """Run a cluster until the block ends; its nodes `node-1`... are Ready when the block begins.

    Nodes are spread over the zones `zone-a`... in turn. Without `controllers` it is an API server
    alone: nothing is scheduled, started or removed by itself. `port` 0 takes a free one.
    `tls=False` is for tests on virtual time: no certificates, no token. `bookmark_every` is in
    seconds; `history` bounds the changes of each resource that watches can go back to.

    With controllers it holds a task group: enter and leave it in the same task.
    """
    now = _now_of(clock or SystemClock())
    token = secrets.token_urlsafe(24) if tls else None
    certificates = await to_thread.run_sync(make_certificates, _HOST, "localhost") if tls else None
    server = ApiServer(
        token=token, now=now, random=random, bookmark_every=bookmark_every, history=history
    )
    server.metrics_server = measurements = Measurements(server.registry)
    server_context = certificates.server_context if certificates else None
    client_context = certificates.client_context if certificates else None
    async with server.serve(host=_HOST, port=port, ssl_context=server_context) as bound:
        url = f"{'https' if tls else 'http'}://{_HOST}:{bound}"
        async with connect(
            url, token=token, ssl_context=client_context, user_agent=SPARED_USER_AGENT
        ) as client:
            ca_pem = certificates.ca_pem if certificates else None
            cluster = SandboxCluster(url, ca_pem, token, client, server, measurements)
            if not controllers:
                await _create_nodes(client, nodes, zones)
                yield cluster
                return
            async with anyio.create_task_group() as tasks:
                _start_controllers(tasks, client, now=now, pace=pace or Pace())
                await _create_nodes(client, nodes, zones)
                await _until_ready(client)
                yield cluster
                tasks.cancel_scope.cancel()


def _now_of(clock: Clock) -> Callable[[], float]:
    return lambda: clock.now().timestamp()


async def _create_nodes(client: ApiClient, count: int, zones: int) -> None:
    for number in range(count):
        zone = f"zone-{string.ascii_lowercase[number % zones]}"
        await client.create(make_node(f"node-{number + 1}", zone=zone))


async def _until_ready(client: ApiClient) -> None:
    while not all(map(is_ready, (await client.list("nodes"))[0])):  # noqa: ASYNC110 - over HTTP
        await anyio.sleep(_POLL_EVERY)


def _start_controllers(
    tasks: TaskGroup, client: ApiClient, *, now: Callable[[], float], pace: Pace
) -> None:
    mirrors = Mirrors(client)
    kubelet = Kubelet(client, mirrors, now=now, pace=pace)
    for controller in (
        Scheduler(client, mirrors),
        DeploymentController(client, mirrors, now=now),
        ReplicaSetController(client, mirrors, now=now),
        DaemonSetController(client, mirrors),
        StatefulSetController(client, mirrors),
        JobController(client, mirrors, now=now),
        GarbageCollector(client, mirrors),
        BudgetController(client, mirrors, now=now),
        NodeController(client, mirrors, now=now),
        kubelet,
    ):
        tasks.start_soon(controller.run)
    tasks.start_soon(kubelet.run_heartbeats)
    # Last: their first lists call the listeners, which need the controllers running.
    for mirror in mirrors.all():
        tasks.start_soon(mirror.run)
