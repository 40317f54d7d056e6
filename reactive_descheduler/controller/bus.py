"""The debounced event bus: from a change to the keys that it can flip, and no others.

A change becomes cluster events (`triggers`); the strategies' subscriptions and the parked keys turn
these into keys; the delay queue hands each key out once it was left alone for its quiet time.
Debounce is per key, so churn elsewhere never delays a taint. Nothing is dropped: when in doubt a
key is looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, count, islice
from typing import NamedTuple

import structlog

from reactive_descheduler.api.changes import Action, Change, ClusterEvent, Key
from reactive_descheduler.api.meta import Ref
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod, Shape
from reactive_descheduler.api.scheduling.fit import shape_misfit
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.controller.parking import Parking
from reactive_descheduler.framework.cycle import CycleNodes
from reactive_descheduler.framework.strategy import Strategy, Subscription
from reactive_descheduler.kit.clock import Clock
from reactive_descheduler.kit.delay_queue import DelayQueue
from reactive_descheduler.triggers import cluster_events, touched

log = structlog.get_logger()

_ROUNDING = 0.001
"""Seconds by which a timer fires late rather than early: an early one would find nothing due."""


class Debounce(NamedTuple):
    """Seconds of quiet, and the longest wait."""

    quiet: float
    max_wait: float


class HeldKey(NamedTuple):
    """On the delay queue: a held candidate of this key waits for this time, without evaluation."""

    key: Key


class WholePass(NamedTuple):
    """On the delay queue: every key of a strategy is to be looked at, a slice at a time."""

    profile: int
    strategy: str
    low: bool


class Woken(NamedTuple):
    """On the delay queue: more keys than one slice that one event concerns."""

    number: int


Item = Key | HeldKey | WholePass | Woken

_SLICE = 500
"""Keys put on the queue in one go, so that a pass over a big cluster, or one event that concerns
thousands, does not block the loop."""


class Statistics(NamedTuple):
    changes: int
    idle_changes: int
    """Changes that concern nobody: heartbeats."""
    events: Mapping[str, int]
    keys: Mapping[tuple[str, str], int]
    """Keys put on the queue by a change, by action and strategy."""
    narrow_errors: Mapping[str, int]
    """Exceptions of strategies when asked which keys a change concerns; each taken for "yes"."""


class EventBus:
    """`sinks` are told of every change that decides something, before keys are looked up.

    They return what opened by it (gates, causes), which wakes like any other cluster event.
    """

    def __init__(
        self,
        queue: DelayQueue[Item],
        parking: Parking,
        *,
        strategies: Mapping[tuple[int, str], Strategy],
        debounce: Mapping[str, Debounce],
        lister: Lister,
        cycle: CycleNodes,
        clock: Clock,
        sinks: Sequence[Callable[[Change], Iterable[ClusterEvent]]],
        wake_held: Callable[[Iterable[ClusterEvent]], None],
    ) -> None:
        self._queue = queue
        self._parking = parking
        self._strategies = strategies
        self._debounce = debounce
        self._lister = lister
        self._cycle = cycle
        self._clock = clock
        self._sinks = tuple(sinks)
        self._wake_held = wake_held
        self._live = False
        self._passes: dict[WholePass, Iterator[Key | None]] = {}
        self._woken: dict[Woken, Iterator[Key]] = {}
        self._numbers = count()
        self.resynced: set[Key] = set()
        """Keys that wait only because a whole pass at low priority put them there."""
        self._changes = 0
        self._idle = 0
        self._events: Counter[Action] = Counter()
        self._keys: Counter[tuple[str, str]] = Counter()
        self._narrow_errors: Counter[str] = Counter()

    def go_live(self) -> None:
        """Start to turn changes into keys; before that the first lists only fill the cache."""
        self._live = True

    def on_change(self, change: Change) -> None:
        """Take a change in. Never raises, for the cache has it and will not tell of it again."""
        try:
            self._take(change)
        except Exception:
            log.exception("Change not understood; all is looked at anew", ref=change.ref)
            if self._live:
                self.look_at_everything()

    def _take(self, change: Change) -> None:
        self._changes += 1
        flipped = self._cycle.on_change(change)
        actions = cluster_events(change)
        if not actions:
            self._idle += 1
            return
        opened = [event for sink in self._sinks for event in sink(change)]
        if not self._live:
            return
        for action in actions:
            self._events[action] += 1
        if flipped:
            self.look_at_everything()
        self._spread(change, actions)
        if opened:
            self.wake(opened)

    def counts_again(self, uid: str) -> None:
        """Look at what a Pod concerns that counted as gone: to its neighbours it has just come."""
        pod = self._lister.pod(uid)
        if self._live and pod is not None:
            change = Change("Pod", None, pod)
            self._spread(change, cluster_events(change))

    def wake(self, events: Iterable[ClusterEvent]) -> None:
        """Wake whatever waits for these: parked keys and held candidates."""
        events = list(events)
        for event in events:
            self._look_in_slices(
                self._parking.woken(event.action, (event.ref,), self._takes(event.ref))
            )
        self._wake_held(events)

    def look_again(self, key: Key) -> None:
        """Evaluate the key once it is quiet."""
        debounce = self._debounce[key.strategy]
        self.resynced.discard(key)
        self._queue.add(key, quiet=debounce.quiet, max_wait=debounce.max_wait)

    def look_at_everything(self, *, low: bool = False) -> None:
        """Look at every key of every strategy; with `low`, live keys overtake them.

        Keys of what is no longer there are among them: they are forgotten by being looked at.
        """
        for profile, name in self._strategies:
            self._look_at_all_of(WholePass(profile, name, low))

    def _look_at_all_of(self, whole: WholePass) -> None:
        # One that is half done has looked at some keys too early: it begins anew.
        self._passes.pop(whole, None)
        self._queue.add(whole, low=whole.low)

    def wake_on(self, woken: Woken) -> None:
        """Look at the next keys that an event concerns, and come back for more."""
        self._look_in_slices(self._woken.pop(woken), woken)

    def _look_in_slices(self, keys: Iterator[Key], woken: Woken | None = None) -> None:
        taken = 0
        for key in islice(keys, _SLICE):
            taken += 1
            self.look_again(key)
        if taken == _SLICE:
            more = woken or Woken(next(self._numbers))
            self._woken[more] = keys
            self._queue.add(more)

    def slice_of(self, whole: WholePass) -> None:
        """Put the next keys of a whole pass on the queue, and the pass itself if there are more.

        Raises whatever the strategy does when asked for its keys; the next call starts anew.
        """
        keys = self._passes.pop(whole, None) or self._every_key(whole)
        taken = 0
        for key in islice(keys, _SLICE):
            taken += 1
            if key is None:
                continue
            if whole.low and not self._queue.pending(key):
                self.resynced.add(key)
            self._queue.add(key, low=whole.low)
        if taken == _SLICE:
            self._passes[whole] = keys
            self._queue.add(whole, low=whole.low)

    def _every_key(self, whole: WholePass) -> Iterator[Key | None]:
        """Yield a strategy's keys, then those remembered that are no longer among them.

        None stands for one that was passed over, so that slices stay short.
        """
        strategy = self._strategies[whole.profile, whole.strategy]
        first = not self._parking
        seen = set()
        for key in strategy.keys_of(self._lister):
            if key in self._parking:
                seen.add(key)
            yield key
        for key in () if first else tuple(self._parking):
            yield key if key[:2] == whole[:2] and key not in seen else None

    def look_at(self, item: Item, time: datetime) -> None:
        """Look at the key (or at its held candidates) at a time of the wall clock."""
        delay = max(0.0, (time - self._clock.now()).total_seconds()) + _ROUNDING
        self._queue.add_at(item, self._clock.monotonic() + delay)

    def statistics(self) -> Statistics:
        events = {str(action.name): count for action, count in self._events.items()}
        return Statistics(
            self._changes, self._idle, events, dict(self._keys), dict(self._narrow_errors)
        )

    def _counted(self, actions: Action, keys: Iterable[Key]) -> Iterator[Key]:
        """Pass the keys on, and count them under the first of the actions."""
        name = str(next(iter(actions)).name)
        for key in keys:
            self._keys[name, key.strategy] += 1
            yield key

    def _spread(self, change: Change, actions: Action) -> None:
        refs = touched(change)
        # All strategies are asked now, for what they are asked about moves on.
        self._look_in_slices(chain.from_iterable(list(self._subscribed(change, actions))))
        self._look_in_slices(
            self._counted(actions, self._parking.woken(actions, refs, self._fits(change)))
        )
        self._wake_held([ClusterEvent(actions, ref) for ref in refs])

    def _subscribed(self, change: Change, actions: Action) -> Iterator[Iterable[Key]]:
        for (profile, name), strategy in self._strategies.items():
            for subscription in strategy.EVENTS:
                if hit := subscription.action & actions:
                    whole = WholePass(profile, name, low=False)
                    try:
                        keys = self._narrowed(strategy, subscription, change)
                    except Exception:
                        self._doubt(whole)
                        continue
                    yield self._counted(hit, self._guarded(keys, whole))

    def _guarded(self, keys: Iterable[Key], whole: WholePass) -> Iterator[Key]:
        """Pass on the keys of a strategy's lazy answer; let a failure in it be no other than in the
        asking."""
        try:
            yield from keys
        except Exception:
            self._doubt(whole)

    def _doubt(self, whole: WholePass) -> None:
        """A strategy could not say which keys a change concerns: any key may be meant."""
        self._narrow_errors[whole.strategy] += 1
        self._look_at_all_of(whole)

    def _narrowed(
        self, strategy: Strategy, subscription: Subscription, change: Change
    ) -> Iterable[Key]:
        keys = strategy.keys_for(subscription.scope, change, self._lister)
        narrow = subscription.narrow
        if narrow is None:
            return keys if isinstance(keys, Iterator) else list(keys)
        found = []
        for key in keys:
            try:
                wanted = narrow(change, self._lister, key)
            except Exception:
                self._narrow_errors[strategy.NAME] += 1
                wanted = True
            if wanted:
                found.append(key)
        return found

    def _fits(self, change: Change) -> Callable[[Shape], bool]:
        """Return whether a Pod of a shape may fit a node that this change touched, as it is now."""
        names: set[str] = set()
        for side in (change.old, change.new):
            if isinstance(side, Node):
                names.add(side.name)
            elif isinstance(side, Pod) and side.node_name:
                names.add(side.node_name)
        return self._some_takes(names)

    def _takes(self, ref: Ref) -> Callable[[Shape], bool]:
        """Return whether a Pod of a shape may fit the node on which a gate let room go."""
        return self._some_takes((ref[2],) if ref[0] == "Node" else ())

    def _some_takes(self, names: Iterable[str]) -> Callable[[Shape], bool]:
        nodes = [node for name in names if (node := self._lister.node(name)) is not None]

        def fits(shape: Shape) -> bool:
            return any(shape_misfit(shape, node, self._lister) is None for node in nodes)

        return fits
