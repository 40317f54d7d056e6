"""The process: reads what it is told, connects, serves, and runs a daemon or one pass to its
end."""

from __future__ import annotations

import os
import signal
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random

import anyio
import anyio.to_thread

from reactive_descheduler.app.daemon import Daemon
from reactive_descheduler.app.pass_driver import PassReport
from reactive_descheduler.app.policy_file import PolicyFile
from reactive_descheduler.app.policy_reload import priority_classes_for
from reactive_descheduler.app.settings import RunSettings
from reactive_descheduler.client.events import Regarding
from reactive_descheduler.client.kube import connect
from reactive_descheduler.config.loaded import LoadedPolicy
from reactive_descheduler.kit.clock import Clock, SystemClock
from reactive_descheduler.observability.logs import get_logger
from reactive_descheduler.server.health import Check, Health
from reactive_descheduler.server.http import Endpoints, serve
from reactive_descheduler.server.tls import from_files, self_signed

log = get_logger("process")


def policy_file(settings: RunSettings, clock: Clock) -> PolicyFile:
    """Return the policy file of these settings, not read yet."""
    return PolicyFile(
        anyio.Path(settings.policy_config_file).read_bytes,
        source=settings.policy_config_file,
        corrections=settings.corrections,
        clock=clock,
    )


async def read_policy(settings: RunSettings) -> LoadedPolicy:
    """Read and check the policy file.

    Raises:
        OSError: it cannot be read.
        PolicyError: it is refused.
    """
    return await policy_file(settings, SystemClock()).load()


def own_pod(environment: Mapping[str, str]) -> Regarding | None:
    """Return the Pod that this process runs in, as the downward API tells it; None outside."""
    name, namespace = environment.get("POD_NAME"), environment.get("POD_NAMESPACE")
    if not name or not namespace:
        return None
    return Regarding("v1", "Pod", namespace, name, environment.get("POD_UID", ""))


async def run_daemon(settings: RunSettings) -> None:
    """Run the daemon until SIGTERM or SIGINT.

    Raises:
        OSError: the policy cannot be read.
        AddressError: nothing can listen at the address.
        PolicyError: the policy is refused.
        ClientError: no configuration for the API server, or priority classes cannot be read.
    """
    clock = SystemClock()
    file = policy_file(settings, clock)
    policy = await file.load()
    async with await connect(settings.kubeconfig, clock=clock) as connection:
        daemon = Daemon(
            settings,
            policy,
            connection,
            clock=clock,
            random=Random(),
            priority_classes=await priority_classes_for(policy, connection, clock=clock),
            policy_file=file,
            own_pod=own_pod(os.environ),
        )
        async with AsyncExitStack() as stack:
            if settings.secure_port:
                url = await stack.enter_async_context(_served(daemon, settings, clock))
                log.info("Serving", url=url)
            await stack.enter_async_context(stopped_by_signals(daemon.stop))
            await daemon.run()


@asynccontextmanager
async def stopped_by_signals(stop: Callable[[], None]) -> AsyncIterator[None]:
    """Call `stop` at the first SIGTERM or SIGINT."""

    async def listen() -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for number in signals:
                log.info("Stopping", signal=number.name)
                stop()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        yield
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def _served(daemon: Daemon, settings: RunSettings, clock: Clock) -> AsyncIterator[str]:
    health = Health(ready=[Check("work", lambda: "; ".join(daemon.not_ready()) or None)])
    endpoints = Endpoints(
        health, daemon.status.snapshot, None if settings.disable_metrics else daemon.metrics
    )
    tls = await anyio.to_thread.run_sync(_certificate, settings, clock)
    async with serve(
        endpoints, host=settings.bind_address, port=settings.secure_port, tls=tls
    ) as url:
        yield url


def _certificate(settings: RunSettings, clock: Clock) -> ssl.SSLContext:
    if settings.tls_cert_file or settings.tls_private_key_file:
        return from_files(settings.tls_cert_file, settings.tls_private_key_file)
    return self_signed(settings.bind_address, clock.now())


async def run_once(settings: RunSettings, *, sync_within: float = 60.0) -> PassReport:
    """Fill the cache, run one full pass with real requests, and return what became of it.

    Raises what `run_daemon` raises, and Unreachable if the cache is not filled in `sync_within`
    seconds.
    """
    clock = SystemClock()
    policy = await read_policy(settings)
    async with await connect(settings.kubeconfig, clock=clock) as connection:
        daemon = Daemon(
            settings,
            policy,
            connection,
            clock=clock,
            random=Random(),
            priority_classes=await priority_classes_for(policy, connection, clock=clock),
        )
        return await daemon.run_once(sync_within)
