"""A cluster that lives: with controllers, scheduler and kubelet, the sandbox's or real ones."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from reactive_descheduler.sandbox.cluster import running_sandbox
from reactive_descheduler.sandbox.documents import integer, is_ready, mapping, objects
from reactive_descheduler.sandbox.kubelet import Pace, make_node
from reactive_descheduler.sandbox.sample import make_deployment
from tests.contract.world import Endpoint, World, world_at

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager
    from typing import TypeAlias

    from reactive_descheduler.sandbox.client import ApiClient
    from reactive_descheduler.sandbox.documents import JsonObject

    Opener: TypeAlias = Callable[[], AbstractAsyncContextManager["Live"]]


@dataclass(frozen=True)
class Live:
    """A namespace in a cluster that lives, and two nodes of its own for its Pods."""

    world: World
    nodes: tuple[str, str]

    @property
    def client(self) -> ApiClient:
        return self.world.client

    @property
    def here(self) -> JsonObject:
        """What ties Pods to these nodes."""
        return {"nodeSelector": {"contract": self.world.namespace}}

    async def deploy(self, name: str, replicas: int) -> None:
        """Create a Deployment and wait for its Pods."""
        namespace = self.world.namespace
        await self.client.create(
            make_deployment(name, replicas=replicas, namespace=namespace, pod_spec=self.here)
        )

        async def whole() -> bool:
            found = await self.client.get("deployments", name, namespace)
            return integer(found, "status", "availableReplicas") == replicas

        await eventually(whole)

    async def pods(self, app: str) -> list[JsonObject]:
        pods, _ = await self.client.list("pods", self.world.namespace, labelSelector=f"app={app}")
        return pods


@asynccontextmanager
async def live_in_sandbox() -> AsyncIterator[Live]:
    async with running_sandbox(pace=Pace(start=0.02, stop_cap=0.05)) as cluster:
        assert cluster.ca_pem is not None
        assert cluster.token is not None
        endpoint = Endpoint(cluster.url, cluster.ca_pem.decode(), cluster.token, cluster.compact)
        async with live_at(endpoint) as live:
            yield live


@asynccontextmanager
async def live_at(endpoint: Endpoint) -> AsyncIterator[Live]:
    async with world_at(endpoint) as world:
        first, second = world.unique("node"), world.unique("node")
        for name in (first, second):
            node = make_node(name, zone="z")
            mapping(node, "metadata", "labels")["contract"] = world.namespace
            await world.client.create(node)

        async def ready() -> bool:
            nodes = [await world.client.get("nodes", name) for name in (first, second)]
            return all(is_ready(n) and not objects(n, "spec", "taints") for n in nodes)

        await eventually(ready)
        try:
            yield Live(world, (first, second))
        finally:
            for name in (first, second):
                await world.client.delete("nodes", name)


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    with anyio.fail_after(40):
        while not await holds():  # noqa: ASYNC110 - the state is the server's
            await anyio.sleep(0.05)
