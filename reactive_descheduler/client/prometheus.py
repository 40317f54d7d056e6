"""Instant queries to a Prometheus server, and the token that proves who asks.

One connection for each query: there is one every few seconds, and so nothing has to be closed, and
a token or a certificate authority that was changed is in use with the next.
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path
from urllib.request import getproxies_environment, proxy_bypass

import aiohttp
import anyio
import msgspec
import orjson
from anyio.to_thread import run_sync
from yarl import URL

from reactive_descheduler.api.errors import AnswerError, ApiStatusError, Unreachable
from reactive_descheduler.client.kube import CONNECT_TIMEOUT, USER_AGENT, KubeConnection

QUERY_WITHIN = 30.0
"""Seconds for a query, from connecting to the last byte."""
TOKEN_KEY = "prometheusAuthToken"
"""In the data of the Secret, as upstream has it."""
SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where a Pod finds its own token and its cluster's certificate authority."""
_TRY_GET = frozenset({HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED})
_DENIED = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})

Token = Callable[[], Awaitable[str | None]]
"""Reads the bearer token anew; None sends none. Raises ClientError if there should be one."""


class _Data(msgspec.Struct, rename="camel"):
    result_type: str = ""
    result: msgspec.Raw = msgspec.Raw(b"[]")


class _Answer(msgspec.Struct, rename="camel"):
    status: str = ""
    data: _Data | None = None
    error_type: str = ""
    error: str = ""


