"""The core under a random policy and cluster, driven by hand on a clock that moves when told."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from reactive_descheduler.api.changes import Key
from reactive_descheduler.api.eviction import TAKEN, Candidate, Failed, Verdict
from reactive_descheduler.app.core import Core, build_core
from reactive_descheduler.app.policy import in_tree_registry
from reactive_descheduler.app.surroundings import Surroundings
from reactive_descheduler.cache.gone import GonePods
from reactive_descheduler.config.feature_gates import FeatureGate
from reactive_descheduler.config.load import load_policy
from reactive_descheduler.controller.evaluation import evaluate, take_all
from reactive_descheduler.controller.full_pass import full_pass, views
from reactive_descheduler.controller.parking import Evaluated
from reactive_descheduler.evictor.worker import EvictionAnswer
from reactive_descheduler.framework.profile import Profile, ProfileView
from reactive_descheduler.framework.strategy import Strategy
from reactive_descheduler.kit.clock import ManualClock
from reactive_descheduler.observability.metrics import BuildInfo, Metrics
from reactive_descheduler.strategies import PLUGINS
from tests.property.cluster_model import START, Cluster

HAIR = 0.002
"""Timers fire a millisecond late rather than early; nothing is compared in between."""

Offer = tuple[str, object, str]


METRICS = Metrics(BuildInfo("test"))
"""One for all runs, for it is dear to make."""


class NoClient:
    """Requests are answered by hand, so nobody asks it."""

    async def evict(self, *_args: object, **_named: object) -> EvictionAnswer:
        raise AssertionError("the dispatcher does not run")


class RunningCore:
    """A core with the cluster that feeds it."""

    def __init__(self, policy: str) -> None:
        loaded = load_policy(policy, source="policy", plugins=PLUGINS)
        self.clock = ManualClock(START)
        self._findings = self.resync_findings()
        profiles = in_tree_registry().profiles(loaded, priority_classes={})
        surroundings = Surroundings(
            clock=self.clock,
            client=NoClient(),
            metrics=METRICS,
            feature_gates=frozenset({FeatureGate.EVICTIONS_IN_BACKGROUND}),
        )
        self.core: Core = build_core(loaded, profiles, surroundings, dry_run=False)
        self.cluster = Cluster(self.core.informer, self.clock)
        self.policy = loaded
        self.debounce = loaded.reactive.debounce.max_wait.total_seconds()
        self.strategies: list[tuple[Profile, Strategy]] = [
            (profile, strategy)
            for profile in profiles
            for strategy in (*profile.deschedule, *profile.balance)
        ]

    def drain(self, most: int | None = None) -> None:
        """Take what is due now, all of it or so many items."""
        for taken in count():
            if taken == most or (due := self.core.queue.pop()) is None:
                return
            self.core.loop.reconcile(due)
            assert taken < 10_000, "the loop never comes to rest"

    def wait(self, seconds: float) -> None:
        """Let time pass, dealing with each thing when it is due."""
        until = self.clock.monotonic() + seconds
        self.drain()
        while (at := self.core.queue.next_due()) is not None and at <= until + HAIR:
            self.clock.advance(max(0.0, at - self.clock.monotonic()))
            until = max(until, at)
            self.drain()
        self.clock.advance(max(0.0, until - self.clock.monotonic()))
        self.drain()

    def rest(self) -> None:
        """Let the debounce run out and everything due be done."""
        self.wait(self.debounce)

    def key_space(self) -> Iterable[Key]:
        """Return the key space, what is remembered, and what waits to be evicted."""
        found: dict[Key, None] = {}
        for _, strategy in self.strategies:
            found.update(dict.fromkeys(strategy.keys_of(self.core.live)))
        found.update(dict.fromkeys(self.core.parking))
        found.update(dict.fromkeys(e.candidate.key for e in self.core.evictions.candidates()))
        return found

    def evaluated(self, profile: Profile, strategy: Strategy, key: Key) -> Evaluated:
        """Evaluate a key as if there were no gates and limits."""
        return evaluate(strategy, self._view(profile), key, take_all)

    def swept(self, profile: Profile, strategy: Strategy) -> dict[str, Offer]:
        """Return what a full pass of this strategy alone offers, the first offer of each Pod."""
        alone = views(
            [profile], lister=self.core.live, nodes=self.core.cycle, now=self.clock.now(), gone=NONE
        )
        view = alone[0][0]
        generator = full_pass([(view, (strategy,), ())])
        found: dict[str, Offer] = {}
        verdict: Verdict | None = None
        while True:
            try:
                said = generator.send(verdict)
            except StopIteration:
                return found
            assert not isinstance(said, Failed), said
            verdict = None
            if isinstance(said, Candidate):
                found.setdefault(said.pod.uid, offer(said))
                verdict = TAKEN

    @staticmethod
    def resync_findings() -> float:
        families = METRICS.resync_findings.collect()
        return sum(sample.value for family in families for sample in family.samples)

    def _view(self, profile: Profile) -> ProfileView:
        return ProfileView(profile.evictor, self.core.live, self.core.cycle, self.clock.now())

    def check_sound(self) -> None:
        """Nothing raised, and no resync found what a change should have told."""
        assert self.resync_findings() == self._findings
        assert not self.core.loop.failures
        assert not self.core.bus.statistics().narrow_errors


NONE = GonePods()


def offer(candidate: Candidate) -> Offer:
    """Return what of a candidate must stay; its Pod moves with every heartbeat."""
    return (candidate.pod.uid, candidate.cause, candidate.reason)


def verdict_of(evaluated: Evaluated) -> tuple[list[Offer], list[tuple[object, ...]]]:
    """Return what of an evaluation must be remembered: all but its wakes."""
    return (
        [offer(candidate) for candidate in evaluated.offered],
        [(each.by, each.reason, each.pod) for each in evaluated.rejected],
    )
