"""Where the API server is, and how to prove who we are: kubeconfig or in-cluster.

kubernetes_asyncio reads the configuration (contexts, exec plugins, token files, certificates). To
import it costs 60 MB and a second, so that happens here, late; and since it reads files and starts
plugins with blocking calls, always in a thread.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import anyio
import structlog
from anyio.to_thread import run_sync

from reactive_descheduler.api.errors import Unreachable
from reactive_descheduler.kit.clock import Clock

if TYPE_CHECKING:
    from kubernetes_asyncio.client import Configuration

log = structlog.get_logger()

TOKEN_LIFE = 60.0
"""Seconds for which a token is used before its source is asked again: files are rotated long
before the old token ends."""


NEVER = float("-inf")


class Target(NamedTuple):
    """What a connection needs besides credentials."""

    url: str
    tls: ssl.SSLContext | None
    """None for plain HTTP."""
    server_name: str | None = None
    """The name that the certificate has to carry, where it is not the host's."""
    proxy: str | None = None


class Source(Protocol):
    """Reads the configuration."""

    async def load(self) -> Target:
        """Read everything anew. Raises Unreachable if it cannot be used."""

    async def authorization(self) -> str | None:
        """Return the value of the Authorization header, read anew where it may have changed."""


class Credentials:
    """The Authorization header, re-read once a minute and when the server refuses it."""

    def __init__(self, source: Source, clock: Clock) -> None:
        self._source = source
        self._clock = clock
        self._lock = anyio.Lock()
        self._value: str | None = None
        self._read_at = NEVER

    async def current(self) -> str | None:
        """Return the header's value; None where a client certificate has to do.

        Raises Unreachable if it was never read. A value that was is kept while its source fails:
        it may well be valid still, and a 401 will tell.
        """
        if self._due():
            async with self._lock:
                if self._due():
                    await self._read(anew=False)
        return self._value

    async def renew(self, refused: str | None) -> bool:
        """Read everything anew after `refused` was answered with 401; return whether there is
        another value now.

        Of many callers that were refused together only the first reads.
        """
        async with self._lock:
            if self._value == refused:
                await self._read(anew=True)
        return self._value != refused

    def _due(self) -> bool:
        return self._clock.monotonic() - self._read_at >= TOKEN_LIFE

    async def _read(self, *, anew: bool) -> None:
        try:
            if anew:
                await self._source.load()
            self._value = await self._source.authorization()
        except Unreachable as error:
            if self._read_at == NEVER:
                raise
            log.warning("credentials could not be read again", error=str(error))
        self._read_at = self._clock.monotonic()


class LibrarySource:
    """A Source on kubernetes_asyncio's loaders."""

    def __init__(self, kubeconfig: str | None, context: str | None = None) -> None:
        """`kubeconfig` None: the usual places ($KUBECONFIG, ~/.kube/config), else in-cluster."""
        self._kubeconfig = kubeconfig
        self._context = context
        self._configuration: Configuration | None = None
        self._loader: Any = None

    async def load(self) -> Target:
        try:
            await run_sync(import_module, "kubernetes_asyncio.config")
            logging.getLogger("kubernetes_asyncio.config.kube_config").addFilter(_not_raised_too)
            configuration, self._loader = await self._read()
            target = await run_sync(_target, configuration)
        except Exception as error:
            # The library has an exception of its own, and lets through what a malformed file makes
            # of its code: TypeError, KeyError, a YAML error.
            raise _unusable(self._kubeconfig, error) from error
        self._configuration = configuration
        return target

    async def authorization(self) -> str | None:
        configuration = self._configuration
        assert configuration is not None  # load() comes first
        try:
            if self._loader is not None:
                # Cheap where nothing is due: it reads the token file again, and runs an exec
                # plugin only once its token is about to end.
                await run_sync(asyncio.run, self._loader.load_and_set(configuration))
            elif configuration.refresh_api_key_hook is not None:
                refresh: Any = configuration.refresh_api_key_hook  # declared as a coroutine too
                await run_sync(refresh, configuration)
        except Exception as error:
            raise _unusable(self._kubeconfig, error) from error
        value = configuration.api_key.get("BearerToken")
        return value.strip() if value else None

    async def _read(self) -> tuple[Configuration, Any]:
        """Return the library's configuration, and its loader if it came from a file.

        Its loaders are coroutines that block, so each runs in a thread, on a loop of its own.
        """
        from kubernetes_asyncio.client import Configuration
        from kubernetes_asyncio.config import load_incluster_config, load_kube_config

        configuration = type.__call__(Configuration)  # not the library's shared default
        path = self._kubeconfig or await run_sync(_usual_kubeconfig)
        if path is None:
            if "KUBERNETES_SERVICE_HOST" not in os.environ:
                raise FileNotFoundError("no kubeconfig was given or found, and this is no Pod")
            await run_sync(load_incluster_config, configuration)
            return configuration, None
        if self._kubeconfig:
            # Says why it cannot be read, where the library says nothing.
            await (await anyio.Path(path).expanduser()).read_bytes()
        loading = load_kube_config(
            config_file=path,
            context=self._context,
            client_configuration=configuration,
            persist_config=False,
        )
        return configuration, await run_sync(asyncio.run, loading)


def _usual_kubeconfig() -> str | None:
    named = os.environ.get("KUBECONFIG")
    if named:
        # A list, as for kubectl: files in it may be missing, but not all of them.
        if not any(Path(each).expanduser().is_file() for each in named.split(os.pathsep)):
            raise FileNotFoundError(f"KUBECONFIG names no file that exists: {named}")
        return named
    try:
        usual = Path.home() / ".kube" / "config"
    except RuntimeError:  # a container's user may have no home
        return None
    return str(usual) if usual.is_file() else None


def _target(configuration: Configuration) -> Target:
    url = str(configuration.host).rstrip("/")
    proxy = configuration.proxy
    if not url.startswith("https:"):
        return Target(url, None, proxy=proxy)
    tls = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    # Newer Pythons ask of certificate authorities what many clusters' lack; kubectl does not.
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if configuration.cert_file:
        tls.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
    if not configuration.verify_ssl:
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    return Target(url, tls, server_name=configuration.tls_server_name, proxy=proxy)


def _not_raised_too(_: logging.LogRecord) -> bool:
    """Drop what the library logs of an exception that it raises again: it is told once, by us."""
    return sys.exc_info()[1] is None


def _unusable(kubeconfig: str | None, error: Exception) -> Unreachable:
    place = kubeconfig or "the cluster's configuration"
    unusable = Unreachable(f"cannot use {place}: {_reason(error, place)}")
    unusable.hint = "give --kubeconfig FILE, set KUBECONFIG, or run in a Pod of the cluster"
    return unusable


def _reason(error: Exception, place: str) -> str:
    match error:
        case OSError(filename=str(file), strerror=str(why)):
            return why if file == place else f"{file}: {why}"
        case TypeError() | AttributeError():
            return "it is no kubeconfig"  # the library takes for granted what kind of data it holds
        case _:
            return str(error) or type(error).__name__
