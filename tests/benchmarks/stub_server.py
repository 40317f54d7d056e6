"""A stub API server: fixed lists, and watch streams into which the benchmark writes.

It has one node full of Pods that tolerate the taint, and an empty one. It decides nothing and
remembers nothing but the version counter, so that what is measured is the client.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from aiohttp import web

from tests.benchmarks.loopback_proxy import serving
from tests.controlplane.credentials import write_kubeconfig

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.benchmarks.arrivals import Arrivals

    Json = dict[str, object]

NODE = "node-1"
OTHER_NODE = "node-2"
"""With a single node in the cluster nothing is ever evicted, as there is nowhere to go."""
TOLERATING_PODS = 109
"""With the one that does not tolerate the taint, 110: what a kubelet takes by default."""
KEY = "maintenance"
CREATED = "2025-01-01T00:00:00Z"


class StubServer:
    """The handler of all requests, and the writer of watch lines."""

    def __init__(self) -> None:
        self._version = 1
        self._watches: dict[str, set[web.StreamResponse]] = {}
        self._opened = asyncio.Condition()
        self._objects: dict[str, list[Json]] = {
            "nodes": [self.node(tainted=False), self.node(OTHER_NODE, tainted=False)],
            "pods": [self.pod(f"agent-{at}", tolerates=True) for at in range(TOLERATING_PODS)],
            "namespaces": [self._object("v1", "Namespace", {"name": "default"})],
        }

    def node(self, name: str = NODE, *, tainted: bool) -> Json:
        """A node, as big as one of a real cluster (12 kB), with or without the taint."""
        images = [
            {"names": [f"registry.example.test/team/image-{at}@sha256:{at:064x}"], "sizeBytes": at}
            for at in range(60)
        ]
        room = {"cpu": "32", "memory": "64Gi", "pods": "110"}
        taints = [{"key": KEY, "value": "test", "effect": "NoSchedule"}] if tainted else []
        return self._object(
            "v1",
            "Node",
            {"name": name, "labels": {"kubernetes.io/hostname": name}},
            spec={"taints": taints},
            status={
                "capacity": room,
                "allocatable": room,
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": CREATED}],
                "images": images,
            },
        )

    def pod(self, name: str, *, tolerates: bool) -> Json:
        """A running Pod of a ReplicaSet of its own, so that no limit per workload applies."""
        owner = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": name,
            "uid": f"owner-{name}",
            "controller": True,
        }
        ready = [
            {"type": each, "status": "True", "lastTransitionTime": CREATED}
            for each in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        ]
        container = {"name": "main", "image": "example.test/none"}
        return self._object(
            "v1",
            "Pod",
            {
                "name": name,
                "namespace": "default",
                "labels": {"app": name},
                "ownerReferences": [owner],
                "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:padding": "x" * 3000}}],
            },
            spec={
                "nodeName": NODE,
                "containers": [container],
                "tolerations": [{"key": KEY, "operator": "Exists"}] if tolerates else [],
            },
            status={
                "phase": "Running",
                "startTime": CREATED,
                "conditions": ready,
                "containerStatuses": [
                    {**container, "ready": True, "restartCount": 0, "state": {"running": {}}}
                ],
            },
        )

    async def send(self, resource: str, line: bytes) -> None:
        """Write a watch line to all who watch a resource."""
        for stream in self._watches.get(resource, ()):
            await stream.write(line)

    async def watched(self, *resources: str) -> None:
        """Return once each of the resources is watched."""
        async with self._opened:
            await self._opened.wait_for(lambda: all(self._watches.get(each) for each in resources))

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a list, a watch, an eviction; what else is created is given back as it came."""
        resource = request.path.rsplit("/", 1)[-1]
        if request.method == "GET" and request.query.get("watch") in ("true", "1", "True"):
            return await self._watch(request, resource)
        if request.method == "GET":
            body: Json = {
                "apiVersion": "v1",
                "kind": "List",
                "metadata": {"resourceVersion": str(self._version)},
                "items": self._objects.get(resource, []),
            }
            return web.json_response(body)
        if resource == "eviction":
            success = {"apiVersion": "v1", "kind": "Status", "status": "Success", "code": 201}
            return web.json_response(success, status=201)
        return web.json_response(await request.json(), status=201)

    async def _watch(self, request: web.BaseRequest, resource: str) -> web.StreamResponse:
        if "sendInitialEvents" in request.query:  # the streaming list, which not every server has
            refusal = {"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 422}
            return web.json_response(refusal, status=422)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        streams = self._watches.setdefault(resource, set())
        streams.add(response)
        async with self._opened:
            self._opened.notify_all()
        try:
            await asyncio.Event().wait()  # until the client goes, which cancels this
        finally:
            streams.discard(response)
        return response

    def _object(self, version: str, kind: str, metadata: Json, **parts: object) -> Json:
        self._version += 1
        generated = {
            "uid": f"uid-{metadata['name']}",
            "resourceVersion": str(self._version),
            "creationTimestamp": CREATED,
        }
        return {"apiVersion": version, "kind": kind, "metadata": {**metadata, **generated}, **parts}


def _line(kind: str, changed: Json) -> bytes:
    return json.dumps({"type": kind, "object": changed}).encode() + b"\n"


class StubTrial:
    """The latency trial on a stub: lines written by hand."""

    def __init__(self, stub: StubServer, kubeconfig: Path) -> None:
        self.kubeconfig = self.direct = kubeconfig
        self._stub = stub
        self._names = (f"victim-{number}" for number in itertools.count())
        self._pod: Json = {}
        self._tainted = b""

    async def add_pod(self) -> str:
        """Say that a Pod was added, once Pods and nodes are watched.

        The line about the taint is made here: to make it is no part of its way.
        """
        await self._stub.watched("pods", "nodes")
        name = next(self._names)
        self._pod = self._stub.pod(name, tolerates=False)
        await self._stub.send("pods", _line("ADDED", self._pod))
        self._tainted = _line("MODIFIED", self._stub.node(tainted=True))
        return name

    async def taint(self) -> None:
        """Say that the node was tainted."""
        await self._stub.send("nodes", self._tainted)

    async def reset(self) -> None:
        """Say that the Pod is gone and the taint too."""
        await self._stub.send("pods", _line("DELETED", self._pod))
        await self._stub.send("nodes", _line("MODIFIED", self._stub.node(tainted=False)))


@asynccontextmanager
async def stub_trial(arrivals: Arrivals, directory: Path) -> AsyncIterator[StubTrial]:
    """Serve plain HTTP on loopback."""
    stub = StubServer()
    kubeconfig = directory / "stub.kubeconfig"
    async with serving(stub.handle, on_request=arrivals.note) as port:
        write_kubeconfig(kubeconfig, server=f"http://127.0.0.1:{port}", token="none")
        yield StubTrial(stub, kubeconfig)
