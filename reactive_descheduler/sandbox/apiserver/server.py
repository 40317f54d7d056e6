"""The API server: HTTP in, Status documents and objects out."""

from __future__ import annotations

import hmac
import logging
import random as random_module
import time
from contextlib import asynccontextmanager
from random import Random
from typing import TYPE_CHECKING, Protocol, cast

import anyio
import orjson
from aiohttp import web

from reactive_descheduler.api.errors import AddressError
from reactive_descheduler.sandbox.apiserver import (
    binding,
    discovery,
    eviction,
    openapi,
    reviews,
    scale,
)
from reactive_descheduler.sandbox.apiserver.event_forms import (
    CORE_EVENTS,
    NEW_EVENTS,
    stored_as,
    to_stored,
)
from reactive_descheduler.sandbox.apiserver.lists import list_objects
from reactive_descheduler.sandbox.apiserver.options import check_write_options
from reactive_descheduler.sandbox.apiserver.patches import check_patch_type
from reactive_descheduler.sandbox.apiserver.registry import Registry
from reactive_descheduler.sandbox.apiserver.requests import (
    Target,
    decode_body,
    decode_json,
    not_allowed,
    parse_path,
    parse_query,
)
from reactive_descheduler.sandbox.apiserver.resources import BY_KIND, MEASURED, PODS
from reactive_descheduler.sandbox.apiserver.status import (
    ApiError,
    NotServed,
    not_found,
    success,
)
from reactive_descheduler.sandbox.apiserver.validation import check_new_event
from reactive_descheduler.sandbox.apiserver.views import View, WholeView, choose_view
from reactive_descheduler.sandbox.apiserver.watching import Watch
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    strings,
    text,
    timestamp,
    uid_of,
)
from reactive_descheduler.sandbox.faults import SPARED_USER_AGENT, Fault, Faults

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Iterable

    from reactive_descheduler.sandbox.apiserver.resources import Resource
    from reactive_descheduler.sandbox.apiserver.store import Stored

log = logging.getLogger(__name__)

_OPEN_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version"})
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class MetricsServer(Protocol):
    """What answers in place of the API server where something is measured."""

    @property
    def served(self) -> bool: ...

    def documents(self, resource: Resource) -> list[Stored]: ...


