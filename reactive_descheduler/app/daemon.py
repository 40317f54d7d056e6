"""The daemon: connects, fills the cache, goes live, and drains when it is told to stop.

Start-up is lists, then synced, then one full pass, then live. Everything runs in one event loop
under one task group; a signal stops the dispatcher first, lets what is in flight end, and then the
rest.
"""

from __future__ import annotations

import gc
import socket
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from random import Random

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from reactive_descheduler import __version__
from reactive_descheduler.api.changes import Action, ClusterEvent, WatchEvent
from reactive_descheduler.api.decoding import Decoder
from reactive_descheduler.api.meta import KubeObject
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.app.core import Core, build_core
from reactive_descheduler.app.enduring import Enduring
from reactive_descheduler.app.eviction_events import EvictionEventsHook
from reactive_descheduler.app.measuring import Measuring
from reactive_descheduler.app.needed_streams import NeededStreams
from reactive_descheduler.app.once import OnePass, wait_synced
from reactive_descheduler.app.pass_driver import PassReport
from reactive_descheduler.app.policy import (
    in_tree_registry,
    needed_kinds,
)
from reactive_descheduler.app.policy_file import PolicyFile
from reactive_descheduler.app.policy_reload import PolicyReload, warn
from reactive_descheduler.app.settings import RunSettings
from reactive_descheduler.app.status import Gauges, Recent, Status
from reactive_descheduler.app.streams import Streams
from reactive_descheduler.app.surroundings import Surroundings
from reactive_descheduler.app.watchers import Watchers
from reactive_descheduler.cache.informer import Informer
from reactive_descheduler.cache.reflector import ReflectorStatistics
from reactive_descheduler.client.events import EventRecorder, Regarding, regarding_pod
from reactive_descheduler.client.evictions import EvictionClient
from reactive_descheduler.client.kube import KubeConnection
from reactive_descheduler.client.listwatch import HttpListWatch
from reactive_descheduler.config.loaded import LoadedPolicy
from reactive_descheduler.kit.clock import Clock
from reactive_descheduler.kit.collector import Collector
from reactive_descheduler.kit.loop_lag import watch_loop_lag
from reactive_descheduler.kit.supervise import Crash, supervise
from reactive_descheduler.observability.hooks import Hook, LogHook, MetricsHook
from reactive_descheduler.observability.logs import get_logger
from reactive_descheduler.observability.metrics import BuildInfo, Metrics

log = get_logger("daemon")

FIRST_PASS_LOOK = 0.01
"""Seconds between looks whether the first full pass is over."""
FIRST_PASS_WITHIN = 60.0
"""Seconds for the first full pass; one over 100,000 Pods takes a few."""
FLUSH_WITHIN = 3.0
"""Seconds for the last Kubernetes Events at the end."""


