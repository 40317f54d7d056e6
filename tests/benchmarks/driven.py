"""A core driven by hand in a big cluster, with a watch on its synchronous stretches.

For as long as one lasts nothing else happens in the daemon. Processor time, since the machine may
have other things to do.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from typing import TypeVar

import msgspec

from reactive_descheduler.api.changes import Change, Key, WatchEvent, WatchEventType
from reactive_descheduler.api.eviction import Answer, EvictionOutcome
from reactive_descheduler.api.meta import KubeObject
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.surroundings import Namespace
from reactive_descheduler.app.core import Core, build_core
from reactive_descheduler.app.enduring import Enduring
from reactive_descheduler.app.policy import in_tree_registry
from reactive_descheduler.app.surroundings import Surroundings
from reactive_descheduler.cache.store import Store
from reactive_descheduler.config.load import load_policy
from reactive_descheduler.evictor.queue import Queued
from reactive_descheduler.evictor.worker import EvictionAnswer
from reactive_descheduler.kit.clock import ManualClock
from reactive_descheduler.kit.collector import THRESHOLDS
from reactive_descheduler.observability.metrics import BuildInfo, Metrics
from reactive_descheduler.strategies import PLUGINS

NOW = datetime(2026, 6, 1, tzinfo=UTC)
REACTIVE: Mapping[str, object] = {
    "rateLimit": {"evictionsPerSecond": 1000, "burst": 1000},
    "limits": {"perWorkload": 1_000_000},
    "brakes": {
        "blastRadius": {"nodes": "100%", "pods": "100%", "within": "1s"},
        "pendingPods": "100%",
    },
    "pacing": {"maxUnavailable": "100%"},
    "settle": {"default": "0s", "transient": "0s"},
    "cooldown": {"initial": "1s", "max": "1s"},
}
"""So that requests follow each other as fast as they can."""

T = TypeVar("T")


class Nobody:
    async def evict(self, *_args: object, **_named: object) -> EvictionAnswer:
        raise AssertionError("requests are answered by hand")


class Stretches:
    """The longest stretch of each kind, in seconds."""

    def __init__(self) -> None:
        self.longest: dict[str, float] = {}

    def note(self, what: str, seconds: float) -> None:
        self.longest[what] = max(seconds, self.longest.get(what, 0.0))

    def timed(self, what: str, step: Callable[[], T]) -> T:
        began = time.process_time()
        found = step()
        self.note(what, time.process_time() - began)
        return found

    def worst(self) -> tuple[str, float]:
        return max(self.longest.items(), key=lambda each: each[1], default=("", 0.0))


class DrivenCore:
    """The core of a policy over the objects of a store, which it takes over."""

    def __init__(self, profiles: Iterable[Mapping[str, object]], objects: Store) -> None:
        policy = {
            "apiVersion": "descheduler/v1alpha2",
            "kind": "DeschedulerPolicy",
            "profiles": list(profiles),
            "reactive": REACTIVE,
        }
        self._policy = load_policy(json.dumps(policy), source="policy", plugins=PLUGINS)
        self.clock = ManualClock(NOW)
        self._metrics = Metrics(BuildInfo("benchmark"))
        self.core = self._build(None)
        self.stretches = Stretches()
        self._versions = count(1_000_000)
        for kind in ("Node", "Namespace", "Pod"):
            for found in tuple(objects.all(kind)):
                self.core.store.put(found)
                if isinstance(found, Node):
                    self.core.cycle.on_change(Change("Node", None, found))

    def start(self) -> None:
        """Look at everything."""
        gc.set_threshold(*THRESHOLDS)  # as the running program has it, and what follows
        gc.collect()
        gc.freeze()
        self.core.go_live()
        self.drive()

    def reload(self) -> None:
        """Put the policy in force anew, as the daemon does it."""
        before = self.core.enduring
        self.core = self.stretches.timed("reload", lambda: self._build(before))
        self.stretches.timed("go live", self.core.go_live)
        self.drive()

    @contextmanager
    def watched(self) -> Iterator[Stretches]:
        """Note the stretches of what happens inside by themselves."""
        before, self.stretches = self.stretches, Stretches()
        try:
            yield self.stretches
        finally:
            self.stretches = before

    def drive(self, seconds: float = 2.0) -> None:
        """Do what is due within this time after the last that was due."""
        core = self.core
        while True:
            if (due := core.queue.pop()) is None:
                at = core.queue.next_due()
                if at is None or at > self.clock.monotonic() + seconds:
                    return
                self.clock.advance(max(0.0, at - self.clock.monotonic()))
                continue
            what = due.key.strategy if isinstance(due.key, Key) else type(due.key).__name__
            steps = core.loop.steps(due)
            done = False
            while not done:
                done = self.stretches.timed(what, lambda: next(steps, True) is True)  # noqa: B023

    def put(self, found: Pod | Node | Namespace) -> None:
        """Let an object come or change."""
        version = str(next(self._versions))
        found = msgspec.structs.replace(found, resource_version=version)
        self._apply(WatchEvent(WatchEventType.MODIFIED, found, version))

    def delete(self, found: KubeObject) -> None:
        self._apply(WatchEvent(WatchEventType.DELETED, found, str(next(self._versions))))

    def request(self) -> Queued | None:
        """Ask for the next eviction; what is told of it comes in a later turn, as in the daemon."""
        self.clock.advance(0.001)
        dispatcher = self.core.dispatcher
        entry = self.stretches.timed("request", dispatcher._pick)
        self.stretches.timed("telling of it", dispatcher._tell_begun)
        return entry

    def grant(self, entry: Queued) -> Pod:
        """Answer the request, and let the Pod go; return it."""
        now = self.clock.now()
        outcome = EvictionOutcome(entry.candidate, Answer.EVICTED, 201, "", None, now, now)
        self.stretches.timed("answer", lambda: self.core.dispatcher.finish(entry, outcome))
        found = self.core.store.pods()[entry.candidate.pod.uid]
        self.delete(found)
        return found

    def replace(self, gone: Pod, node: str) -> None:
        """Let a controller and a scheduler do their part."""
        name = f"{gone.name.partition('_')[0]}_{next(self._versions)}"
        pod = msgspec.structs.replace(gone, name=name, uid=f"u-{name}", node_name="", deleted=None)
        self.put(pod)
        self.put(msgspec.structs.replace(pod, node_name=node))

    def _build(self, enduring: Enduring | None) -> Core:
        surroundings = Surroundings(clock=self.clock, client=Nobody(), metrics=self._metrics)
        profiles = in_tree_registry().profiles(self._policy, priority_classes={})
        return build_core(self._policy, profiles, surroundings, dry_run=False, enduring=enduring)

    def _apply(self, event: WatchEvent) -> None:
        assert event.object is not None
        kind = type(event.object).__name__
        what = f"{kind} {event.type.lower()}"
        self.stretches.timed(what, lambda: self.core.informer.apply(event))
