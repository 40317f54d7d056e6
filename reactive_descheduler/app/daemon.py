"""The daemon: connects, fills the cache, goes live, and drains when it is told to stop.

Start-up is lists, then synced, then one full pass, then live. Everything runs in one event loop
under one task group; a signal stops the dispatcher first, lets what is in flight end, and then the
rest.
"""

from __future__ import annotations

import gc
import signal
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from random import Random

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from reactive_descheduler import __version__
from reactive_descheduler.api.changes import Action, ClusterEvent, WatchEvent
from reactive_descheduler.api.decoding import Decoder
from reactive_descheduler.api.errors import ClientError, Unreachable
from reactive_descheduler.api.meta import KubeObject
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.surroundings import PriorityClass
from reactive_descheduler.app.core import Surroundings, build_core
from reactive_descheduler.app.eviction_events import EvictionEventsHook
from reactive_descheduler.app.once import OnePass
from reactive_descheduler.app.pass_driver import PassReport
from reactive_descheduler.app.policy import (
    in_tree_registry,
    needed_kinds,
    needs_priority_classes,
)
from reactive_descheduler.app.settings import RunSettings
from reactive_descheduler.app.status import Gauges, Recent, Status
from reactive_descheduler.app.streams import BUDGETS, Streams
from reactive_descheduler.cache.informer import Informer
from reactive_descheduler.cache.reflector import ReflectorStatistics
from reactive_descheduler.client.events import EventRecorder, regarding_pod
from reactive_descheduler.client.evictions import EvictionClient
from reactive_descheduler.client.kube import KubeConnection, connect
from reactive_descheduler.client.listwatch import HttpListWatch
from reactive_descheduler.config.corrections import Correction
from reactive_descheduler.config.evictor import Protection
from reactive_descheduler.config.load import load_policy
from reactive_descheduler.config.loaded import LoadedPolicy
from reactive_descheduler.evictor.assumed import Assumption
from reactive_descheduler.kit.clock import Clock, SystemClock
from reactive_descheduler.kit.collector import Collector
from reactive_descheduler.kit.loop_lag import watch_loop_lag
from reactive_descheduler.kit.supervise import Crash, supervise
from reactive_descheduler.observability.hooks import Hook, LogHook, MetricsHook
from reactive_descheduler.observability.logs import get_logger
from reactive_descheduler.observability.metrics import BuildInfo, Metrics
from reactive_descheduler.server.health import Check, Health
from reactive_descheduler.server.http import Endpoints, serve
from reactive_descheduler.server.tls import from_files, self_signed
from reactive_descheduler.strategies import PLUGINS

log = get_logger("daemon")

LOOK_UP_EVERY = 5.0
"""Seconds between looks for Pods that were assumed going for too long."""
CLOCK_LOOK_EVERY = 1.0
CYCLE_LOOK_EVERY = 1.0
FLUSH_WITHIN = 3.0
"""Seconds for the last Kubernetes Events at the end."""


async def read_policy(settings: RunSettings) -> LoadedPolicy:
    """Read and check the policy file.

    Raises:
        OSError: it cannot be read.
        PolicyError: it is refused.
    """
    text = await anyio.Path(settings.policy_config_file).read_bytes()
    return load_policy(
        text,
        source=settings.policy_config_file,
        plugins=PLUGINS,
        corrections=settings.corrections,
    )


class _CountingSink:
    """Passes everything on to the informer and counts what comes."""

    def __init__(self, informer: Informer, on_event: Callable[[WatchEvent], None]) -> None:
        self._informer = informer
        self._on_event = on_event

    def replace(self, kind: str, objects: Iterable[KubeObject], resource_version: str) -> object:
        return self._informer.replace(kind, objects, resource_version)

    def apply(self, event: WatchEvent) -> object:
        self._on_event(event)
        return self._informer.apply(event)


