"""An API server that behaves, and misbehaves on cue.

Left alone it lists in pages, watches from a version, and evicts. Whatever stands in one of the
scripts (`watches`, `lists`, `evictions`, ...) is given instead, each once, in order.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from aiohttp import web

Manifest = dict[str, Any]
Name = tuple[str, str]

PATHS = {
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/pods",
    "Namespace": "/api/v1/namespaces",
    "PodDisruptionBudget": "/apis/policy/v1/poddisruptionbudgets",
    "PersistentVolumeClaim": "/api/v1/persistentvolumeclaims",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
}
KINDS = {path: kind for kind, path in PATHS.items()}


class Answer(NamedTuple):
    """A whole answer."""

    status: int
    body: bytes
    headers: Mapping[str, str] = {}


class Then(Enum):
    """What follows the chunks of a stream."""

    END = "end"
    CUT = "cut"
    """The connection is reset."""
    HANG = "hang"
    """Not another byte, and no end."""


class Stream(NamedTuple):
    """A 200 whose body comes in chunks; `delay` seconds lie between them."""

    chunks: Sequence[bytes] = ()
    then: Then = Then.END
    delay: float = 0.0


class Drop(NamedTuple):
    """The connection goes before any answer, `after` seconds late."""

    after: float = 0.0


Plain = Answer | Stream | Drop


class Meanwhile(NamedTuple):
    """Something that happens in the cluster just before the answer."""

    action: Callable[[], None]
    then: Plain


Script = Plain | Meanwhile


def json_of(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def status_body(code: int, reason: str, message: str, **details: object) -> bytes:
    document = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": details,
        "code": code,
    }
    return json_of(document)


def failure(code: int, reason: str, message: str, *, after: int | None = None) -> Answer:
    """An answer with a Status; `after` becomes its Retry-After header."""
    headers = {} if after is None else {"Retry-After": str(after)}
    return Answer(code, status_body(code, reason, message), headers)


def line(event: str, manifest: Mapping[str, object]) -> bytes:
    return json_of({"type": event, "object": manifest}) + b"\n"


def error_line(code: int, reason: str, message: str) -> bytes:
    return b'{"type":"ERROR","object":' + status_body(code, reason, message) + b"}\n"


def bookmark_line(kind: str, version: int | str, *, ends_list: bool = False) -> bytes:
    metadata: Manifest = {"resourceVersion": str(version), "creationTimestamp": None}
    if ends_list:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return line("BOOKMARK", {"kind": kind, "apiVersion": "v1", "metadata": metadata})


class Seen(NamedTuple):
    """A request as it came."""

    method: str
    path: str
    query: Mapping[str, str]
    token: str
    media_type: str
    encodings: str
    """What it takes compressed."""
    body: Any

    @property
    def watching(self) -> bool:
        return "watch" in self.query


@dataclass
class ApiServer:
    """The server's state. Tests change it through `put`, `delete` and the scripts."""

    url: str = ""
    version: int = 100
    token: str = "first"
    streaming: bool = False
    """Serves streaming lists."""
    objects: dict[str, dict[Name, Manifest]] = field(default_factory=dict)
    history: dict[str, list[tuple[int, bytes]]] = field(default_factory=dict)
    oldest: int = 0
    """Watches from before this version are answered with 410."""
    requests: list[Seen] = field(default_factory=list)
    open: dict[str, list[asyncio.Queue[bytes | None]]] = field(default_factory=dict)
    watches: dict[str, deque[Script]] = field(default_factory=dict)
    lists: dict[str, deque[Script]] = field(default_factory=dict)
    posts: deque[Script] = field(default_factory=deque)
    """For all requests that change something, evictions and Events alike."""
    gets: deque[Script] = field(default_factory=deque)
    _snapshots: dict[str, tuple[int, list[Manifest]]] = field(default_factory=dict)
    """What the pages of the latest list of each kind show, at which version."""
    connections: Callable[[], int] = lambda: 0
    """How many connections are open."""

    def put(self, manifest: Mapping[str, Any], *, event: str = "") -> Manifest:
        """Create or change an object, and tell the watches."""
        kind = manifest["kind"]
        self.version += 1
        metadata = dict(manifest["metadata"]) | {"resourceVersion": str(self.version)}
        stored: Manifest = dict(manifest) | {"metadata": metadata}
        name = (metadata.get("namespace", ""), metadata["name"])
        known = self.objects.setdefault(kind, {})
        self._tell(kind, line(event or ("MODIFIED" if name in known else "ADDED"), stored))
        known[name] = stored
        return stored

    def delete(self, kind: str, namespace: str, name: str, *, quietly: bool = False) -> None:
        """`quietly`: no watch hears of it, not even later."""
        gone = self.objects[kind].pop((namespace, name))
        self.version += 1
        gone["metadata"]["resourceVersion"] = str(self.version)
        if not quietly:
            self._tell(kind, line("DELETED", gone))

    def bookmark(self, kind: str) -> None:
        self._tell(kind, bookmark_line(kind, self.version))

    def cut_watches(self, kind: str) -> None:
        """Reset the connections of all open watches."""
        for queue in self.open.get(kind, []):
            queue.put_nowait(None)

    def script_watch(self, kind: str, *steps: Script) -> None:
        self.watches.setdefault(kind, deque()).extend(steps)

    def script_list(self, kind: str, *steps: Script) -> None:
        self.lists.setdefault(kind, deque()).extend(steps)

    def lists_seen(self, kind: str) -> int:
        """How many lists were begun."""
        return sum(
            each.path == PATHS[kind]
            and "continue" not in each.query
            and (not each.watching or "sendInitialEvents" in each.query)
            for each in self.requests
        )

    def watches_seen(self, kind: str) -> list[Seen]:
        return [
            each
            for each in self.requests
            if each.path == PATHS[kind] and each.watching and "sendInitialEvents" not in each.query
        ]

    def _tell(self, kind: str, text: bytes) -> None:
        self.history.setdefault(kind, []).append((self.version, text))
        for queue in self.open.get(kind, []):
            queue.put_nowait(text)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.requests.append(
            Seen(
                request.method,
                request.path,
                dict(request.query),
                token,
                request.content_type,
                request.headers.get("Accept-Encoding", ""),
                json.loads(body) if body else None,
            )
        )
        if token != self.token:
            return await self._play(request, failure(401, "Unauthorized", "Unauthorized"))
        if request.method in ("POST", "PUT", "PATCH"):
            script = self.posts.popleft() if self.posts else Answer(201, b'{"status":"Success"}')
            return await self._play(request, script)
        kind = KINDS.get(request.path)
        if kind is None:
            script = self.gets.popleft() if self.gets else failure(404, "NotFound", "not found")
            return await self._play(request, script)
        initial = "sendInitialEvents" in request.query
        script_of = self.watches if "watch" in request.query and not initial else self.lists
        if script_of.get(kind):
            return await self._play(request, script_of[kind].popleft())
        if "watch" in request.query:
            return await self._watch(request, kind)
        return await self._list(request, kind)

    async def _list(self, request: web.Request, kind: str) -> web.StreamResponse:
        token = request.query.get("continue")
        if token is None or kind not in self._snapshots:
            self._snapshots[kind] = (self.version, list(self.objects.get(kind, {}).values()))
        version, items = self._snapshots[kind]
        start = int(token or 0)
        end = start + int(request.query["limit"])
        metadata: Manifest = {"resourceVersion": str(version)}
        if end < len(items):
            metadata["continue"] = str(end)
        body = {"kind": f"{kind}List", "metadata": metadata, "items": items[start:end]}
        return await self._play(request, Answer(200, json_of(body)))

    async def _watch(self, request: web.Request, kind: str) -> web.StreamResponse:
        initial = "sendInitialEvents" in request.query
        if initial and not self.streaming:
            refusal = failure(422, "Invalid", "sendInitialEvents is forbidden for watch")
            return await self._play(request, refusal)
        since = self.version if initial else int(request.query["resourceVersion"])
        if since < self.oldest:
            gone = failure(410, "Expired", f"too old resource version: {since}")
            return await self._play(request, gone)
        response = await self._start(request)
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.open.setdefault(kind, []).append(queue)
        try:
            if initial:
                for each in list(self.objects.get(kind, {}).values()):
                    await response.write(line("ADDED", each))
                await response.write(bookmark_line(kind, self.version, ends_list=True))
            for version, past in list(self.history.get(kind, [])):
                if version > since:
                    await response.write(past)
            while (text := await queue.get()) is not None:
                await response.write(text)
        finally:
            self.open[kind].remove(queue)
        assert request.transport is not None
        request.transport.abort()
        return response

    async def _play(self, request: web.Request, script: Script) -> web.StreamResponse:
        match script:
            case Answer(status, body, headers):
                return web.Response(
                    status=status, body=body, headers=dict(headers), content_type="application/json"
                )
            case Drop(after):
                await asyncio.sleep(after)
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            case Stream(chunks, ending, delay):
                return await self._stream(request, chunks, ending, delay)
            case Meanwhile(action, then):
                action()
                return await self._play(request, then)

    async def _stream(
        self, request: web.Request, chunks: Sequence[bytes], then: Then, delay: float
    ) -> web.StreamResponse:
        response = await self._start(request)
        for chunk in chunks:
            await response.write(chunk)
            await asyncio.sleep(delay)
        if then is Then.HANG:
            await asyncio.sleep(3600)
        if then is Then.CUT:
            assert request.transport is not None
            request.transport.abort()
        return response

    async def _start(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        return response


@asynccontextmanager
async def serving(tls: ssl.SSLContext | None = None) -> AsyncIterator[ApiServer]:
    """Run a server on loopback."""
    scheme = "http" if tls is None else "https"
    server = ApiServer()
    app = web.Application(client_max_size=2**24)
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        host, port = runner.addresses[0][:2]
        server.url = f"{scheme}://{host}:{port}"
        web_server = runner.server
        assert web_server is not None
        server.connections = lambda: len(web_server.connections)
        yield server
    finally:
        await runner.cleanup()
