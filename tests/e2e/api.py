"""A small client of the Kubernetes API for tests: it shares no code with the program under test."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

import aiohttp
import msgspec
import yaml

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping

    Json = Mapping[str, object]

MERGE = "application/merge-patch+json"
CLOSING = 0.05
"""Seconds for the connections of watches that were cancelled: nobody tells when they are closed."""
TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=30)


class Meta(msgspec.Struct, rename="camel"):
    """What identifies an object, and what it says of itself."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}


class Condition(msgspec.Struct):
    """One condition of a status."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


class PodSpec(msgspec.Struct, rename="camel"):
    """Where a Pod is bound."""

    node_name: str = ""


class PodStatus(msgspec.Struct):
    """How a Pod is."""

    phase: str = ""
    conditions: list[Condition] = []


class Pod(msgspec.Struct):
    """As much of a Pod as the tests look at."""

    metadata: Meta
    spec: PodSpec
    status: PodStatus

    @property
    def node(self) -> str:
        """The node that it is bound to, or the empty string."""
        return self.spec.node_name

    @property
    def available(self) -> bool:
        """Ready, and not on its way out."""
        ready = any(
            each.type == "Ready" and each.status == "True" for each in self.status.conditions
        )
        return ready and self.metadata.deletion_timestamp is None

    @property
    def evicted(self) -> bool:
        """Asked to go by way of the eviction API, which leaves its mark on the Pod."""
        return any(
            each.type == "DisruptionTarget" and each.reason == "EvictionByEvictionAPI"
            for each in self.status.conditions
        )


class PodList(msgspec.Struct):
    """What a LIST of Pods answers."""

    items: list[Pod]


class ApiError(Exception):
    """The server answered something other than 2xx."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"{status}: {body}")
        self.status = status


class Api:
    """Requests to one API server as one user; paths as in the API's documentation."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def request(
        self, method: str, path: str, *, body: Json | None = None, content: str = "application/json"
    ) -> bytes:
        """Send one request; raises ApiError unless the answer is 2xx."""
        data = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": content}
        async with self._session.request(method, path, data=data, headers=headers) as response:
            answer = await response.read()
            if response.status >= 300:
                raise ApiError(response.status, answer.decode())
            return answer

    async def create(self, path: str, body: Json) -> None:
        """POST an object to its collection."""
        await self.request("POST", path, body=body)

    async def patch(self, path: str, body: Json) -> None:
        """Merge-patch an object."""
        await self.request("PATCH", path, body=body, content=MERGE)

    async def delete(self, path: str) -> None:
        """DELETE an object, or all of a collection."""
        await self.request("DELETE", path)

    async def pods(self, namespace: str, app: str) -> list[Pod]:
        """The Pods with the label app=`app`, terminating ones included."""
        path = f"/api/v1/namespaces/{namespace}/pods?labelSelector=app%3D{app}"
        return msgspec.json.decode(await self.request("GET", path), type=PodList).items

    async def lines(self, path: str) -> AsyncGenerator[bytes, None]:
        """The lines of a watch, until the server ends it; raises ApiError if it is refused."""
        async with self._session.get(path) as response:
            if response.status != 200:
                raise ApiError(response.status, await response.text())
            async for line in response.content:
                yield line

    async def taint(self, node: str, *taints: tuple[str, str]) -> None:
        """Set a node's taints, each (key, effect); none takes all away."""
        wanted = [{"key": key, "value": "test", "effect": effect} for key, effect in taints]
        await self.patch(f"/api/v1/nodes/{node}", {"spec": {"taints": wanted or None}})

    async def cordon(self, node: str, *, on: bool = True) -> None:
        """What `kubectl cordon` and `uncordon` do."""
        await self.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": on or None}})


@dataclass(frozen=True, slots=True)
class Access:
    """What a kubeconfig says: where, whom to trust, as whom."""

    server: str
    trust: ssl.SSLContext
    """Carries the client's certificate too, if there is one."""
    token: str
    """Empty where the certificate says who it is."""


def read_kubeconfig(path: Path) -> Access:
    """Read the first cluster and user of a kubeconfig: a token, or a client certificate.

    Raises ValueError if it has neither: programs and passwords are not supported.
    """
    document = yaml.safe_load(path.read_text())
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    with ExitStack() as stack:
        authority = _file(cluster, "certificate-authority", path.parent, stack)
        certificate = _file(user, "client-certificate", path.parent, stack)
        key = _file(user, "client-key", path.parent, stack)
        trust = ssl.create_default_context(cafile=authority)
        if certificate is not None:
            trust.load_cert_chain(certificate, key)
    token = user.get("token", "")
    if not token and certificate is None:
        raise ValueError(f"{path}: neither a token nor a client certificate")
    return Access(server=cluster["server"], trust=trust, token=token)


def _file(entry: Mapping[str, str], key: str, directory: Path, stack: ExitStack) -> Path | None:
    """The file that a kubeconfig names; or one of its embedded data, for as long as the stack."""
    if data := entry.get(f"{key}-data"):
        # Python's TLS takes keys from files only; nobody else can read a temporary one.
        file = stack.enter_context(NamedTemporaryFile())  # noqa: SIM115 - the stack closes it
        file.write(base64.b64decode(data))
        file.flush()
        return Path(file.name)
    return directory / entry[key] if entry.get(key) else None


@asynccontextmanager
async def connect(access: Access) -> AsyncIterator[Api]:
    """A client of one API server as one user."""
    async with aiohttp.ClientSession(
        access.server,
        headers={"Authorization": f"Bearer {access.token}"} if access.token else {},
        connector=aiohttp.TCPConnector(ssl=access.trust),
        timeout=TIMEOUT,
        read_bufsize=1 << 20,  # a watch line longer than twice this would be refused
    ) as session:
        yield Api(session)
    await asyncio.sleep(CLOSING)


async def eventually(check: Callable[[], Awaitable[bool]], *, what: str, within: float) -> None:
    """Ask ten times a second until true; raises TimeoutError naming `what` after `within` s."""
    try:
        async with asyncio.timeout(within):
            while not await check():  # noqa: ASYNC110 - only the server knows
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise TimeoutError(f"not within {within:.0f} s: {what}") from None
