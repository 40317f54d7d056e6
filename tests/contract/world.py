"""A namespace of a test's own on an API server, the sandbox's or a real one."""

from __future__ import annotations

import asyncio
import json
import secrets
import ssl
import urllib.request
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from reactive_descheduler.sandbox.client import ApiClient, ApiRefused, connect
from reactive_descheduler.sandbox.cluster import running_sandbox
from reactive_descheduler.sandbox.documents import JsonObject, name_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.controlplane.cluster import ControlPlane


@dataclass(frozen=True)
class Endpoint:
    """Where an API server is, and how to speak to it."""

    url: str
    ca_pem: str
    token: str
    forget_history: Callable[[], None]
    """Lets older versions be too old, at least for what is served without a cache: Events."""

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self.ca_pem)


@dataclass(frozen=True)
class World:
    """A namespace of the test's own, and short ways to fill it."""

    endpoint: Endpoint
    client: ApiClient
    namespace: str

    def unique(self, prefix: str) -> str:
        """A name for objects outside the namespace."""
        return f"{prefix}-{secrets.token_hex(4)}"

    async def pod(
        self, name: str, *, node: str = "", phase: str = "", ready: bool = True, app: str = "app"
    ) -> JsonObject:
        """A Pod; bound if a node is given, with a status if a phase is."""
        created = await self.client.create(make_pod(name, self.namespace, app=app))
        if node:
            await self.client.bind(created, node)
        if phase:
            conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
            await self.client.patch(
                "pods",
                name,
                {"status": {"phase": phase, "conditions": conditions}},
                namespace=self.namespace,
                subresource="status",
                kind="strategic",
            )
        return await self.client.get("pods", name, self.namespace)

    async def budget(
        self,
        name: str,
        *,
        allowed: int,
        healthy: int = 2,
        desired: int = 1,
        observed: bool = True,
        app: str = "app",
        policy: str = "",
    ) -> None:
        """A PodDisruptionBudget with a status as its controller would have written it."""
        spec: JsonObject = {"minAvailable": desired, "selector": {"matchLabels": {"app": app}}}
        if policy:
            spec["unhealthyPodEvictionPolicy"] = policy
        await self.client.create(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": spec,
            }
        )
        status = {
            "observedGeneration": int(observed),
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": healthy,
        }
        await self.client.patch(
            "poddisruptionbudgets",
            name,
            {"status": status},
            namespace=self.namespace,
            subresource="status",
        )

    async def evict(self, name: str, **options: object) -> JsonObject:
        """Evict with these delete options."""
        return await self.client.evict(name, namespace=self.namespace, options=options or None)

    async def is_there(self, name: str) -> bool:
        pods, _ = await self.client.list("pods", self.namespace)
        return name in map(name_of, pods)


def make_pod(name: str, namespace: str, *, app: str = "app") -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": app}},
        "spec": {"containers": [{"name": "main", "image": "example/image:1"}]},
    }


def endpoint_of(plane: ControlPlane) -> Endpoint:
    """Access to a real control plane, as its administrator."""
    ca_pem = (plane.directory / "ca.crt").read_text()
    return Endpoint(plane.server, ca_pem, plane.tokens["admin"], lambda: compact_etcd(plane))


def compact_etcd(plane: ControlPlane) -> None:
    """Let etcd forget all but the present."""
    arguments = plane.processes[0].args
    assert isinstance(arguments, list)
    option = "--advertise-client-urls="
    (url,) = (str(one).removeprefix(option) for one in arguments if str(one).startswith(option))
    revision = ask_etcd(f"{url}/v3/kv/range", {"key": "AA=="})["header"]["revision"]
    ask_etcd(f"{url}/v3/kv/compaction", {"revision": revision, "physical": True})


def ask_etcd(url: str, body: JsonObject) -> dict[str, dict[str, str]]:
    request = urllib.request.Request(url, data=json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=10) as response:
        return cast(dict[str, dict[str, str]], json.load(response))


@asynccontextmanager
async def sandbox_endpoint() -> AsyncIterator[Endpoint]:
    async with running_sandbox(controllers=False) as cluster:
        cluster.measurements.served = False  # the real one has no metrics-server either
        assert cluster.ca_pem is not None
        assert cluster.token is not None
        yield Endpoint(cluster.url, cluster.ca_pem.decode(), cluster.token, cluster.compact)


@asynccontextmanager
async def world_at(endpoint: Endpoint) -> AsyncIterator[World]:
    trust = await asyncio.to_thread(endpoint.trust)
    async with connect(endpoint.url, token=endpoint.token, ssl_context=trust) as client:
        name = f"contract-{secrets.token_hex(4)}"
        namespace: JsonObject = {"apiVersion": "v1", "kind": "Namespace"}
        await client.create(namespace | {"metadata": {"name": name}})
        # A real server admits no Pod before its namespace has this one.
        account: JsonObject = {"apiVersion": "v1", "kind": "ServiceAccount"}
        try:
            await client.create(account | {"metadata": {"name": "default", "namespace": name}})
        except ApiRefused as error:
            if error.code != 409:  # a controller was faster
                raise
        yield World(endpoint, client, name)
