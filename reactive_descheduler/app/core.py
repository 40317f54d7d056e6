"""The core without I/O: cache in, eviction requests out.

The daemon feeds it from watch streams; property tests and the reported cases feed it by hand, on
virtual time. Nothing in it knows HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from reactive_descheduler.api.changes import Action, Change, ClusterEvent, Key
from reactive_descheduler.api.eviction import Candidate, Cause
from reactive_descheduler.app.booking import rooms_of
from reactive_descheduler.app.policy import urgencies, usage_sources
from reactive_descheduler.app.reporting import Reporter
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
from reactive_descheduler.evictor.background import BackgroundEvictions, Ended
from reactive_descheduler.evictor.causes import Causes
from reactive_descheduler.evictor.dispatcher import Dispatcher, pool_size
from reactive_descheduler.evictor.gates import ORDER
from reactive_descheduler.evictor.gates.background import BackgroundGate
from reactive_descheduler.evictor.gates.booking import BookingGate
from reactive_descheduler.evictor.gates.bucket import BucketGate
from reactive_descheduler.evictor.gates.clock import ClockGate
from reactive_descheduler.evictor.gates.lane import LaneGate
from reactive_descheduler.evictor.gates.limits import Limits, LimitsGate
from reactive_descheduler.evictor.gates.permission import PermissionGate
from reactive_descheduler.evictor.gates.replacements import ReplacementsGate
from reactive_descheduler.evictor.gates.reported import ReportedGate
from reactive_descheduler.evictor.gates.retry import RetryGate
from reactive_descheduler.evictor.gates.settle import SettleGate
from reactive_descheduler.evictor.gates.staleness import StalenessGate
from reactive_descheduler.evictor.gates.synced import SyncedGate
from reactive_descheduler.evictor.queue import EvictionQueue
from reactive_descheduler.evictor.worker import EvictionClient, EvictionWorker, WorkerSettings
from reactive_descheduler.framework.cycle import CycleNodes
from reactive_descheduler.framework.gate import Gate
from reactive_descheduler.framework.profile import Profile
from reactive_descheduler.framework.strategy import Strategy
from reactive_descheduler.kit.clock import Clock
from reactive_descheduler.kit.delay_queue import DelayQueue
from reactive_descheduler.kit.token_bucket import TokenBucket
from reactive_descheduler.observability.hooks import Hook, Hooks
from reactive_descheduler.observability.logs import get_logger
from reactive_descheduler.observability.metrics import Metrics

_LATE = timedelta(seconds=5)
"""By which a key may be evaluated later than its debounce says, on a busy machine."""

StreamAges = Callable[[], Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the core takes from outside."""

    clock: Clock
    client: EvictionClient
    metrics: Metrics
    hooks: Sequence[Hook] = ()
    stream_ages: StreamAges = field(default=lambda: {})
    """Seconds since each stream that decisions rest on gave a sign of life."""
    feature_gates: FeatureGates = frozenset()
    cut_off: Callable[[], Collection[str]] = field(default=tuple)
    """Kinds of these streams whose watch failed and has not caught up since."""
    not_synced: Callable[[], list[str]] = field(default=list)
    """Kinds whose first list is not complete."""
    budgets_stale: Callable[[], bool] = field(default=lambda: False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """Every gate by name; `ordered` is what the dispatcher asks."""

    synced: SyncedGate
    clock: ClockGate
    stale: StalenessGate
    permission: PermissionGate
    reported: ReportedGate
    settle: SettleGate
    background: BackgroundGate
    retry: RetryGate
    lane: LaneGate
    limits: LimitsGate
    replacements: ReplacementsGate
    booking: BookingGate
    bucket: BucketGate

    def ordered(self) -> tuple[Gate, ...]:
        return tuple(getattr(self, name) for name in ORDER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Enduring:
    """What outlives a reload of the policy: the cache, and what was done and begun so far."""

    store: Store
    usage: Usage
    assumed: Assumed
    background: BackgroundEvictions
    causes: Causes
    bucket: TokenBucket
    gates: Gates


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
        self.gates.replacements.expire(now)
        self.bus.wake(self.gates.booking.expire(now))
        self.bus.wake(self.gates.background.expire(now))

    def confirm(self, uid: str) -> None:
        """A look-up told that a Pod assumed going is: assume it until the watch shows it too."""
        self.dispatcher.confirm(uid)
        self.dispatcher.wake(self.gates.lane.resolved(uid))

    def resolve(self, uid: str, *, key: Key | None = None) -> None:
        """A look-up told that a Pod assumed going stays: assume no longer."""
        self.assumed.drop(uid)
        self.bus.wake(self.gates.replacements.stays(uid))
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
    kept = enduring or _enduring(policy, surroundings)
    store, assumed, causes, bucket, gates = (
        kept.store,
        kept.assumed,
        kept.causes,
        kept.bucket,
        kept.gates,
    )
    _configure(kept, policy, strategies, debounces)
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
            gates.limits.take(ended.candidate, clock.now())

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


def _enduring(policy: LoadedPolicy, surroundings: Surroundings) -> Enduring:
    settings, clock = policy.reactive, surroundings.clock
    store = Store()
    lister = Lister(store)
    causes = Causes(lambda _key, _cause, _change: True, longest_batch=_LATE)
    background = BackgroundEvictions()
    bucket = TokenBucket(settings.rate_limit.evictions_per_second, settings.rate_limit.burst, clock)
    gates = Gates(
        synced=SyncedGate(surroundings.not_synced),
        clock=ClockGate(clock),
        stale=StalenessGate(
            surroundings.stream_ages,
            surroundings.cut_off,
            max_age=settings.staleness.max_age,
        ),
        permission=PermissionGate(),
        reported=ReportedGate(),
        settle=SettleGate(settle_of=lambda _: settings.settle.default, began=causes.began),
        background=BackgroundGate(
            background,
            enabled=FeatureGate.EVICTIONS_IN_BACKGROUND in surroundings.feature_gates,
        ),
        retry=RetryGate(),
        lane=LaneGate(
            budgets_of=lister.budgets_of, is_stale=surroundings.budgets_stale, pod_now=lister.pod
        ),
        limits=LimitsGate(
            _limits(policy), window=settings.limits.window, in_background=background.count
        ),
        replacements=ReplacementsGate(timeout=settings.pacing.timeout),
        booking=BookingGate(timeout=settings.pacing.timeout),
        bucket=BucketGate(bucket, clock=clock, adaptive=settings.rate_limit.adaptive),
    )
    return Enduring(
        store=store,
        usage=Usage(),
        assumed=Assumed(counts_again=lambda _uid: None),
        background=background,
        causes=causes,
        bucket=bucket,
        gates=gates,
    )


def _configure(
    kept: Enduring,
    policy: LoadedPolicy,
    strategies: Mapping[tuple[int, str], Strategy],
    debounces: Mapping[str, Debounce],
) -> None:
    """Let what endures work by this policy from now on."""
    settings, gates = policy.reactive, kept.gates
    measured = settings.usage
    kept.usage.configure(usage_sources(policy), samples=measured.samples, max_age=measured.max_age)

    def breaks(key: Key, cause: Cause, change: Change) -> bool:
        return strategies[key.profile, key.strategy].breaks(cause, change)

    def settle_of(candidate: Candidate) -> timedelta:
        cause, strategy = candidate.cause, candidate.key.strategy
        own = settings.strategies.get(strategy)
        if cause.proven_since is not None and (own is None or own.settle is None):
            return timedelta(0)  # its own timestamp proves its age: there is nothing to settle
        taint = cause.ident[1] if cause.kind == "taint" else ""
        return settings.settle_of(strategy, taint=taint)

    longest = max((each.max_wait for each in debounces.values()), default=0.0)
    kept.causes.keep(_OfStrategies(strategies))
    kept.causes.breaks = breaks
    kept.causes.longest_batch = timedelta(seconds=longest) + _LATE
    rate = settings.rate_limit
    statistics = kept.bucket.statistics()
    if (statistics.ceiling, statistics.burst) != (rate.evictions_per_second, rate.burst):
        kept.bucket.reconfigure(rate.evictions_per_second, rate.burst)
    gates.settle.settle_of = settle_of
    gates.stale.max_age = settings.staleness.max_age
    gates.limits.reconfigure(_limits(policy), window=settings.limits.window)
    gates.reported.reconfigure(settings.observing)
    gates.replacements.timeout = settings.pacing.timeout
    gates.booking.timeout = settings.pacing.timeout
    gates.bucket.adaptive = rate.adaptive


class _OfStrategies(Container[Key]):
    """The keys of these strategies, by profile and name."""

    def __init__(self, strategies: Container[tuple[int, str]]) -> None:
        self._strategies = strategies

    def __contains__(self, key: object) -> bool:
        return isinstance(key, Key) and (key.profile, key.strategy) in self._strategies


def _limits(policy: LoadedPolicy) -> Limits:
    return Limits(
        total=policy.limits.total,
        per_node=policy.limits.per_node,
        per_namespace=policy.limits.per_namespace,
        per_workload=policy.reactive.limits.per_workload,
    )
