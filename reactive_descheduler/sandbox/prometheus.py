"""What a Prometheus server and a node exporter answer, as far as tests need them.

`/metrics` is for a real Prometheus to scrape: usage by node, with the label `instance` set to the
node's name (scrape it with `honor_labels: true`). `/api/v1/query` answers as Prometheus itself
would; it knows no PromQL, only the names of what `/metrics` shows and what a test puts in.
"""

from __future__ import annotations

import hmac
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import anyio
import orjson
from aiohttp import web

from reactive_descheduler.sandbox.faults import Faults

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from reactive_descheduler.sandbox.documents import JsonObject
    from reactive_descheduler.sandbox.measurements import Measurements

QUERY_PATH = "/api/v1/query"
NODE_CPU = "sandbox_node_cpu_utilization"
NODE_MEMORY = "sandbox_node_memory_utilization"
_EXPOSED = {NODE_CPU: "cpu", NODE_MEMORY: "memory"}


@dataclass
class PrometheusServer:
    """A running one; faults go by the verb `get` or `create` (a POST) and the resource `query`."""

    url: str
    measurements: Measurements
    now: Callable[[], float]
    token: str | None = None
    """What queries must carry; None: anyone may ask."""
    values: dict[str, Mapping[str, float | str]] = field(default_factory=dict)
    """Answers by query: values by instance."""
    raw: bytes | None = None
    """Answer every query with these bytes."""
    methods: frozenset[str] = frozenset({"GET", "POST"})
    """Which methods a query may use."""
    faults: Faults = field(default_factory=Faults)
    asked: list[str] = field(default_factory=list)
    """Every query that was answered."""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        if request.path == "/metrics":
            return web.Response(text=self._exposition())
        if request.path != QUERY_PATH:
            return web.Response(status=404, text="404 page not found\n")
        if request.method not in self.methods:
            return web.Response(status=405)
        given = request.headers.get("Authorization", "")
        if self.token is not None and not hmac.compare_digest(given, f"Bearer {self.token}"):
            return web.Response(status=401, text="Unauthorized\n")
        fault = self.faults.strike("create" if request.method == "POST" else "get", "query")
        if fault is not None:
            await anyio.sleep(fault.latency)
            if fault.drop and request.transport is not None:
                request.transport.abort()
            if fault.status is not None:
                return web.Response(status=fault.status, text=fault.message)
        form = request.query if request.method == "GET" else await request.post()
        return self._answer(str(form.get("query", "")))

    def _answer(self, query: str) -> web.Response:
        self.asked.append(query)
        if self.raw is not None:
            return web.Response(body=self.raw, content_type="application/json")
        values = self.values.get(query)
        if values is None and query in _EXPOSED:
            values = self._measured(query)
        if values is None:
            error = f"the sandbox knows no query {query!r}"
            return _json({"status": "error", "errorType": "bad_data", "error": error}, 400)
        now = self.now()
        result = [
            {"metric": {"instance": instance}, "value": [now, str(value)]}
            for instance, value in values.items()
        ]
        return _json({"status": "success", "data": {"resultType": "vector", "result": result}})

    def _measured(self, name: str) -> dict[str, float | str]:
        utilization = self.measurements.utilization()
        return {
            node: parts[_EXPOSED[name]]
            for node, parts in utilization.items()
            if _EXPOSED[name] in parts
        }

    def _exposition(self) -> str:
        lines = []
        for name in _EXPOSED:
            lines.append(f"# TYPE {name} gauge")
            lines += [
                f'{name}{{instance="{node}"}} {value}'
                for node, value in self._measured(name).items()
            ]
        return "\n".join(lines) + "\n"


@asynccontextmanager
async def serve_prometheus(
    measurements: Measurements, *, token: str | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[PrometheusServer]:
    """Serve on a free port until the block ends."""
    prometheus = PrometheusServer("", measurements, measurements.registry.now, token)
    server = web.Server(prometheus.handle, handler_cancellation=True, access_log=None)
    runner = web.ServerRunner(server, shutdown_timeout=0.5)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, 0).start()
        prometheus.url = f"http://{host}:{cast(int, runner.addresses[0][1])}"
        yield prometheus
    finally:
        with anyio.CancelScope(shield=True):
            await runner.cleanup()


def _json(document: JsonObject, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(document), status=status, content_type="application/json")
