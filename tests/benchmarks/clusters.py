"""The latency trial on a cluster whose API server and controllers are alive."""

from __future__ import annotations

import asyncio
import itertools
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.benchmarks.loopback_proxy import running_proxy
from tests.controlplane.cluster import missing_binaries, running
from tests.controlplane.credentials import write_kubeconfig
from tests.e2e.api import Api, connect, eventually, read_kubeconfig
from tests.e2e.objects import make_deployment, make_node

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.benchmarks.arrivals import Arrivals

NODE = "bench-1"
OTHER_NODE = "bench-2"
"""With a single node in the cluster nothing is ever evicted, as there is nowhere to go."""
KEY = "maintenance"
NAMESPACE = "default"
FILLER = "agent"
"""The app of the Pods that stay."""
TOLERATING_PODS = 100
"""On the node beside the Pod that has to go; 110 is all that a kubelet takes by default."""


class ClusterTrial:
    """One node; for each sample a ReplicaSet of its own, so that no limit per workload applies."""

    def __init__(self, api: Api, kubeconfig: Path, direct: Path) -> None:
        self.kubeconfig = kubeconfig
        self.direct = direct
        self._api = api
        self._names = (f"victim-{number}" for number in itertools.count())
        self._name = ""

    async def add_pod(self) -> str:
        """Create the next ReplicaSet and wait for its Pod."""
        self._name = next(self._names)
        victim = make_deployment(self._name, replicas=1, nodes=(NODE,), grace_seconds=0)
        await self._api.create(_collection("replicasets"), {**victim, "kind": "ReplicaSet"})
        await self._have(self._name, 1)
        (pod,) = await self._api.pods(NAMESPACE, self._name)
        return pod.metadata.name

    async def taint(self) -> None:
        """PATCH the node."""
        await self._api.taint(NODE, (KEY, "NoSchedule"))

    async def reset(self) -> None:
        """PATCH the node again, once the ReplicaSet is gone and its Pods with it."""
        path = f"{_collection('replicasets')}/{self._name}"
        await self._api.patch(path, {"spec": {"replicas": 0}})

        async def gone() -> bool:
            return not await self._api.pods(NAMESPACE, self._name)

        await eventually(gone, what=f"no Pod of {self._name}", within=20)
        await self._api.delete(path)
        await self._api.taint(NODE)

    async def fill(self) -> None:
        """Create the node, the Pods on it that tolerate the taint, and another node."""
        for node in (NODE, OTHER_NODE):
            await self._api.create("/api/v1/nodes", make_node(node))
        filler = make_deployment(FILLER, replicas=TOLERATING_PODS, nodes=(NODE,), tolerates=KEY)
        await self._api.create(_collection("deployments"), filler)
        await self._have(FILLER, TOLERATING_PODS)

    async def _have(self, app: str, replicas: int) -> None:
        async def available() -> bool:
            pods = await self._api.pods(NAMESPACE, app)
            return len(pods) == replicas and all(pod.available for pod in pods)

        await eventually(available, what=f"{replicas} of {app} available", within=60)


def _collection(resource: str) -> str:
    return f"/apis/apps/v1/namespaces/{NAMESPACE}/{resource}"


@asynccontextmanager
async def real_trial(arrivals: Arrivals, directory: Path) -> AsyncIterator[ClusterTrial]:
    """A fresh real control plane, kwok as the kubelet."""
    if missing := missing_binaries():
        sys.exit(f"not built: {', '.join(missing)}; run ./scripts/control-plane build")
    with running(directory / "control-plane") as plane:
        async with _trial(plane.kubeconfig(), arrivals, directory) as trial:
            yield trial


@asynccontextmanager
async def sandbox_trial(arrivals: Arrivals, directory: Path) -> AsyncIterator[ClusterTrial]:
    """The embedded cluster, in a process of its own, as the API server is one to the real proxy."""
    kubeconfig = directory / "sandbox.kubeconfig"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "reactive_descheduler", "sandbox"),
        *("--nodes", "0", "--kubeconfig-out", str(kubeconfig)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
    )

    async def serves() -> bool:
        if process.returncode is not None:
            raise RuntimeError(f"the sandbox ended with exit code {process.returncode}")
        return kubeconfig.exists() and kubeconfig.stat().st_size > 0

    try:
        await eventually(serves, what="the sandbox's kubeconfig", within=30)
        async with _trial(kubeconfig, arrivals, directory) as trial:
            yield trial
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


@asynccontextmanager
async def _trial(
    kubeconfig: Path, arrivals: Arrivals, directory: Path
) -> AsyncIterator[ClusterTrial]:
    access = read_kubeconfig(kubeconfig)
    authority = directory / "proxy-ca.crt"
    proxied = directory / "proxy.kubeconfig"
    async with (
        running_proxy(access, on_request=arrivals.note, authority=authority) as address,
        connect(access) as api,
    ):
        write_kubeconfig(proxied, server=address, token=access.token, authority=authority)
        trial = ClusterTrial(api, proxied, kubeconfig)
        await trial.fill()
        yield trial