class Daemon:
    """One process: a policy, a connection, and everything between them."""

    def __init__(
        self,
        settings: RunSettings,
        policy: LoadedPolicy,
        connection: KubeConnection,
        *,
        clock: Clock,
        random: Random,
        priority_classes: dict[str, int],
        hooks: Sequence[Hook] = (),
    ) -> None:
        """`hooks`: who listens to decisions besides metrics, logs, Events and the status page."""
        self._settings = settings
        self._policy = policy
        self._connection = connection
        self._clock = clock
        self._stop_requested = anyio.Event()
        self._decoder = Decoder()
        self.metrics = Metrics(BuildInfo(version=__version__, python=sys.version.split()[0]))
        self._client = EvictionClient(connection, self._decoder)
        self._events = EventRecorder(connection, clock=clock, instance=socket.gethostname())
        self._recent = Recent()
        self._live = False
        max_age = policy.reactive.staleness.max_age.total_seconds()
        profiles = in_tree_registry().profiles(policy, priority_classes=priority_classes)
        names = [profile.name for profile in profiles]
        self.core = build_core(
            policy,
            profiles,
            Surroundings(
                clock=clock,
                client=self._client,
                metrics=self.metrics,
                hooks=(
                    MetricsHook(self.metrics, names.__getitem__),
                    LogHook(get_logger("evictions"), names.__getitem__),
                    EvictionEventsHook(
                        self._record,
                        failures=policy.failure_events,
                        dry_run=settings.dry_run,
                    ),
                    self._recent,
                    *hooks,
                ),
                stream_ages=lambda: self.streams.ages(),
                not_synced=self._not_synced,
                budgets_stale=lambda: self.streams.stale(BUDGETS, max_age),
            ),
            dry_run=settings.dry_run,
        )
        self.streams = Streams(
            [
                HttpListWatch(connection, self._decoder, kind, clock=clock)
                for kind in needed_kinds(policy)
            ],
            _CountingSink(self.core.informer, self._on_watch_event),
            clock=clock,
            random=random,
            on_state=self._on_stream_state,
            budgets_decide=_budgets_decide(policy),
        )
        self.status = Status(
            self.core,
            self.streams,
            self._recent,
            now=clock.now,
            ready=self.not_ready,
            dry_run=settings.dry_run,
        )
        gauges = Gauges(self.status, self.core, self.streams, self.metrics)
        self.metrics.on_scrape(gauges.refresh)
        self._collector = Collector(gc, clock, on_pause=self._on_gc_pause)

    def stop(self) -> None:
        """Send nothing more, let what is in flight end, then return from `run`."""
        self._stop_requested.set()

    def not_ready(self) -> list[str]:
        """Return why the process does not do its work; empty when it does."""
        reasons = [f"not synced: {kind}" for kind in self.streams.not_synced()]
        if not reasons and not self._live:
            reasons.append("not live yet")
        if self.core.gates.permission.refusal:
            reasons.append(f"not allowed to evict: {self.core.gates.permission.refusal}")
        stale = self.core.gates.stale.closed(self._clock.now())
        if self._live and stale is not None:
            reasons.append(stale.reason)
        return reasons

    async def run(self) -> None:
        """Run until `stop`."""
        for problem in self._policy.warnings:
            log.warning("Policy", path=problem.path, problem=problem.message, hint=problem.hint)
        self._collector.started()
        async with anyio.create_task_group() as tasks:
            self.streams.start(tasks, self._on_crash)
            for name, task in (
                ("events", self._events.run),
                ("clock", self._watch_clock),
                ("cycle", self._watch_cycle),
                ("look-up", self._look_up_overdue),
                ("collector", self._collector.run),
                ("loop-lag", partial(watch_loop_lag, self._on_lag, clock=self._clock)),
                ("resync", self._resync),
            ):
                tasks.start_soon(
                    partial(supervise, name, task, on_crash=self._on_crash, clock=self._clock)
                )
            tasks.start_soon(self._work, tasks)
            await self._stop_requested.wait()
            # The worker task drains by itself; only what never ends is cancelled, and by it.
            self.core.dispatcher.stop()
            self.core.queue.shut_down()
            if not self._live:
                tasks.cancel_scope.cancel()

    async def run_once(self, sync_within: float) -> PassReport:
        """Fill the cache, run one full pass, send the last Events, and return what became of it."""
        async with anyio.create_task_group() as tasks:
            self.streams.start(tasks, self._on_crash)
            with anyio.move_on_after(sync_within):
                await self.streams.wait_synced()
            if missing := self.streams.not_synced():
                raise Unreachable(f"not synced: {', '.join(missing)}")
            self._live = True
            report = await OnePass(self.core, self.core.hooks, clock=self._clock).run()
            await self._events.flush(FLUSH_WITHIN)
            tasks.cancel_scope.cancel()
        return report

    async def _work(self, tasks: TaskGroup) -> None:
        """Wait for the lists, decide, and when told to stop end everything in order."""
        await self.streams.wait_synced()
        self._collector.synced()
        self.core.go_live()
        self._live = True
        log.info(
            "Live",
            nodes=len(self.core.lister.nodes()),
            pods=len(self.core.store.pods()),
            dry_run=self._settings.dry_run,
        )
        async with anyio.create_task_group() as workers:
            workers.start_soon(
                partial(
                    supervise,
                    "reconcile",
                    self._reconcile,
                    on_crash=self._on_crash,
                    clock=self._clock,
                )
            )
            with anyio.CancelScope() as sending:
                workers.start_soon(self._give_up, sending)
                await self.core.dispatcher.run()
            workers.cancel_scope.cancel()
        await self._events.flush(FLUSH_WITHIN)
        tasks.cancel_scope.cancel()

    async def _reconcile(self) -> None:
        await self.core.loop.run()
        # The queue was shut down: the process stops, and this must not count as a crash.
        await anyio.sleep_forever()

    async def _give_up(self, sending: anyio.CancelScope) -> None:
        await self._stop_requested.wait()
        await anyio.sleep(self._settings.grace_period)
        log.warning("Requests in flight did not end within the grace period")
        sending.cancel()

    async def _resync(self) -> None:
        interval = self._policy.reactive.resync
        if self._settings.descheduling_interval:
            interval = self._settings.descheduling_interval
        while True:
            await anyio.sleep(interval.total_seconds())
            if self._live:
                self._decoder.sweep(self.core.store.pods().values())
                self.core.resync()
                if not self.core.dispatcher.statistics().in_flight:
                    self._collector.resync()

    async def _watch_clock(self) -> None:
        while True:
            await anyio.sleep(CLOCK_LOOK_EVERY)
            jump = self.core.gates.clock.look()
            if jump is not None:
                log.warning("The wall clock jumped", seconds=round(jump.total_seconds(), 1))
                self.core.on_jump(jump)

    async def _watch_cycle(self) -> None:
        """Say when the policy's nodes become too few to do anything, and when they no longer are.

        Somebody who tries this on a cluster of one node would wonder for long otherwise.
        """
        told = True
        while True:
            await anyio.sleep(CYCLE_LOOK_EVERY)
            if self._live and self.core.cycle.alive != told:
                told = self.core.cycle.alive
                if told:
                    log.info("Enough ready nodes: at work again")
                else:
                    log.warning(
                        "Fewer than 2 of the policy's nodes are ready: nothing is evicted",
                        nodes=len(self.core.lister.nodes()),
                        node_selector=self._policy.node_selector,
                    )

    async def _look_up_overdue(self) -> None:
        """Ask the API server about Pods that should be seen going and are not (design 5.2)."""
        while True:
            await anyio.sleep(LOOK_UP_EVERY)
            if self.core.gates.stale.closed(self._clock.now()) is not None:
                continue  # the watch could not have told
            for assumption in self.core.assumed.overdue(self._clock.now()):
                await self._look_up(assumption)

    async def _look_up(self, assumption: Assumption) -> None:
        pod = assumption.pod
        try:
            found = await self._client.get_pod(pod.namespace, pod.name)
        except ClientError as error:
            log.warning("Could not look up an evicted Pod", pod=pod.name, error=str(error))
            self.core.assumed.keep(pod.uid, self._clock.now())
            return
        stays = found is not None and found.uid == pod.uid and found.deleted is None
        if stays:
            self.core.resolve(pod.uid, key=assumption.outcome.candidate.key)
        else:
            self.core.confirm(pod.uid)

    def _record(self, pod: Pod, *, reason: str, note: str, warning: bool) -> None:
        self._events.record(regarding_pod(pod), reason=reason, note=note, warning=warning)

    def _not_synced(self) -> list[str]:
        missing = self.streams.not_synced()
        return missing or ([] if self._live else ["the first full pass"])

    def _on_stream_state(self, statistics: ReflectorStatistics) -> None:
        if statistics.error:
            log.warning(
                "Watch",
                kind=statistics.kind,
                synced=statistics.synced,
                error=statistics.error,
                hint=statistics.hint,
            )
        event = ClusterEvent(Action.STREAM_FRESH, ("Stream", "", statistics.kind))
        self.core.dispatcher.wake([event])

    def _on_crash(self, crash: Crash) -> bool:
        self.metrics.task_crashes.labels(crash.task).inc()
        log.error(
            "A task failed; it starts anew",
            task=crash.task,
            error=crash.error,
            in_a_row=crash.in_a_row,
            restart_in=crash.restart_in,
        )
        return True

    def _on_watch_event(self, event: WatchEvent) -> None:
        kind = "bookmark" if event.object is None else type(event.object).__name__
        self.metrics.watch_events.labels(kind).inc()
        self._collector.note(1)

    def _on_lag(self, seconds: float) -> None:
        self.metrics.loop_lag.observe(seconds)

    def _on_gc_pause(self, _cause: str, seconds: float) -> None:
        self.metrics.gc_pause.observe(seconds)


