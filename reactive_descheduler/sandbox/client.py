"""The sandbox's own API client: what its controllers and its set-up code speak HTTP with."""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import aiohttp
import orjson

from reactive_descheduler.sandbox.apiserver.resources import BY_KIND, BY_PLURAL
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    integer,
    name_of,
    namespace_of,
    objects,
    text,
)

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, AsyncIterator

PatchKind: TypeAlias = Literal["merge", "json", "strategic"]
_PATCH_TYPES: dict[PatchKind, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}


class ApiRefused(Exception):
    """The API server answered with a Status that is no success."""

    def __init__(
        self,
        code: int,
        status: JsonObject,
        *,
        retry_after: str | None = None,
        by_http: bool = True,
    ) -> None:
        super().__init__(f"{code} {text(status, 'reason')}: {text(status, 'message')}")
        self.code = code
        self.status = status
        self.retry_after = retry_after
        self.by_http = by_http
        """False for an ERROR event within a watch."""


class ApiClient:
    """A thin client: resources by their plural name, objects as plain documents.

    Every call raises ApiRefused for an answer of 400 and above, aiohttp.ClientError and
    TimeoutError if there is none.
    """

    def __init__(
        self, session: aiohttp.ClientSession, url: str, *, token: str | None, user_agent: str
    ) -> None:
        self._session = session
        self._url = url
        self._headers = {"User-Agent": user_agent}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: dict[str, str] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> JsonObject:
        """One request and its decoded answer."""
        headers = self._headers | {"Content-Type": content_type, "Accept": accept}
        data = None if body is None else orjson.dumps(body)
        async with self._session.request(
            method, self._url + path, data=data, params=query, headers=headers
        ) as response:
            content = await response.read()
            if response.status >= 400:
                retry_after = response.headers.get("Retry-After")
                raise ApiRefused(response.status, _status(content), retry_after=retry_after)
            return cast(JsonObject, orjson.loads(content))

    async def get(self, plural: str, name: str, namespace: str = "") -> JsonObject:
        return await self.request("GET", BY_PLURAL[plural].path(namespace, name))

    async def list(
        self, plural: str, namespace: str = "", **query: str
    ) -> tuple[list[JsonObject], str]:
        """The objects, in one page, and the version of the list."""
        resource = BY_PLURAL[plural]
        answer = await self.request("GET", resource.path(namespace), query=query)
        # The items of a list leave these out.
        type_meta: JsonObject = {"kind": resource.kind, "apiVersion": resource.api_version}
        items = [type_meta | item for item in objects(answer, "items")]
        return items, text(answer, "metadata", "resourceVersion")

    async def create(self, document: JsonObject) -> JsonObject:
        """Create an object; its kind and namespace ("default" if none) tell where."""
        resource = BY_KIND[text(document, "apiVersion"), text(document, "kind")]
        path = resource.path(namespace_of(document) or "default")
        return await self.request("POST", path, body=document)

    async def replace(self, document: JsonObject, *, subresource: str = "") -> JsonObject:
        """PUT an object back; its resourceVersion guards against lost updates."""
        resource = BY_KIND[text(document, "apiVersion"), text(document, "kind")]
        path = resource.path(namespace_of(document), name_of(document), subresource)
        return await self.request("PUT", path, body=document)

    async def patch(
        self,
        plural: str,
        name: str,
        patch: object,
        *,
        namespace: str = "",
        subresource: str = "",
        kind: PatchKind = "merge",
    ) -> JsonObject:
        path = BY_PLURAL[plural].path(namespace, name, subresource)
        return await self.request("PATCH", path, body=patch, content_type=_PATCH_TYPES[kind])

    async def delete(
        self,
        plural: str,
        name: str,
        *,
        namespace: str = "",
        grace: int | None = None,
        uid: str = "",
    ) -> JsonObject:
        """Delete an object; `grace` in seconds, `uid` as a precondition."""
        options: JsonObject = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        if uid:
            options["preconditions"] = {"uid": uid}
        path = BY_PLURAL[plural].path(namespace, name)
        return await self.request("DELETE", path, body=options)

    async def evict(
        self, name: str, *, namespace: str = "default", options: JsonObject | None = None
    ) -> JsonObject:
        """POST an Eviction; `options` are its deleteOptions."""
        body: JsonObject = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
        }
        if options is not None:
            body["deleteOptions"] = options
        path = BY_PLURAL["pods"].path(namespace, name, "eviction")
        return await self.request("POST", path, body=body)

    async def bind(self, pod: JsonObject, node: str) -> None:
        """Assign a Pod to a node."""
        body: JsonObject = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name_of(pod), "uid": text(pod, "metadata", "uid")},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        path = BY_PLURAL["pods"].path(namespace_of(pod), name_of(pod), "binding")
        await self.request("POST", path, body=body)

    async def watch(
        self, plural: str, version: str, namespace: str = "", **query: str
    ) -> AsyncGenerator[tuple[str, JsonObject]]:
        """The types and objects of watch events after a version, until the server ends the watch.

        An ERROR event raises ApiRefused.
        """
        query = {"watch": "true", "resourceVersion": version} | query
        path = BY_PLURAL[plural].path(namespace)
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.get(
            self._url + path, params=query, headers=self._headers, timeout=timeout
        ) as response:
            if response.status >= 400:
                raise ApiRefused(response.status, _status(await response.read()))
            try:
                async with aclosing(_events(response)) as events:
                    async for event in events:
                        yield event
            finally:
                # TLS's farewell would outlive the session, and with it a test's event loop.
                if response.connection is not None and response.connection.transport is not None:
                    response.connection.transport.abort()


async def _events(response: aiohttp.ClientResponse) -> AsyncGenerator[tuple[str, JsonObject]]:
    tail = b""
    async for block in response.content.iter_any():
        *lines, tail = (tail + block).split(b"\n")
        for line in lines:
            event = orjson.loads(line)
            document = cast(JsonObject, event["object"])
            if event["type"] == "ERROR":
                raise ApiRefused(integer(document, "code"), document, by_http=False)
            yield event["type"], document


def _status(content: bytes) -> JsonObject:
    """The Status in an answer; real servers answer unknown groups with mere text."""
    try:
        return cast(JsonObject, orjson.loads(content))
    except orjson.JSONDecodeError:
        return {"message": content.decode(errors="replace")}


@asynccontextmanager
async def connect(
    url: str,
    *,
    token: str | None = None,
    ssl_context: ssl.SSLContext | None = None,
    user_agent: str = "sandbox-client",
) -> AsyncIterator[ApiClient]:
    """A client on a connection pool of its own."""
    connector = aiohttp.TCPConnector(limit=0, ssl=ssl_context if ssl_context else True)
    async with aiohttp.ClientSession(connector=connector) as session:
        yield ApiClient(session, url, token=token, user_agent=user_agent)
