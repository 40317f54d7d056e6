"""A proxy on loopback in front of an API server, which sees each request before the server does.

It forwards everything as it is, watch streams too, each piece of them at once.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import aiohttp
import trustme
from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from pathlib import Path

    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.http_parser import RawRequestMessage
    from aiohttp.web_protocol import RequestHandler

    from tests.e2e.api import Access

HOP_BY_HOP = {"connection", "content-length", "host", "keep-alive", "transfer-encoding", "upgrade"}
"""Headers that speak of one connection only."""
LARGEST_BODY = 1 << 24
"""Bytes of a request."""


class Proxy:
    """The handler of all requests."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Pass the request and its answer on."""
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
        handle = Proxy(session).handle
        async with serving(handle, on_request=on_request, tls=served) as port:
            yield f"https://127.0.0.1:{port}"


@asynccontextmanager
async def serving(
    handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
    *,
    on_request: Callable[[str, str], None],
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    """Serve on a free port of loopback; gives the port.

    `on_request` is told of each request's method and path once its head is read: what it takes to
    find and start a handler is no part of its way here. At the end, streams that are still open are
    cut off at once.
    """

    def arrived(
        message: RawRequestMessage,
        payload: aiohttp.StreamReader,
        protocol: RequestHandler,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> web.BaseRequest:
        on_request(message.method, message.url.path)
        loop = asyncio.get_running_loop()
        return web.BaseRequest(
            message, payload, protocol, writer, task, loop, client_max_size=LARGEST_BODY
        )

    # Streams end with their client: without that, who waits for one to end is never done.
    server = web.Server(handle, request_factory=arrived, handler_cancellation=True, access_log=None)
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()