class _Sample(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class NoVectorError(AnswerError):
    """Raised when the query gives something else than a vector of numbers."""


class PrometheusClient:
    """Asks one server."""

    def __init__(self, url: str, token: Token, *, account: str = SERVICE_ACCOUNT) -> None:
        """`url`: with a path where the server has a prefix. `account`: the folder in which the
        cluster's certificate authority is. Nothing is sent yet."""
        self._given = url
        self._url = _endpoint(url)
        self._token = token
        self._authority = Path(account) / "ca.crt"
        self._tls: ssl.SSLContext | None = None

    @property
    def place(self) -> str:
        """The server, without what is secret in its URL."""
        if self._url is None:
            return self._given
        return str(self._url.parent.parent.parent.with_user(None)).rstrip("/")

    async def query(self, query: str) -> list[tuple[dict[str, str], float]]:
        """Return the vector that a query gives now: labels and value of each sample.

        The server says when now is, since the two clocks may differ. Raises Unreachable,
        ApiStatusError, AnswerError, or NoVectorError where the query is to blame.
        """
        status, body = await self._ask(query)
        try:
            answer = msgspec.json.decode(body, type=_Answer)
        except msgspec.DecodeError as error:
            if status != HTTPStatus.OK:
                raise self._refused(status, _excerpt(body)) from error
            raise AnswerError(f"{self.place}: the answer is none of Prometheus: {error}") from error
        if status != HTTPStatus.OK or answer.status != "success":
            raise self._refused(status, answer.error or answer.error_type or _excerpt(body))
        data = answer.data or _Data()
        if data.result_type != "vector":
            raise NoVectorError(f"the query gives a {data.result_type or 'nothing'}, not a vector")
        try:
            samples = msgspec.json.decode(data.result, type=list[_Sample])
            return [(each.metric, float(each.value[1])) for each in samples]
        except (msgspec.DecodeError, ValueError) as error:
            raise NoVectorError(f"the query gives no vector of numbers: {error}") from error

    async def _ask(self, query: str) -> tuple[int, bytes]:
        """Send it as a POST, and as a GET where a POST is not taken, as upstream's client does."""
        url, headers = self._url, {"User-Agent": USER_AGENT}
        if url is None:
            raise self._unreachable("its URL needs http:// or https://, and a host")
        token = await self._token()
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
            url = url.with_user(None)  # two ways to say who asks exclude each other
        limits = aiohttp.ClientTimeout(total=QUERY_WITHIN, sock_connect=CONNECT_TIMEOUT)
        try:
            tls = await self._trust(url)
            async with aiohttp.ClientSession(
                timeout=limits, headers=headers, cookie_jar=aiohttp.DummyCookieJar()
            ) as session:
                asked, proxy = {"query": query}, _proxy_for(url)
                async with session.post(url, data=asked, ssl=tls, proxy=proxy) as answer:
                    if answer.status not in _TRY_GET:
                        return answer.status, await answer.read()
                async with session.get(url, params=asked, ssl=tls, proxy=proxy) as answer:
                    return answer.status, await answer.read()
        except TimeoutError as error:
            why = str(error) or f"no answer within {QUERY_WITHIN:.0f} s"
            raise self._unreachable(why) from error
        except (aiohttp.ClientError, OSError, UnicodeError) as error:  # the last: no host's name
            raise self._unreachable(str(error) or type(error).__name__) from error

    async def _trust(self, url: URL) -> ssl.SSLContext | bool:
        """Trust the system's authorities and the cluster's own."""
        if url.scheme != "https":
            return True
        if self._tls is None:
            self._tls = await run_sync(_trust, self._authority)
        return self._tls

    def _unreachable(self, why: str) -> Unreachable:
        error = Unreachable(f"{self.place}: {why}")
        error.hint = "is the URL in metricsProviders right, and Prometheus running?"
        return error

    def _refused(self, status: int, message: str) -> ApiStatusError:
        error = ApiStatusError(status, "from Prometheus", f"{self.place}: {message}")
        if status in _DENIED:
            error.hint = "is its authToken right, and may its owner query?"
        return error


def token_in_secret(connection: KubeConnection, namespace: str, name: str) -> Token:
    """Return what reads the token from a Secret, each time anew."""
    place = f"secret {namespace}/{name}"

    async def read() -> str:
        answer = await connection.get(f"/api/v1/namespaces/{namespace}/secrets/{name}")
        try:
            answer.raise_for_status()
        except ApiStatusError as error:
            if error.status == HTTPStatus.FORBIDDEN:
                error.hint = (
                    "the account needs a Role for it: `reactive-descheduler rbac` prints one"
                )
            raise
        try:
            data = orjson.loads(answer.body)["data"][TOKEN_KEY]
            token = base64.b64decode(data, validate=True).decode().strip()
        except (KeyError, TypeError, AttributeError) as error:
            raise AnswerError(f"{place} has no key {TOKEN_KEY}") from error
        except (ValueError, binascii.Error) as error:
            raise AnswerError(f"the key {TOKEN_KEY} of {place} is no text in base64") from error
        if not token or not token.isprintable():
            raise AnswerError(f"the key {TOKEN_KEY} of {place} holds no token")
        return token

    return read


def own_token(folder: str = SERVICE_ACCOUNT) -> Token:
    """Return what reads the Pod's own token, each time anew; outside a cluster there is none."""

    async def read() -> str | None:
        if "KUBERNETES_SERVICE_HOST" not in os.environ:
            return None
        path = anyio.Path(folder) / "token"
        try:
            return (await path.read_text()).strip() or None
        except FileNotFoundError:  # the Pod asked for none
            return None
        except (OSError, UnicodeError) as error:
            raise Unreachable(f"{path}: {error}") from error

    return read


def _endpoint(url: str) -> URL | None:
    """Return where to ask; None where policies may have a URL that nobody can ask."""
    try:
        parsed = URL(url)
        usable = parsed.scheme in ("http", "https") and bool(parsed.host)
    except ValueError:
        return None
    return parsed / "api/v1/query" if usable else None


def _trust(cluster: Path) -> ssl.SSLContext:
    context = ssl.create_default_context()
    # Newer Pythons ask of certificate authorities what many clusters' lack.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if cluster.is_file():
        context.load_verify_locations(cluster)
    return context


def _proxy_for(url: URL) -> str | None:
    """Return the proxy that the environment names for a URL; loopback needs none."""
    proxy = getproxies_environment().get(url.scheme)
    host = url.host or ""
    local = host in ("localhost", "127.0.0.1", "::1")
    return None if proxy is None or local or proxy_bypass(f"{host}:{url.port}") else proxy


def _excerpt(body: bytes) -> str:
    return body[:200].decode(errors="replace").strip() or "an empty answer"
