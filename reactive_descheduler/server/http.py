"""The one listener of the process: `/metrics`, `/livez`, `/readyz`, `/healthz`, `/status`.

HTTPS without authentication, as upstream; what it shows is no secret, and it takes no orders.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import anyio.to_thread
from aiohttp import web

from reactive_descheduler.api.errors import AddressError
from reactive_descheduler.observability.metrics import CONTENT_TYPE, Metrics, render_process
from reactive_descheduler.server.health import Health
from reactive_descheduler.server.status import Snapshot, render

DEFAULT_HOST = "0.0.0.0"
DEFAULT_PORT = 10258
"""Upstream's, so that probes and scrape settings go on working."""
GRACE = 2.0
"""Seconds that requests under way have at the end; a scrape takes a fraction of one."""


class Endpoints(NamedTuple):
    """What is served."""

    health: Health
    snapshot: Snapshot
    metrics: Metrics | None
    """None: no `/metrics` (`--disable-metrics`)."""


@asynccontextmanager
async def serve(
    endpoints: Endpoints,
    *,
    host: str = DEFAULT_HOST,
    port: int = DEFAULT_PORT,
    tls: ssl.SSLContext | None,
) -> AsyncIterator[str]:
    """Serve until the block is left, and give the URL that it listens on.

    Port 0 takes a free one. `tls` None: plain HTTP. Raises AddressError if nothing can listen
    there.
    """
    runner = web.AppRunner(_application(endpoints), access_log=None, shutdown_timeout=GRACE)
    await runner.setup()
    try:
        await _listen(web.TCPSite(runner, host, port, ssl_context=tls), host, port)
        bound_host, bound_port, *_ = runner.addresses[0]
        shown = f"[{bound_host}]" if ":" in bound_host else bound_host
        yield f"{'https' if tls else 'http'}://{shown}:{bound_port}"
    finally:
        await runner.cleanup()


async def _listen(site: web.TCPSite, host: str, port: int) -> None:
    try:
        await site.start()
    except OSError as error:
        raise AddressError(host, port, error) from error


def _application(endpoints: Endpoints) -> web.Application:
    pages = _Pages(endpoints.health, endpoints.snapshot)
    application = web.Application()
    for path in ("/livez", "/readyz", "/healthz"):
        application.router.add_get(path, pages.probe)
    application.router.add_get("/status", pages.status)
    if endpoints.metrics is not None:
        application.router.add_get("/metrics", _Scrape(endpoints.metrics).metrics)
    return application


class _Pages:
    def __init__(self, health: Health, snapshot: Snapshot) -> None:
        self._health = health
        self._snapshot = snapshot

    async def probe(self, request: web.Request) -> web.StreamResponse:
        """`ok`, or 503 with a line a check. `?verbose` gives the lines in any case,
        `?exclude=NAME` (repeatable) leaves a check out."""
        report = self._health.ask(
            request.path.strip("/"), exclude=request.query.getall("exclude", [])
        )
        long = "verbose" in request.query or not report.well
        return web.Response(
            text=report.text() if long else "ok",
            status=200 if report.well else 503,
            headers={"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"},
        )

    async def status(self, _: web.Request) -> web.StreamResponse:
        return web.Response(
            body=render(self._snapshot()),
            content_type="application/json",
            headers={"Cache-Control": "no-store"},
        )


class _Scrape:
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    async def metrics(self, _: web.Request) -> web.StreamResponse:
        # Read in the loop, where what is read stands still; rendered beside it, since thousands of
        # series take longer than the loop may stand.
        self._metrics.refresh()
        text = await anyio.to_thread.run_sync(self._render)
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE})

    def _render(self) -> bytes:
        return self._metrics.render() + render_process()
