"""The API server of a reported case: the sandbox's, with the rules and faults of the cases, and an
eye on every request."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random

import anyio
import orjson
from aiohttp import web
from anyio.abc import TaskGroup

from reactive_descheduler.kit.clock import Clock
from reactive_descheduler.sandbox.apiserver import eviction
from reactive_descheduler.sandbox.apiserver.requests import (
    Target,
    decode_body,
    parse_path,
    parse_query,
)
from reactive_descheduler.sandbox.apiserver.resources import (
    LEASES,
    NAMESPACES,
    PODS,
    RESOURCES,
    Resource,
)
from reactive_descheduler.sandbox.apiserver.server import ApiServer
from reactive_descheduler.sandbox.apiserver.status import ApiError, NotServed, success
from reactive_descheduler.sandbox.apiserver.store import Stored, StoredEvent, watch_line
from reactive_descheduler.sandbox.apiserver.watching import Watch
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    attach,
    controller_of,
    name_of,
    text,
    timestamp,
    uid_of,
)
from tests.reported.measuring import CaseMeasurements
from tests.reported.observing import Observation, Record

BOOKMARK_EVERY = 10.0
SEEN_AFTER = 1.0
"""Seconds from an accepted eviction until the watch shows it."""
GONE_AFTER = 30.0
"""Seconds from then until the Pod is gone."""
BY_KIND = {resource.kind: resource for resource in reversed(RESOURCES)}


@dataclass
class EvictionAnswer:
    """What evictions of a Pod ("*": of any) are answered, so many `times` or `until` a time."""

    pod: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, object] = field(default_factory=dict)
    latency: float = 0.0
    times: float = math.inf
    until: float = math.inf


@dataclass
class WatchAnswer:
    """What the next watch requests of a kind are answered."""

    status: int
    body: object = None
    chunked: bool = False
    times: float = 1


@dataclass
class Accepted:
    """A Pod as it was when its eviction was accepted."""

    pod: JsonObject
    is_back: bool = False


class OpenWatch(Watch):
    """A watch that can be put out of order."""

    kind: str
    authorization: str
    silent = False
    breaks = False

    def say(self, *lines: bytes) -> None:
        """Send lines more."""
        self._lines.extend(lines)
        self._filled.set()

    def end(self) -> None:
        """Let the server end the stream in good order."""
        self._failed = True
        self._filled.set()

    def break_off(self) -> None:
        """Let the connection end in the midst of a line."""
        self.breaks = True
        self.say(b'{"type":"MODIFIED","object":{"kind":')


class CaseServer(ApiServer):
    """Tells an observation of what it is asked, and misbehaves as a case wants it to.

    It has no streaming lists, as older servers have not, so that a list is always a request of its
    own. Events are taken and thrown away, whether their namespace is there or not.
    """

    def __init__(self, observation: Observation, tasks: TaskGroup, *, clock: Clock) -> None:
        """`tasks`: where what follows an accepted eviction runs."""
        super().__init__(
            now=lambda: clock.now().timestamp(), random=Random(1), bookmark_every=BOOKMARK_EVERY
        )
        self._observation = observation
        self._tasks = tasks
        self.metrics_server = self.measurements = CaseMeasurements(self.registry)
        self.open: list[OpenWatch] = []
        self.called: list[tuple[str, str]] = []
        """The different Pods for which an eviction was asked: UID, namespace/name."""
        self.accepted: dict[str, Accepted] = {}
        """By UID."""
        self.evictions: list[EvictionAnswer] = []
        self.watch_answers: dict[str, WatchAnswer] = {}
        self.list_answers: dict[str, JsonObject] = {}
        self.forbidden: set[tuple[str, str]] = set()
        """Verb and resource."""
        self._unsaid: dict[str, list[bytes]] = {}
        """Lines for the next watch of a kind."""
        self.mute: set[str] = set()
        """Kinds of which watches get no answer at all."""
        self.resets_left = 0.0
        self.resets_until = -math.inf
        self.registry.store.of(LEASES).listeners.add(self._on_lease)
        self.registry.store.of(NAMESPACES).objects.clear()  # the cluster is what the case says

    def authorize_only(self, token: str) -> None:
        """Refuse every other token from now on, and end its streams."""
        self.token = token
        for watch in self.open:
            if watch.authorization != f"Bearer {token}":
                watch.end()

    def say(self, kind: str, lines: Iterable[bytes]) -> None:
        """Send lines on the watches of a kind; where none is open now, on the next."""
        lines = list(lines)
        watches = [watch for watch in self.open if watch.kind == kind]
        for watch in watches:
            watch.say(*lines)
        if not watches:
            self._unsaid.setdefault(kind, []).extend(lines)

    def terminate(self, stored: Stored, *, by: float) -> None:
        """Show a Pod as terminating; `by` is when it will be gone, in seconds from now."""
        pod = stored.copy()
        metadata = attach(pod, "metadata")
        metadata["deletionTimestamp"] = timestamp(self.registry.now() + by)
        metadata["deletionGracePeriodSeconds"] = int(by)
        self.registry.store.put(PODS, pod)

    def pod(self, key: tuple[str, str], uid: str) -> Stored | None:
        """Return the Pod of this name if it is still the one with this UID."""
        stored = self.registry.store.of(PODS).objects.get(key)
        return stored if stored is not None and uid_of(stored.document) == uid else None

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._resets():
            _abort(request)
            return web.Response(status=503)
        record = self._noted(request)
        request["record"] = record
        try:
            response = await super()._handle(request)
            if record.get("code", response.status) is None:
                self._observation.complete(record, code=response.status)
            return response
        finally:
            if "until" in record:
                self._observation.complete(record, until=round(self._observation.at(), 6))

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        target = _target(request)
        if target is None:
            return await super()._answer(request)
        verb, kind = _verb(request, target), target.resource.kind
        if (verb, target.label) in self.forbidden:
            raise _forbidden(verb, target)
        if verb == "watch" and _is_streaming_list(request):
            raise ApiError(422, "sendInitialEvents is forbidden: streaming lists are not served")
        if verb == "list" and kind in self.list_answers:
            return _json(self.list_answers[kind])
        if target.subresource == "eviction":
            return await self._evict(request, target)
        if verb == "create" and kind == "Event":
            return _json(decode_body(await request.read(), request.content_type), 201)
        return await super()._answer(request)

    async def _evict(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        body = decode_body(await request.read(), request.content_type)
        answer = self._eviction_answer("/".join(target.key))
        if answer is not None:
            await anyio.sleep(answer.latency)
            if answer.status != 201:
                document = {**ApiError(answer.status, "injected fault").document(), **answer.body}
                return _json(document, answer.status, answer.headers)
        stored = eviction.permit(self.registry, target.key, body, dry_run=False)
        uid = uid_of(stored.document)
        if uid not in self.accepted:
            self.accepted[uid] = Accepted(stored.copy())
            self._tasks.start_soon(self._leave, target.key, uid)
        return _json(success(201), 201)

    async def _leave(self, key: tuple[str, str], uid: str) -> None:
        """Let an evicted Pod go, unless an event has done so meanwhile."""
        await anyio.sleep(SEEN_AFTER)
        if (stored := self.pod(key, uid)) is not None:
            self.terminate(stored, by=GONE_AFTER)
        await anyio.sleep(GONE_AFTER)
        if self.pod(key, uid) is not None:
            self.registry.store.remove(PODS, key)

    def _eviction_answer(self, pod: str) -> EvictionAnswer | None:
        now = self._observation.at()
        for answer in self.evictions:
            if answer.pod in ("*", pod) and answer.times > 0 and now < answer.until:
                answer.times -= 1
                return answer
        return None

    async def _watch(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        kind = target.resource.kind
        if kind in self.mute:
            await anyio.sleep_forever()
        if (answer := self._watch_answer(kind)) is not None:
            response = _json(answer.body if answer.body is not None else _status(answer.status))
            response.set_status(answer.status)
            if answer.chunked:
                response.enable_chunked_encoding()
            return response
        query = parse_query(target, request.query, watching=True)
        if kind in self.list_answers:  # its version is made up
            query = replace(query, version=self.registry.store.version)
        watch = OpenWatch(
            self.registry.store,
            target.resource,
            query,
            view=self._view(request, target),
            bookmark_every=BOOKMARK_EVERY,
            timeout=query.timeout or 1800.0,
        )
        watch.kind, watch.authorization = kind, request.headers.get("Authorization", "")
        return await self._stream(request, watch)

    async def _stream(self, request: web.BaseRequest, watch: OpenWatch) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        self.open.append(watch)
        watch.say(*self._unsaid.pop(watch.kind, ()))
        try:
            with suppress(ConnectionError):
                await response.prepare(request)
                self._observation.complete(request["record"], code=200)
                async for chunk in watch.chunks():
                    if watch.silent:
                        await anyio.sleep_forever()
                    await response.write(chunk)
                    if watch.breaks and request.transport is not None:
                        request.transport.close()
                        raise ConnectionResetError
                await response.write_eof()
        finally:
            self.open.remove(watch)
            watch.close()
        return response

    def _watch_answer(self, kind: str) -> WatchAnswer | None:
        answer = self.watch_answers.get(kind)
        if answer is None or answer.times <= 0:
            return None
        answer.times -= 1
        return answer

    def _resets(self) -> bool:
        if self.resets_left > 0:
            self.resets_left -= 1
            return True
        return self._observation.at() < self.resets_until

    def _noted(self, request: web.BaseRequest) -> Record:
        """Write the request down, if it is one to be observed."""
        target = _target(request)
        if target is None:
            return {}
        verb, kind = _verb(request, target), target.resource.kind
        if target.subresource == "eviction":
            return self._called(target)
        if verb == "list" and "continue" not in request.query:
            return self._observation.note("lists", kind=kind)
        if verb == "watch" and not _is_streaming_list(request):
            version = request.query.get("resourceVersion", "")
            return self._observation.note(
                "watches", kind=kind, version=version, code=None, until=None
            )
        return {}

    def _called(self, target: Target) -> Record:
        stored = self.registry.store.of(PODS).objects.get(target.key)
        document = stored.document if stored is not None else {}
        called = (uid_of(document), "/".join(target.key))
        if called not in self.called:
            self.called.append(called)
        owner = controller_of(document)
        return self._observation.note(
            "calls",
            pod="/".join(target.key),
            owner=f"{owner['kind']}/{owner['name']}" if owner else None,
            code=None,
        )

    def _on_lease(self, event: StoredEvent) -> None:
        holder = text(event.stored.document, "spec", "holderIdentity")
        before = event.previous.document if event.previous is not None else {}
        if holder != text(before, "spec", "holderIdentity"):
            self._observation.note("leaders", holder=holder)


def line_of(kind: str, document: object) -> bytes:
    """Return a line of a watch."""
    return watch_line(kind, orjson.dumps(document))


def listed(
    server: ApiServer, resource: Resource, items: Iterable[tuple[str, object]], version: str
) -> JsonObject:
    """Return a list of these objects, given as name and version each; what is known of them stays
    as it is."""
    found = []
    for name, own in items:
        namespace, _, last = name.rpartition("/")
        stored = server.registry.store.of(resource).objects.get((namespace, last))
        document: JsonObject = stored.copy() if stored is not None else {}
        attach(document, "metadata").update({"name": last})
        attach(document, "metadata")["resourceVersion"] = str(own)
        if namespace:
            attach(document, "metadata")["namespace"] = namespace
        found.append(document)
    return {
        "kind": f"{resource.kind}List",
        "apiVersion": resource.api_version,
        "metadata": {"resourceVersion": version},
        "items": sorted(found, key=name_of),
    }


def _target(request: web.BaseRequest) -> Target | None:
    try:
        return parse_path(request.path)
    except (ApiError, NotServed):
        return None


def _verb(request: web.BaseRequest, target: Target) -> str:
    if request.method != "GET":
        verbs = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
        return verbs.get(request.method, "")
    if target.name:
        return "get"
    return "watch" if request.query.get("watch") in ("true", "1") else "list"


def _is_streaming_list(request: web.BaseRequest) -> bool:
    return "sendInitialEvents" in request.query


def _forbidden(verb: str, target: Target) -> ApiError:
    what = "/".join(filter(None, (target.resource.plural, target.subresource)))
    place = f'in the namespace "{target.namespace}"' if target.namespace else "at the cluster scope"
    return ApiError(
        403,
        f'{what} is forbidden: User "descheduler" cannot {verb} resource "{what}" in API group'
        f' "{target.resource.group}" {place}',
    )


def _status(code: int) -> JsonObject:
    message = "too old resource version: 5 (9)" if code == 410 else "injected fault"
    return ApiError(code, message).document()


def _abort(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()


def _json(
    document: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    return web.Response(
        body=orjson.dumps(document) + b"\n",
        status=status,
        content_type="application/json",
        headers=headers,
    )
