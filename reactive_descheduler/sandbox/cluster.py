"""A whole cluster in this process: the API server and what makes it live."""

from __future__ import annotations

import base64
import secrets
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import orjson

from reactive_descheduler.kit.clock import Clock, SystemClock
from reactive_descheduler.sandbox.apiserver.certificates import make_certificates
from reactive_descheduler.sandbox.apiserver.server import ApiServer
from reactive_descheduler.sandbox.client import ApiClient, connect
from reactive_descheduler.sandbox.faults import Faults

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from pathlib import Path

    from reactive_descheduler.sandbox.documents import JsonObject

_HOST = "127.0.0.1"
_CONTEXT = "sandbox"


@dataclass(frozen=True)
class SandboxCluster:
    """A running sandbox. `ca_pem` and `token` are None where it speaks plain HTTP."""

    url: str
    ca_pem: bytes | None
    token: str | None
    client: ApiClient
    server: ApiServer

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
    port: int = 0,
    tls: bool = True,
    clock: Clock | None = None,
    random: Random | None = None,
    bookmark_every: float = 60.0,
    history: int = 4_000,
) -> AsyncIterator[SandboxCluster]:
    """Run a cluster until the block ends.

    `port` 0 takes a free one. `tls=False` is for tests on virtual time: no certificates, no token.
    `bookmark_every` is in seconds; `history` bounds the versions that watches can go back to.
    """
    clock = clock or SystemClock()
    token = secrets.token_urlsafe(24) if tls else None
    certificates = (
        await anyio.to_thread.run_sync(make_certificates, _HOST, "localhost") if tls else None
    )
    server = ApiServer(
        token=token,
        now=lambda: clock.now().timestamp(),
        random=random,
        bookmark_every=bookmark_every,
        history=history,
    )
    server_context = certificates.server_context if certificates else None
    client_context = certificates.client_context if certificates else None
    async with server.serve(host=_HOST, port=port, ssl_context=server_context) as bound:
        url = f"{'https' if tls else 'http'}://{_HOST}:{bound}"
        async with connect(url, token=token, ssl_context=client_context) as client:
            ca_pem = certificates.ca_pem if certificates else None
            yield SandboxCluster(url, ca_pem, token, client, server)
