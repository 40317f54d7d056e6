"""What outlives a reload of the policy: the cache, and what was done and begun so far.

It is made once, and set up anew for each policy that comes into force.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from datetime import timedelta

from reactive_descheduler.api.changes import Change, Key
from reactive_descheduler.api.eviction import Candidate, Cause
from reactive_descheduler.app.policy import usage_sources
from reactive_descheduler.app.surroundings import Surroundings
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.store import Store
from reactive_descheduler.cache.usage import Usage
from reactive_descheduler.config.feature_gates import FeatureGate
from reactive_descheduler.config.loaded import LoadedPolicy
from reactive_descheduler.controller.bus import Debounce
from reactive_descheduler.evictor.assumed import Assumed
from reactive_descheduler.evictor.background import BackgroundEvictions
from reactive_descheduler.evictor.causes import Causes
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
from reactive_descheduler.framework.gate import Gate
from reactive_descheduler.framework.strategy import Strategy
from reactive_descheduler.kit.token_bucket import TokenBucket

_LATE = timedelta(seconds=5)
"""By which a key may be evaluated later than its debounce says, on a busy machine."""


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


def new_enduring(policy: LoadedPolicy, surroundings: Surroundings) -> Enduring:
    settings, clock = policy.reactive, surroundings.clock
    store = Store()
    lister = Lister(store)
    causes = Causes(lambda _key, _cause, _change: True, longest_batch=_LATE)
    background = BackgroundEvictions()
    bucket = TokenBucket(settings.rate_limit.evictions_per_second, settings.rate_limit.burst, clock)
    replacements = ReplacementsGate(
        timeout=settings.pacing.timeout, goes_on=lambda uid: background.of_pod(uid) is not None
    )
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
        replacements=replacements,
        booking=BookingGate(timeout=settings.pacing.timeout, under_way=replacements.awaits),
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


def configure(
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