class ApiServer:
    """An API server in this process.

    `token` is the bearer token that every request must carry (None: anyone may). `bookmark_every`
    is in seconds; watches without a timeout of their own end after 30 to 60 minutes.
    """

    def __init__(
        self,
        *,
        token: str | None = None,
        now: Callable[[], float] = time.time,
        random: Random | None = None,
        faults: Faults | None = None,
        bookmark_every: float = 60.0,
        history: int = 4_000,
    ) -> None:
        self.token = token
        self.faults = faults or Faults()
        self._random = random or Random(random_module.getrandbits(64))
        self.registry = Registry(now=now, random=self._random, history=history)
        self._bookmark_every = bookmark_every
        self.metrics_server: MetricsServer | None = None

    def load(self, documents: Iterable[JsonObject]) -> None:
        """Bulk set-up that bypasses HTTP: objects are stored as given, uid and time added.

        Only before anyone watches: no watch events come of it.
        """
        for document in documents:
            resource = BY_KIND[text(document, "apiVersion"), text(document, "kind")]
            metadata = cast(JsonObject, document["metadata"])
            if resource.namespaced:
                metadata.setdefault("namespace", "default")
            metadata.setdefault("uid", self.registry.random_uid())
            metadata.setdefault("creationTimestamp", timestamp(self.registry.now()))
            self.registry.store.load(resource, document)

    def compact(self) -> None:
        """Forget the history: watches that reconnect and lists being paged get 410."""
        self.registry.store.compact()

    @asynccontextmanager
    async def serve(
        self, *, host: str = "127.0.0.1", port: int = 0, ssl_context: ssl.SSLContext | None = None
    ) -> AsyncIterator[int]:
        """Listen until the block ends; gives the port. Open watches are cut at the end.

        Raises AddressError if the port cannot be had.
        """
        server = web.Server(self._handle, handler_cancellation=True, access_log=None)
        runner = web.ServerRunner(server, shutdown_timeout=0.5)
        await runner.setup()
        site = web.TCPSite(runner, host, port, ssl_context=ssl_context)
        try:
            try:
                await site.start()
            except OSError as error:
                raise AddressError(host, port, error) from error
            yield cast(int, runner.addresses[0][1])
        finally:
            with anyio.CancelScope(shield=True):
                self.faults.cut_watches(spared=True)
                await runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            self._authenticate(request)
            return await self._answer(request)
        except ApiError as error:
            return _failure(error)
        except Exception:
            log.exception("Request failed")
            return _failure(ApiError(500, "Internal error occurred"))

    def _authenticate(self, request: web.BaseRequest) -> None:
        if self.token is None or request.path in _OPEN_PATHS:
            return
        given = request.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self.token}".encode()):
            raise ApiError(401, "Unauthorized")

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if path in _OPEN_PATHS and path != "/version":
            return web.Response(text="ok")
        if discovery.is_discovery(path):
            measured = self.metrics_server is not None and self.metrics_server.served
            return _json(orjson.dumps(discovery.discover(path, measured=measured)))
        if openapi.is_openapi(path):
            return _json(orjson.dumps(openapi.describe(path)))
        if reviews.is_review(path):
            question = decode_body(await request.read(), request.content_type)
            return _json(orjson.dumps(reviews.answer(path, question)), 201)
        target = parse_path(path)
        verb = _verb(request, target)
        body = await request.read()
        fault = None if _is_spared(request) else self.faults.strike(verb, target.label)
        if fault is not None:
            await _suffer(fault, request)
        if target.resource in MEASURED:
            response = self._measured(request, verb, target)
        elif verb == "watch":
            return await self._watch(request, target)
        else:
            response = self._act(request, verb, target, body)
        if fault is not None and fault.drop == "after":
            _abort(request)
        return response

    def _act(
        self, request: web.BaseRequest, verb: str, target: Target, body: bytes
    ) -> web.StreamResponse:
        """One request, in one synchronous step."""
        if target.subresource in ("binding", "eviction"):
            act = eviction.evict if target.subresource == "eviction" else binding.bind
            document = decode_body(body, request.content_type)
            act(self.registry, target.key, document, dry_run=_is_dry_run(request))
            return _json(orjson.dumps(success(201)), 201)
        if verb == "patch":
            check_patch_type(request.content_type)
        check_write_options(verb, request.query, {})
        if target.subresource == "scale":
            return self._scale(request, verb, target, body)
        match verb:
            case "list":
                return self._list(request, target)
            case "delete" | "deletecollection":
                return self._delete(request, verb, target, body)
        return self._write(request, verb, target, body)

    def _write(
        self, request: web.BaseRequest, verb: str, target: Target, body: bytes
    ) -> web.StreamResponse:
        dry_run = _is_dry_run(request)
        status_only = target.subresource == "status"
        resource, registry = stored_as(target.resource), self.registry
        match verb:
            case "get":
                stored = registry.get(resource, target.key)
            case "create":
                document = _decode_object(request, target, body)
                stored = registry.create(resource, target.namespace, document, dry_run=dry_run)
            case "update":
                stored = registry.update(
                    resource,
                    target.key,
                    _decode_object(request, target, body),
                    status_only=status_only,
                    dry_run=dry_run,
                )
            case _:
                patch = decode_json(body)
                if isinstance(patch, dict):
                    patch = to_stored(target.resource, patch)
                stored = registry.patch(
                    resource,
                    target.key,
                    patch,
                    content_type=request.content_type,
                    status_only=status_only,
                    dry_run=dry_run,
                )
        return _json(self._view(request, target).one(stored), 201 if verb == "create" else 200)

    def _scale(
        self, request: web.BaseRequest, verb: str, target: Target, body: bytes
    ) -> web.StreamResponse:
        document = scale.scale(
            self.registry,
            target.resource,
            target.key,
            verb=verb,
            body=decode_json(body) if body else {},
            content_type=request.content_type,
        )
        return _json(orjson.dumps(document))

    def _list(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        query = parse_query(target, request.query)
        items, metadata = list_objects(self.registry.store, stored_as(target.resource), query)
        return _json(self._view(request, target).many(items, metadata))

    def _measured(self, request: web.BaseRequest, verb: str, target: Target) -> web.StreamResponse:
        if self.metrics_server is None or not self.metrics_server.served:
            raise NotServed
        if verb not in ("get", "list"):
            raise not_allowed()
        found = self.metrics_server.documents(target.resource)
        view = self._view(request, target)
        if verb == "list":
            query = parse_query(target, request.query)
            return _json(view.many([each for each in found if query.matches(each.document)], {}))
        for each in found:
            if each.key == target.key:
                return _json(view.one(each))
        raise not_found(target.resource, target.name)

    def _view(self, request: web.BaseRequest, target: Target) -> View:
        accept, include = request.headers.get("Accept", ""), request.query.get("includeObject", "")
        return choose_view(target.resource, accept, now=self.registry.now(), include=include)

    def _delete(
        self, request: web.BaseRequest, verb: str, target: Target, body: bytes
    ) -> web.StreamResponse:
        resource, registry = stored_as(target.resource), self.registry
        options = _delete_options(request, body)
        check_write_options(verb, request.query, options)
        dry_run = _is_dry_run(request) or "All" in strings(options, "dryRun")
        if verb == "deletecollection":
            query = parse_query(target, request.query)
            items, metadata = list_objects(registry.store, resource, query)
            for item in items:
                registry.delete(resource, item.key, options, dry_run=dry_run)
            return _json(WholeView(resource).many(items, metadata))
        stored, gone = registry.delete(resource, target.key, options, dry_run=dry_run)
        if resource is PODS or not gone:
            return _json(stored.raw)
        details: JsonObject = {"name": target.name, "kind": resource.plural}
        if resource.group:
            details["group"] = resource.group
        details["uid"] = uid_of(stored.document)
        return _json(orjson.dumps(success(200, details)))

    async def _watch(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        query = parse_query(target, request.query, watching=True)
        timeout = query.timeout or self._random.uniform(1_800, 3_600)
        watch = Watch(
            self.registry.store,
            target.resource,
            query,
            view=self._view(request, target),
            bookmark_every=self._bookmark_every,
            timeout=timeout,
        )
        name = target.resource.qualified
        spared = _is_spared(request)
        unregister = self.faults.register_watch(name, lambda: _abort(request), spared=spared)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        try:
            await response.prepare(request)
            async for chunk in watch.chunks():
                if not spared:
                    await self.faults.until_audible(name)
                await response.write(chunk)
            await response.write_eof()
        except ConnectionError:
            log.debug("Watch closed by its client")
        finally:
            unregister()
            watch.close()
        return response


def _verb(request: web.BaseRequest, target: Target) -> str:
    """Raises ApiError 405 for a method that the target does not take."""
    method, in_collection = request.method, not target.name
    acts = target.subresource in ("binding", "eviction")
    if method == "GET" and not acts:
        if not in_collection:
            return "get"
        return "watch" if request.query.get("watch") in ("true", "1") else "list"
    verb = _VERBS.get(method)
    if verb is None or (verb == "create") is not (in_collection or acts):
        if method != "DELETE" or not in_collection:
            raise not_allowed()
        verb = "deletecollection"
    if target.resource.namespaced and not target.namespace:
        raise not_allowed()
    return verb


def _is_spared(request: web.BaseRequest) -> bool:
    return request.headers.get("User-Agent") == SPARED_USER_AGENT


def _is_dry_run(request: web.BaseRequest) -> bool:
    return "All" in request.query.getall("dryRun", [])


def _decode_object(request: web.BaseRequest, target: Target, body: bytes) -> JsonObject:
    document = to_stored(target.resource, decode_body(body, request.content_type))
    if target.resource is NEW_EVENTS:
        check_new_event(CORE_EVENTS, document)
    return document


def _delete_options(request: web.BaseRequest, body: bytes) -> JsonObject:
    options = decode_body(body, request.content_type) if body else {}
    if "gracePeriodSeconds" in request.query:
        options["gracePeriodSeconds"] = int(request.query["gracePeriodSeconds"])
    return options


async def _suffer(fault: Fault, request: web.BaseRequest) -> None:
    if fault.latency:
        await anyio.sleep(fault.latency)
    if fault.drop == "before":
        _abort(request)
        raise ApiError(503, "the connection was closed by a fault")
    if fault.status is not None:
        details: JsonObject = {}
        if fault.retry_after:
            details["retryAfterSeconds"] = fault.retry_after
        raise ApiError(fault.status, fault.message, reason=fault.reason, details=details)


def _abort(request: web.BaseRequest) -> None:
    """Close the connection without another byte, not even TLS's farewell."""
    if request.transport is not None:
        request.transport.abort()


def _failure(error: ApiError) -> web.Response:
    if isinstance(error, NotServed):
        return web.Response(text=error.text, status=error.code)
    response = _json(orjson.dumps(error.document()), error.code)
    if error.retry_after:
        response.headers["Retry-After"] = str(error.retry_after)
    return response


def _json(body: bytes, status: int = 200) -> web.Response:
    return web.Response(body=body + b"\n", status=status, content_type="application/json")
