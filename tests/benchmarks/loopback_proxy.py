"""A proxy on loopback in front of an API server, which sees each request before the server does.

It forwards everything as it is, watch streams too, each piece of them at once.
"""

from __future__ import annotations

import ssl
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import aiohttp
import trustme
from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from tests.e2e.api import Access

HOP_BY_HOP = {"connection", "content-length", "host", "keep-alive", "transfer-encoding", "upgrade"}
"""Headers that speak of one connection only."""


class Proxy:
    """The handler of all requests."""

    def __init__(
        self, session: aiohttp.ClientSession, on_request: Callable[[str, str], None]
    ) -> None:
        self._session = session
        self._on_request = on_request

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Tell of the request's method and path, then pass it and its answer on."""
        self._on_request(request.method, request.path)
        async with self._session.request(
            request.method,
            request.rel_url,
            headers=_end_to_end(request.headers),
            data=await request.read() if request.can_read_body else None,
        ) as answer:
            response = web.StreamResponse(status=answer.status, headers=_end_to_end(answer.headers))
            await response.prepare(request)
            with suppress(ConnectionResetError):  # the client is gone, and so is its watch
                async for piece in answer.content.iter_any():
                    await response.write(piece)
            return response


def _end_to_end(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers.items() if name.lower() not in HOP_BY_HOP]


@asynccontextmanager
async def running_proxy(
    access: Access, *, on_request: Callable[[str, str], None], authority: Path
) -> AsyncIterator[str]:
    """Serve HTTPS in front of an API server; gives its address; its CA goes to `authority`."""
    issuer = trustme.CA()
    issuer.cert_pem.write_to_path(authority)
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    issuer.issue_cert("127.0.0.1").configure_cert(served)
    async with aiohttp.ClientSession(
        access.server,
        connector=aiohttp.TCPConnector(ssl=access.trust, limit=0),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
        auto_decompress=False,
    ) as session:
        application = web.Application(client_max_size=1 << 24)
        application.router.add_route("*", "/{path:.*}", Proxy(session, on_request).handle)
        async with serving(application, tls=served) as port:
            yield f"https://127.0.0.1:{port}"


@asynccontextmanager
async def serving(
    application: web.Application, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Serve an application on a free port of loopback; gives the port.

    At the end, streams that are still open are cut off at once.
    """
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()
