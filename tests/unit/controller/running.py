"""The core with strategies of the test's own, driven by hand on a clock that moves when told."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from reactive_descheduler.api.changes import (
    Action,
    Change,
    Key,
    On,
    WatchEvent,
    WatchEventType,
)
from reactive_descheduler.api.eviction import Answer, Candidate, Cause, EvictionOutcome, Rejection
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.app.core import Core, build_core
from reactive_descheduler.app.surroundings import Surroundings
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.client.evictions import EvictionAnswer
from reactive_descheduler.config.feature_gates import FeatureGates
from reactive_descheduler.config.load import load_policy
from reactive_descheduler.controller.parking import Evaluated
from reactive_descheduler.evictor.queue import Queued
from reactive_descheduler.framework.filter import Reading
from reactive_descheduler.framework.profile import Profile
from reactive_descheduler.framework.strategy import (
    Evaluation,
    Holds,
    Phase,
    Scope,
    Strategy,
    Subscription,
    View,
)
from reactive_descheduler.kit.clock import ManualClock
from reactive_descheduler.observability.metrics import BuildInfo, Metrics
from reactive_descheduler.strategies import PLUGINS
from tests.builders import Manifest, make_namespace, make_node, view
from tests.unit.evictor.samples import NOW

POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: default
  plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaints]}}
reactive: {settle: {default: 0s}, debounce: {quiet: 100ms, maxWait: 1s}}
"""
HAIR = 0.002


class Open:
    """An evictor that protects nobody."""

    def filter(self, pod: Pod, reading: Reading, /) -> None:
        return None

    def pre_eviction(self, pod: Pod, reading: Reading, /) -> None:
        return None

    def depends(
        self, pod: Pod, reading: Reading, refused: Rejection | None, /, *, placed: bool
    ) -> Iterable[On]:
        return ()


def wants(pod: Pod) -> bool:
    return pod.template.labels.get("wrong") == "yes"


class Labelled:
    """Wants Pods that carry `wrong: yes` gone. Each of its parts may be made to fail."""

    NAME: ClassVar[str] = "RemovePodsViolatingNodeTaints"
    PHASE: ClassVar[Phase] = Phase.DESCHEDULE
    HOLDS: ClassVar[Holds] = Holds.NOTHING
    EVENTS: ClassVar[tuple[Subscription, ...]] = (
        Subscription(Action.POD_BOUND | Action.POD_LABELS, Scope.POD),
    )

    def __init__(self, profile: int = 0) -> None:
        self.profile = profile
        self.broken: set[str] = set()
        """Names of Pods on which `evaluate` raises; of methods that raise."""
        self.evaluated: list[str] = []

    def _key(self, pod: Pod) -> Key:
        return Key(self.profile, self.NAME, (pod.uid,))

    def keys_of(self, lister: Lister, /) -> Iterable[Key]:
        self._may_raise("keys_of")
        return [self._key(pod) for pod in lister.pods()]

    def keys_for(self, scope: Scope, change: Change, lister: Lister, /) -> Iterable[Key]:
        self._may_raise("keys_for")
        return [self._key(side) for side in (change.new,) if isinstance(side, Pod)]

    def evaluate(self, view: View, key: Key, /) -> Evaluation:
        pod = view.lister.pod(key.unit[0])
        self.evaluated.append(pod.name if pod is not None else "")
        if pod is None:
            return
        self._may_raise(pod.name)
        if wants(pod):
            yield Candidate(key, pod, Cause("label", (pod.uid,), (pod.ref,)), "it is wrong")

    def sweep(self, view: View, /) -> Evaluation:
        for pod in view.lister.pods():
            self._may_raise(pod.name)
            if wants(pod):
                yield Candidate(self._key(pod), pod, Cause("label", (pod.uid,), ()), "it is wrong")

    def counts(self, key: Key, pod: Pod, _lister: Lister, /) -> bool:
        return key.unit == (pod.uid,)

    def breaks(self, cause: Cause, change: Change, /) -> bool:
        self._may_raise("breaks")
        return isinstance(change.new, Pod) and not wants(change.new)

    def _may_raise(self, what: str) -> None:
        if what in self.broken:
            raise RuntimeError(f"{what} is broken")