def _budgets_decide(policy: LoadedPolicy) -> bool:
    """Say whether some verdict rests on budgets: the protection of Pods without one."""
    return Correction.PODS_WITHOUT_PDB in policy.corrections and any(
        Protection.WITHOUT_PDB in profile.evictor.protections for profile in policy.profiles
    )


async def read_priority_classes(
    connection: KubeConnection, policy: LoadedPolicy, clock: Clock
) -> dict[str, int]:
    """Read the values of PriorityClasses, once, if some threshold goes by name.

    Raises ClientError if they cannot be read.
    """
    if not needs_priority_classes(policy):
        return {}
    values: dict[str, int] = {}
    listing = HttpListWatch(connection, Decoder(), "PriorityClass", clock=clock, streaming=False)
    async for page in listing.pages():
        for found in page.items:
            if isinstance(found, PriorityClass):
                values[found.name] = found.value
    return values


async def run_daemon(settings: RunSettings) -> None:
    """Run the daemon until SIGTERM or SIGINT.

    Raises:
        OSError: the policy cannot be read, or the port is taken.
        PolicyError: the policy is refused.
        ClientError: no configuration for the API server, or priority classes cannot be read.
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
            priority_classes=await read_priority_classes(connection, policy, clock),
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
            priority_classes=await read_priority_classes(connection, policy, clock),
        )
        return await daemon.run_once(sync_within)
