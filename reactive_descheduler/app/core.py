"""The core without I/O: cache in, eviction requests out.

The daemon feeds it from watch streams; property tests and the reported cases feed it by hand, on
virtual time. Nothing in it knows HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from reactive_descheduler.api.changes import Action, Change, ClusterEvent, Key
from reactive_descheduler.app.booking import rooms_of
from reactive_descheduler.app.enduring import Enduring, Gates, configure, new_enduring
from reactive_descheduler.app.policy import urgencies
from reactive_descheduler.app.reporting import Reporter
from reactive_descheduler.app.surroundings import Surroundings
from reactive_descheduler.cache.informer import Informer
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.store import Store
from reactive_descheduler.cache.usage import Usage
from reactive_descheduler.config.feature_gates import FeatureGate, FeatureGates
from reactive_descheduler.config.loaded import LoadedPolicy
from reactive_descheduler.config.reactive import ReactiveSettings
from reactive_descheduler.controller.bus import Debounce, EventBus, HeldKey, Item
from reactive_descheduler.controller.hold import HoldRule
from reactive_descheduler.controller.loop import ReconcileLoop
from reactive_descheduler.controller.parking import Parking
from reactive_descheduler.evictor.assumed import Assumed
from reactive_descheduler.evictor.background import Ended
from reactive_descheduler.evictor.causes import Causes
from reactive_descheduler.evictor.dispatcher import Dispatcher, pool_size
from reactive_descheduler.evictor.queue import EvictionQueue
from reactive_descheduler.evictor.worker import EvictionWorker, WorkerSettings
from reactive_descheduler.framework.cycle import CycleNodes
from reactive_descheduler.framework.profile import Profile
from reactive_descheduler.framework.strategy import Strategy
from reactive_descheduler.kit.clock import Clock
from reactive_descheduler.kit.delay_queue import DelayQueue
from reactive_descheduler.kit.token_bucket import TokenBucket
from reactive_descheduler.observability.hooks import Hooks
from reactive_descheduler.observability.logs import get_logger


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """Everything that decides, wired. `informer` is where changes come in."""

    policy: LoadedPolicy
    feature_gates: FeatureGates
    clock: Clock
    profiles: tuple[Profile, ...]
    store: Store
    lister: Lister
    """Everything in the cache."""
    live: Lister
    """The same less what is assumed going: what strategies read."""
    usage: Usage
    """Where measured usage is put; then `measured` is to be called."""
    informer: Informer
    cycle: CycleNodes
    queue: DelayQueue[Item]
    parking: Parking
    bus: EventBus
    loop: ReconcileLoop
    causes: Causes
    evictions: EvictionQueue
    assumed: Assumed
    bucket: TokenBucket
    gates: Gates
    dispatcher: Dispatcher
    worker: EvictionWorker
    hooks: Hooks
    enduring: Enduring
    """For the core that takes over when the policy is reloaded."""

    def go_live(self) -> None:
        """After every needed list is in: look at everything once, and from now on at changes."""
        self.bus.go_live()
        self.bus.look_at_everything()

    def resync(self) -> None:
        """Look at everything at low priority, as a backstop."""
        self.bus.look_at_everything(low=True)

    def measured(self, source: str) -> None:
        """New samples of this source are in: look at what rests on them."""
        self.bus.wake([ClusterEvent(Action.USAGE, ("Usage", "", source))])

    def on_jump(self, by: timedelta) -> None:
        """The wall clock jumped: timers were set by the old one, so everything is looked at."""
        self.causes.on_jump(by, self.clock.now())
        self.dispatcher.on_jump(by)
        self.bus.look_at_everything(low=True)

    def end_waits(self) -> None:
        """Wait no longer for replacements that should have come long ago, or were promised room,
        nor for evictions in background that never showed."""
        now = self.clock.now()
        self.bus.wake(self.gates.background.expire(now))
        self.bus.wake(self.gates.replacements.expire(now))
        self.bus.wake(self.gates.booking.expire(now))

    def confirm(self, uid: str) -> None:
        """A look-up told that a Pod assumed going is: assume it until the watch shows it too."""
        self.dispatcher.confirm(uid)
        self.dispatcher.wake(self.gates.lane.resolved(uid))

    def resolve(self, uid: str, *, key: Key | None = None) -> None:
        """A look-up told that a Pod assumed going stays: assume no longer."""
        self.assumed.drop(uid)
        self.bus.wake(self.gates.replacements.stays(uid, self.clock.now()))
        self.bus.wake(self.gates.booking.stays(uid))
        self.dispatcher.wake(self.gates.lane.resolved(uid))
        if key is not None:
            self.bus.look_again(key)


def build_core(
    policy: LoadedPolicy,
    profiles: tuple[Profile, ...],
    surroundings: Surroundings,
    *,
    dry_run: bool,
    enduring: Enduring | None = None,
) -> Core:
    """Make and wire the core for one policy.

    `enduring`: that of the core which this one takes over from; it is set up for the new policy,
    so the old core must not decide any more.
    """
    clock = surroundings.clock
    settings = policy.reactive
    names = tuple(profile.name for profile in profiles)
    strategies: dict[tuple[int, str], Strategy] = {
        (profile.index, strategy.NAME): strategy
        for profile in profiles
        for strategy in (*profile.deschedule, *profile.balance)
    }
    debounces = _debounces(settings, strategies)
    kept = enduring or new_enduring(policy, surroundings)
    store, assumed, causes, bucket, gates = (
        kept.store,
        kept.assumed,
        kept.causes,
        kept.bucket,
        kept.gates,
    )
    configure(kept, policy, strategies, debounces)
    assumed.counts_again = lambda uid: bus.counts_again(uid)
    lister, live = Lister(store), Lister(store, assumed.pods, gates.booking.promised)
    rooms = rooms_of(policy)
    gates.booking.reconfigure(
        None if rooms is None else lambda candidate: rooms.of(candidate, live)
    )
    cycle = CycleNodes(policy.node_selector, {node.name: node for node in store.nodes()})
    queue: DelayQueue[Item] = DelayQueue(clock)
    parking = Parking()
    evictions = EvictionQueue(timer=lambda key, time: bus.look_at(HeldKey(key), time))
    hooks = Hooks(surroundings.hooks, metrics=surroundings.metrics, log=get_logger("hooks"))
    reporter = Reporter(hooks, surroundings.metrics, clock=clock, profile_names=names)

    def on_ended(ended: Ended) -> None:
        reporter.ended(ended)
        if ended.success:
            # While it went on it counted besides the window; from now on it counts in it.
            gates.limits.count(ended.candidate, clock.now())

    gates.background.ended = on_ended
    worker = EvictionWorker(
        surroundings.client,
        WorkerSettings(
            dry_run,
            policy.grace_period_seconds,
            names,
            observing=settings.observing,
            in_background=FeatureGate.EVICTIONS_IN_BACKGROUND in surroundings.feature_gates,
        ),
        clock=clock,
    )
    dispatcher = Dispatcher(
        evictions,
        worker,
        gates.ordered(),
        assumed=assumed,
        clock=clock,
        workers=pool_size(settings.rate_limit.evictions_per_second),
        revalidate=lambda candidate: loop.still_offered(candidate),
        look_again=lambda key: bus.look_again(key),
        look_later=lambda key, time: bus.look_at(key, time),
        opened=lambda events: bus.wake(events),
        observer=reporter,
    )

    def on_cause_change(change: Change) -> Iterable[ClusterEvent]:
        broke = causes.on_change(change, clock.now())
        return (ClusterEvent(Action.CAUSE_BROKE, change.ref),) if broke else ()

    def on_usage_change(change: Change) -> Iterable[ClusterEvent]:
        kept.usage.on_change(change, clock.now())
        return ()

    bus = EventBus(
        queue,
        parking,
        strategies=strategies,
        debounce=debounces,
        lister=live,
        cycle=cycle,
        clock=clock,
        sinks=(on_cause_change, on_usage_change, dispatcher.on_change),
        wake_held=dispatcher.wake,
    )
    loop = ReconcileLoop(
        queue,
        parking,
        bus,
        profiles=profiles,
        strategies=strategies,
        urgencies=urgencies(),
        lister=live,
        nodes=cycle,
        usage=kept.usage if kept.usage.sources else None,
        causes=causes,
        dispatcher=dispatcher,
        hold=HoldRule(gates.replacements, lister=lister, timeout=lambda: settings.pacing.timeout),
        clock=clock,
        observer=reporter,
    )
    return Core(
        policy=policy,
        feature_gates=surroundings.feature_gates,
        clock=clock,
        profiles=profiles,
        store=store,
        lister=lister,
        live=live,
        usage=kept.usage,
        informer=Informer(store, bus.on_change),
        cycle=cycle,
        queue=queue,
        parking=parking,
        bus=bus,
        loop=loop,
        causes=causes,
        evictions=evictions,
        assumed=assumed,
        bucket=bucket,
        gates=gates,
        dispatcher=dispatcher,
        worker=worker,
        hooks=hooks,
        enduring=kept,
    )


def _debounces(
    settings: ReactiveSettings, strategies: Iterable[tuple[int, str]]
) -> dict[str, Debounce]:
    found = {}
    for _, name in strategies:
        debounce = settings.debounce_of(name)
        found[name] = Debounce(debounce.quiet.total_seconds(), debounce.max_wait.total_seconds())
    return found
