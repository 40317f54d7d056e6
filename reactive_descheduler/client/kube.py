"""The connection to the API server: one pool, credentials that renew themselves, errors of ours."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from types import TracebackType
from typing import NamedTuple, Self

import aiohttp
import orjson
from yarl import URL

from reactive_descheduler.api.errors import AmbiguousError, Unreachable
from reactive_descheduler.client.credentials import Credentials, LibrarySource, Source, Target
from reactive_descheduler.client.statuses import read_status
from reactive_descheduler.kit.clock import Clock, SystemClock

Params = Mapping[str, str | int]

READ_BUFFER = 512 * 1024
"""Bytes that may wait unread on a connection: a quarter fewer wake-ups than aiohttp's 64 KiB."""
CONNECT_TIMEOUT = 10.0
REQUEST_TIMEOUT = 60.0
"""Seconds for one whole request that names no other time; the API server ends its own at 60."""
UNAUTHORIZED = 401
SAFE_METHODS = frozenset({"GET", "HEAD"})
USER_AGENT = "reactive-descheduler"

CONNECT_ERRORS = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientProxyConnectionError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
)
"""Raised before a byte of the request was sent."""


class Response(NamedTuple):
    """An answer, read to its end. Headers are looked up without regard to case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def raise_for_status(self) -> None:
        """Raise ApiStatusError, or ExpiredError for a 410, unless it is a success."""
        if not self.ok:
            raise read_status(self.status, self.headers, self.body).error()


class KubeConnection:
    """Requests to one API server. An async context manager; close it once its users have ended.

    Raises Unreachable where the target's address is none.

    A 401 makes it read the credentials anew and send the request once more, since a request that
    was refused so was not carried out. Nothing else is retried here.
    """

    def __init__(self, target: Target, credentials: Credentials) -> None:
        self._target = target
        self._base = _parsed(target.url)
        self._credentials = credentials
        # The dispatcher and the number of watches bound the connections. A limit here would only
        # make a request wait where its time is already running.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=target.tls or False),
            read_bufsize=READ_BUFFER,
            headers={"Accept": "application/json", "User-Agent": USER_AGENT},
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    @property
    def url(self) -> str:
        return self._target.url

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every connection."""
        await self._session.close()

    async def get(
        self, path: str, params: Params | None = None, *, within: float = REQUEST_TIMEOUT
    ) -> Response:
        return await self.request("GET", path, params=params, within=within)

    async def post(
        self,
        path: str,
        body: object,
        params: Params | None = None,
        *,
        within: float = REQUEST_TIMEOUT,
    ) -> Response:
        return await self.request("POST", path, body=body, params=params, within=within)

    async def put(self, path: str, body: object, *, within: float = REQUEST_TIMEOUT) -> Response:
        return await self.request("PUT", path, body=body, within=within)

    async def patch(
        self,
        path: str,
        body: object,
        *,
        media_type: str = "application/merge-patch+json",
        within: float = REQUEST_TIMEOUT,
    ) -> Response:
        return await self.request("PATCH", path, body=body, media_type=media_type, within=within)

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        params: Params | None = None,
        media_type: str = "application/json",
        within: float = REQUEST_TIMEOUT,
    ) -> Response:
        """Send one request and read its answer, whatever its status.

        `within`: seconds for all of it, the connecting, the answer and a renewal of credentials.
        Raises Unreachable if nothing was sent or the method only reads; AmbiguousError if another
        method was sent and no answer came. (Where the connection goes before an answer, aiohttp
        sends a GET or PUT once more; a PUT with a resourceVersion is then answered with 409.)
        """
        data = None if body is None else orjson.dumps(body)
        try:
            async with await self._exchange(
                method, path, params=params, data=data, media_type=media_type, within=within
            ) as answer:
                return Response(answer.status, answer.headers, await answer.read())
        except CONNECT_ERRORS as error:
            raise self._unreachable(error) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if method in SAFE_METHODS:
                raise self._unreachable(error) from error
            raise AmbiguousError(f"no answer to {method} {path}: {_text(error)}") from error

    @asynccontextmanager
    async def stream(self, path: str, params: Params) -> AsyncIterator[aiohttp.StreamReader]:
        """Open a GET that goes on for ever, and give its body; no time limit but the caller's.

        Raises Unreachable when the connection is lost, also while the caller reads; ApiStatusError
        or ExpiredError if the answer is no success.
        """
        try:
            async with await self._exchange("GET", path, params=params, within=None) as answer:
                if answer.status != 200:
                    body = await answer.read()
                    raise read_status(answer.status, answer.headers, body).error()
                try:
                    yield answer.content
                finally:
                    # Not drained: a watch has no end to wait for.
                    answer.close()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._unreachable(error) from error

    async def _exchange(
        self,
        method: str,
        path: str,
        *,
        within: float | None,
        params: Params | None = None,
        data: bytes | None = None,
        media_type: str = "",
    ) -> aiohttp.ClientResponse:
        """Send, and once more with fresh credentials if the answer is 401.

        The caller leaves the answer as a context. What does not change from request to request is
        not made anew: this is on the way of every eviction.
        """
        # Our paths consist of names that need no quoting, which to find out takes long.
        url = self._base.with_path(self._base.raw_path.rstrip("/") + path, encoded=True)
        headers = {"Content-Type": media_type} if data is not None else {}
        for last in (False, True):
            token = await self._credentials.current()
            if token is not None:
                headers["Authorization"] = token
            answer = await self._session.request(
                method,
                url,
                params=params,
                data=data,
                headers=headers,
                timeout=_limits(within),
                allow_redirects=False,
                proxy=self._target.proxy,
                server_hostname=self._target.server_name,
            )
            if answer.status != UNAUTHORIZED or last:
                break
            try:
                renewed = await self._credentials.renew(token)
            except BaseException:
                answer.close()
                raise
            if not renewed:
                break
            answer.release()
        return answer

    def _unreachable(self, error: BaseException) -> Unreachable:
        unreachable = Unreachable(f"{self._target.url}: {_text(error)}")
        if isinstance(error, aiohttp.ClientConnectorCertificateError | ssl.SSLError):
            unreachable.hint = (
                "the server's certificate does not fit: check certificate-authority and server "
                "in the kubeconfig"
            )
        elif isinstance(error, aiohttp.ClientConnectorError):
            unreachable.hint = "is the address right, and the API server running?"
        return unreachable


def _parsed(url: str) -> URL:
    try:
        return URL(url)
    except ValueError as error:
        unreachable = Unreachable(f"{url}: {error}")
        unreachable.hint = "is the address right?"
        raise unreachable from error


@cache
def _limits(within: float | None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=within, sock_connect=CONNECT_TIMEOUT)


def _text(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return str(error) or "no answer in time"
    return str(error) or type(error).__name__


async def connect(
    kubeconfig: str | None = None,
    *,
    context: str | None = None,
    clock: Clock | None = None,
    source: Source | None = None,
) -> KubeConnection:
    """Read the configuration and return a connection that is ready for use; nothing is sent yet.

    `kubeconfig` None: $KUBECONFIG, ~/.kube/config or the Pod's own service account, the first that
    exists. `source` replaces all of that. Raises Unreachable, with a hint, if none can be used.
    """
    source = source or LibrarySource(kubeconfig, context)
    return KubeConnection(await source.load(), Credentials(source, clock or SystemClock()))