class Nobody:
    async def evict(self, *_args: object, **_named: object) -> EvictionAnswer:
        raise AssertionError("requests are answered by hand")


@dataclass
class Running:
    core: Core
    clock: ManualClock
    metrics: Metrics

    def put(self, *manifests: Manifest) -> None:
        for manifest in manifests:
            self._tell(WatchEventType.MODIFIED, manifest)

    def remove(self, manifest: Manifest) -> None:
        self._tell(WatchEventType.DELETED, manifest)

    def _tell(self, kind: WatchEventType, manifest: Manifest) -> None:
        self.core.informer.apply(WatchEvent(kind, view(manifest), "1"))

    def drain(self) -> None:
        """Deal with everything that is due now."""
        for _ in range(20_000):
            if (due := self.core.queue.pop()) is None:
                return
            self.core.loop.reconcile(due)
        raise AssertionError("the loop never comes to rest")

    def wait(self, seconds: float) -> None:
        """Let time pass, dealing with each thing when it is due."""
        until = self.clock.monotonic() + seconds
        self.drain()
        while (at := self.core.queue.next_due()) is not None and at <= until + HAIR:
            self.clock.advance(max(0.0, at - self.clock.monotonic()))
            self.drain()
        self.clock.advance(max(0.0, until - self.clock.monotonic()))
        self.drain()

    def send(self) -> list[Queued]:
        """Start every request that may go now."""
        sent = []
        while (entry := self.core.dispatcher.next_request()) is not None:
            sent.append(entry)
        return sent

    def answer(self, entry: Queued, answer: Answer, *, status: int | None = 500) -> None:
        now = self.clock.now()
        told = EvictionOutcome(entry.candidate, answer, status, "told so", None, now, now)
        self.core.dispatcher.finish(entry, told)

    def remembered(self, name: str) -> Evaluated | None:
        for key, evaluated in self.core.parking.items():
            if key.unit == (f"uid-default-{name}",):
                return evaluated
        return None

    def offered(self) -> set[str]:
        """Return the names of the Pods that the queue has."""
        return {entry.candidate.pod.name for entry in self.core.evictions.candidates()}

    def metric(self, name: str) -> float:
        """Return the sum of a counter over its labels."""
        return math.fsum(
            sample.value
            for family in getattr(self.metrics, name).collect()
            for sample in family.samples
            if sample.name.endswith("_total")
        )


def running(
    *strategies: Strategy,
    objects: Sequence[Manifest] = (),
    policy: str = POLICY,
    dry_run: bool = False,
    live: bool = True,
    profiles: Callable[[], tuple[Profile, ...]] | None = None,
    not_synced: Callable[[], list[str]] = list,
    feature_gates: FeatureGates = frozenset(),
) -> Running:
    """Build the core over two nodes and these objects; what stood at the start is dealt with."""
    clock = ManualClock(NOW)
    metrics = Metrics(BuildInfo("test"))
    loaded = load_policy(policy, source="policy", plugins=PLUGINS)
    made = (
        profiles()
        if profiles is not None
        else tuple(
            Profile(index=index, name=f"p{index}", deschedule=(each,), balance=(), evictor=Open())
            for index, each in enumerate(strategies)
        )
    )
    surroundings = Surroundings(
        clock=clock,
        client=Nobody(),
        metrics=metrics,
        not_synced=not_synced,
        feature_gates=feature_gates,
    )
    core = build_core(loaded, made, surroundings, dry_run=dry_run)
    found = Running(core, clock, metrics)
    found.put(make_namespace(), make_node("node-1"), make_node("node-2"), *objects)
    if live:
        core.go_live()
        found.wait(2)
    return found