class _CountingSink:
    """Passes everything on to the informer and counts what comes."""

    def __init__(self, informer: Informer, on_event: Callable[[WatchEvent], None]) -> None:
        self._informer = informer
        self._on_event = on_event

    def replace(
        self, kind: str, objects: Iterable[KubeObject], resource_version: str
    ) -> Iterable[object]:
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
        priority_classes: Mapping[str, int],
        hooks: Sequence[Hook] = (),
        policy_file: PolicyFile | None = None,
        own_pod: Regarding | None = None,
    ) -> None:
        """`hooks`: who listens to decisions besides metrics, logs, Events and the status page.

        `policy_file`: reloaded when it changes; None: the policy stays. `own_pod`: what Events
        about the policy are about; None: none is sent.
        """
        self._settings = settings
        self._policy_file = policy_file
        self._own_pod = own_pod
        self._more_hooks = tuple(hooks)
        self._connection = connection
        self._clock = clock
        self._stop_requested = anyio.Event()
        self._decoder = Decoder()
        self.metrics = Metrics(BuildInfo(version=__version__, python=sys.version.split()[0]))
        self._client = EvictionClient(connection, self._decoder)
        self._events = EventRecorder(connection, clock=clock, instance=socket.gethostname())
        self._recent = Recent()
        self._live = False
        self._cores: TaskGroup | None = None
        self._needed = NeededStreams(lambda: self.core.policy, lambda: self.streams)
        self.core = self._build(policy, priority_classes)
        self.streams = Streams(
            [self._source(kind) for kind in needed_kinds(policy)],
            # One that lasts: the policy may be reloaded while a list is half taken in.
            _CountingSink(
                Informer(self.core.store, lambda change: self.core.bus.on_change(change)),
                self._on_watch_event,
            ),
            clock=clock,
            random=random,
            on_state=self._on_stream_state,
        )
        self._measuring = Measuring(
            connection,
            clock=clock,
            random=random,
            on_sample=lambda source: self.core.measured(source),
        )
        self._measuring.configure(policy, self.core.usage)
        self.status = Status(
            lambda: self.core,
            self.streams,
            self._measuring,
            self._recent,
            policy_file.statistics if policy_file is not None else None,
            now=clock.now,
            ready=self.not_ready,
            dry_run=settings.dry_run,
        )
        gauges = Gauges(self.status, lambda: self.core, self.streams, self._measuring, self.metrics)
        self.metrics.on_scrape(gauges.refresh)
        self._collector = Collector(gc, clock, on_pause=self._on_gc_pause)

    def _build(
        self,
        policy: LoadedPolicy,
        priority_classes: Mapping[str, int],
        enduring: Enduring | None = None,
    ) -> Core:
        profiles = in_tree_registry().profiles(policy, priority_classes=priority_classes)
        names = [profile.name for profile in profiles]

        surroundings = Surroundings(
            clock=self._clock,
            client=self._client,
            metrics=self.metrics,
            feature_gates=self._settings.feature_gates,
            hooks=(
                MetricsHook(self.metrics, names.__getitem__),
                LogHook(get_logger("evictions"), names.__getitem__),
                EvictionEventsHook(
                    self._record,
                    failures=policy.failure_events,
                    dry_run=self._settings.dry_run,
                ),
                self._recent,
                *self._more_hooks,
            ),
            stream_ages=self._needed.ages,
            cut_off=self._needed.cut_off,
            not_synced=self._not_synced,
            budgets_stale=self._needed.budgets_stale,
        )
        return build_core(
            policy,
            profiles,
            surroundings,
            dry_run=self._settings.dry_run,
            enduring=enduring,
        )

    def _source(self, kind: str) -> HttpListWatch:
        return HttpListWatch(self._connection, self._decoder, kind, clock=self._clock)

    def stop(self) -> None:
        """Send nothing more, let what is in flight end, then return from `run`."""
        self._stop_requested.set()

    def not_ready(self) -> list[str]:
        """Return why the process does not do its work; empty when it does."""
        reasons = [f"not synced: {kind}" for kind in self._needed.missing()]
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
        warn(self.core.policy)
        self._collector.started()
        watchers = Watchers(
            lambda: self.core if self._live else None,
            get_pod=self._client.get_pod,
            degraded=self.status.degraded,
            tell=self._tell,
            clock=self._clock,
        )
        async with anyio.create_task_group() as tasks:
            self.streams.start(tasks, self._on_crash)
            for name, task in (
                ("events", self._events.run),
                ("clock", watchers.clock),
                ("cycle", watchers.cycle),
                ("closed", watchers.closed),
                ("look-up", watchers.overdue),
                ("collector", self._collector.run),
                ("loop-lag", partial(watch_loop_lag, self._on_lag, clock=self._clock)),
                ("resync", self._resync),
                ("usage", self._measuring.run),
                ("degraded", watchers.degraded),
                ("waits", watchers.waits),
                ("policy", self._reload),
            ):
                tasks.start_soon(
                    partial(supervise, name, task, on_crash=self._on_crash, clock=self._clock)
                )
            tasks.start_soon(self._work, tasks)
            await self._stop_requested.wait()
            # The worker task drains by itself; only what never ends is cancelled, and by it.
            _retire(self.core)
            if not self._live:
                tasks.cancel_scope.cancel()

    async def run_once(self, sync_within: float) -> PassReport:
        """Fill the cache, run one full pass, send the last Events, and return what became of it.

        Raises Unreachable if the cache cannot be filled in so many seconds, or never will be.
        """
        async with anyio.create_task_group() as tasks:
            self.streams.start(tasks, self._on_crash)
            await wait_synced(self.streams, within=sync_within, clock=self._clock)
            await self._measuring.once()
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
        async with anyio.create_task_group() as cores:
            self._cores = cores
            cores.start_soon(self._drive, self.core)
            await self._first_pass()
            self.core.gates.clock.look()  # from now on it is known when the process stands still
            self._live = True
            self.core.dispatcher.wake(())
            log.info(
                "Live",
                nodes=len(self.core.lister.nodes()),
                pods=len(self.core.store.pods()),
                dry_run=self._settings.dry_run,
            )
            await self._stop_requested.wait()
        await self._events.flush(FLUSH_WITHIN)
        tasks.cancel_scope.cancel()

    async def _first_pass(self) -> None:
        """Return once everything was looked at: only then does the most urgent go first.

        A stop meanwhile cancels it.
        """
        # Others fill the queue too, so that it may never be seen empty: hence the limit.
        with anyio.move_on_after(FIRST_PASS_WITHIN):
            while self.core.queue.has_due():  # noqa: ASYNC110 - it tells nobody
                await anyio.sleep(FIRST_PASS_LOOK)

    async def _drive(self, core: Core) -> None:
        """Let a core work until it is retired and what it has in flight has ended."""
        async with anyio.create_task_group() as workers:
            reconcile = partial(
                supervise,
                "reconcile",
                partial(_reconcile, core),
                on_crash=self._on_crash,
                clock=self._clock,
            )
            workers.start_soon(reconcile)
            with anyio.CancelScope() as sending:
                workers.start_soon(self._give_up, sending)
                await core.dispatcher.run()
            workers.cancel_scope.cancel()
        # What a retired core had in flight held candidates of the one that decides now.
        self.core.dispatcher.wake_all()

    async def _reload(self) -> None:
        if self._policy_file is None:
            await anyio.sleep_forever()
            return
        reload = PolicyReload(
            self._policy_file,
            self._connection,
            self.streams,
            clock=self._clock,
            metrics=self.metrics,
            source_of=self._source,
            put_in_force=self._put_in_force,
            tell=self._tell,
        )
        await reload.run()

    def _put_in_force(self, policy: LoadedPolicy, classes: Mapping[str, int]) -> bool:
        """Let another policy decide, in one step: nothing may be decided by half of one and half
        of the other. What was done and begun so far still counts."""
        if self._cores is None or self._stop_requested.is_set():
            return False
        before = self.core
        self.core = self._build(policy, classes, before.enduring)
        _retire(before)
        self._measuring.configure(policy, self.core.usage)
        self.core.go_live()
        self._cores.start_soon(self._drive, self.core)
        return True

    def _tell(self, reason: str, note: str, *, warning: bool) -> None:
        if self._own_pod is not None:
            self._events.record(self._own_pod, reason=reason, note=note, warning=warning)

    async def _give_up(self, sending: anyio.CancelScope) -> None:
        await self._stop_requested.wait()
        await anyio.sleep(self._settings.grace_period)
        log.warning("Requests in flight did not end within the grace period")
        sending.cancel()

    async def _resync(self) -> None:
        while True:
            interval = self.core.policy.reactive.resync
            if self._settings.descheduling_interval:
                interval = self._settings.descheduling_interval
            await anyio.sleep(interval.total_seconds())
            if self._live:
                self._decoder.sweep(self.core.store.pods().values())
                self.core.resync()
                if not self.core.dispatcher.statistics().in_flight:
                    self._collector.resync()

    def _record(self, pod: Pod, *, reason: str, note: str, warning: bool) -> None:
        self._events.record(regarding_pod(pod), reason=reason, note=note, warning=warning)

    def _not_synced(self) -> list[str]:
        return self._needed.missing() or ([] if self._live else ["the first full pass"])

    def _on_stream_state(self, statistics: ReflectorStatistics) -> None:
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


def _retire(core: Core) -> None:
    """Let a core decide nothing more; what it has in flight ends by itself."""
    core.dispatcher.stop()
    core.queue.shut_down()


async def _reconcile(core: Core) -> None:
    await core.loop.run()
    # The queue was shut down: the core is retired, and this must not count as a crash.
    await anyio.sleep_forever()
