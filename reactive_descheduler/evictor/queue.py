"""The eviction queue: the latest candidates of each key, those that may go and those that are held.

A new evaluation of a key replaces what the key had here, but for what is in flight. A held
candidate stays, filed under its wakes; a wake returns it to the running order without evaluating
its key, which happens before the send anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from reactive_descheduler.api.changes import Action, At, ClusterEvent, Key, On
from reactive_descheduler.api.eviction import Candidate, Held
from reactive_descheduler.api.meta import Ref
from reactive_descheduler.evictor.running_order import RunningOrder


class Statistics(NamedTuple):
    ready: int
    held: int
    in_flight: int


class Queued:
    """One candidate on its way. Identity is that of the object: a replaced one is another."""

    __slots__ = ("candidate", "change_seen", "enqueued", "held", "order", "urgency")

    def __init__(
        self,
        candidate: Candidate,
        *,
        urgency: int,
        order: int,
        enqueued: datetime,
        change_seen: datetime | None,
    ) -> None:
        self.candidate = candidate
        self.urgency = urgency
        self.order = order
        self.enqueued = enqueued
        self.change_seen = change_seen
        self.held: Held | None = None

    @property
    def namespace(self) -> str:
        return self.candidate.pod.namespace

    @property
    def priority(self) -> int | None:
        return self.candidate.pod.template.priority

    @property
    def rank(self) -> float:
        return self.candidate.rank


class EvictionQueue:
    """`timer` is asked to call `wake_key` for a key at a time (the one delay queue does it)."""

    def __init__(self, *, timer: Callable[[Key, datetime], None]) -> None:
        self._timer = timer
        self._of_key: dict[Key, dict[str, Queued]] = {}
        self._ready: RunningOrder[Queued] = RunningOrder()
        self._held_on: dict[Ref | None, dict[int, tuple[Action, Queued]]] = {}
        self._any_actions = Action(0)
        """What the held candidates wait for on any object: most events are not among it."""
        self._in_flight: dict[str, Queued] = {}

    def replace(
        self,
        key: Key,
        candidates: Sequence[Candidate],
        *,
        urgency: int,
        now: datetime,
        change_seen: datetime | None,
    ) -> None:
        """Let these be the key's candidates, in the strategy's own order."""
        before = self._of_key.pop(key, {})
        current: dict[str, Queued] = {}
        for order, candidate in enumerate(candidates):
            uid = candidate.pod.uid
            if uid in self._in_flight:
                continue
            known = before.pop(uid, None)
            if known is not None:
                # Same Pod: its place and its age in the queue stay. What held it may have changed.
                known.candidate, known.order = candidate, order
                current[uid] = known
                self.release(known)
                continue
            entry = Queued(
                candidate, urgency=urgency, order=order, enqueued=now, change_seen=change_seen
            )
            current[uid] = entry
            self._ready.add(entry)
        for entry in before.values():
            self._remove(entry)
        if current:
            self._of_key[key] = current

    def best(self, now: datetime) -> Queued | None:
        """Return the one that is next among those that nothing is known to hold."""
        return self._ready.best(now)

    def hold(self, entry: Queued, held: Held) -> None:
        """File the candidate under what it waits for."""
        self._ready.discard(entry)
        entry.held = held
        for wake in held.wakes:
            if isinstance(wake, At):
                self._timer(entry.candidate.key, wake.time)
            elif isinstance(wake, On):
                waiting = self._held_on.setdefault(wake.ref, {})
                action = waiting.get(id(entry), (Action(0), entry))[0]
                waiting[id(entry)] = (action | wake.action, entry)
                if wake.ref is None:
                    self._any_actions |= wake.action

    def release(self, entry: Queued) -> None:
        """Return a held candidate to the running order."""
        self._unfile(entry)
        self._ready.add(entry)

    def drop(self, entry: Queued) -> None:
        """Take the candidate out: it was rejected, or is no longer offered."""
        self._remove(entry)
        key = entry.candidate.key
        entries = self._of_key.get(key)
        if entries is not None and entries.get(entry.candidate.pod.uid) is entry:
            del entries[entry.candidate.pod.uid]
            if not entries:
                del self._of_key[key]

    def start(self, entry: Queued) -> None:
        """Move the candidate to those in flight."""
        self.drop(entry)
        pod = entry.candidate.pod
        self._in_flight[pod.uid] = entry
        self._ready.served(pod.namespace)

    def finish(self, entry: Queued) -> None:
        """Its request was answered."""
        self._in_flight.pop(entry.candidate.pod.uid, None)

    def wake_key(self, key: Key) -> bool:
        """Return the key's held candidates to the running order; say whether there was one."""
        woken = [entry for entry in self._of_key.get(key, {}).values() if entry.held is not None]
        for entry in woken:
            self.release(entry)
        return bool(woken)

    def wake(self, event: ClusterEvent) -> bool:
        """Return to the running order what waits for this; say whether there was one."""
        refs = (event.ref, None) if event.action & self._any_actions else (event.ref,)
        woken = [
            entry
            for ref in refs
            for action, entry in self._held_on.get(ref, {}).values()
            if action & event.action
        ]
        for entry in woken:
            self.release(entry)
        return bool(woken)

    def candidates(self) -> Iterator[Queued]:
        """Yield what is ready or held."""
        for entries in self._of_key.values():
            yield from entries.values()

    def offers(self, key: Key) -> Sequence[Candidate]:
        entries = self._of_key.get(key, {})
        return [e.candidate for e in sorted(entries.values(), key=lambda entry: entry.order)]

    def in_flight(self) -> Iterable[Queued]:
        return self._in_flight.values()

    def statistics(self) -> Statistics:
        total = sum(len(entries) for entries in self._of_key.values())
        return Statistics(len(self._ready), total - len(self._ready), len(self._in_flight))

    def _remove(self, entry: Queued) -> None:
        self._ready.discard(entry)
        self._unfile(entry)

    def _unfile(self, entry: Queued) -> None:
        if entry.held is None:
            return
        for wake in entry.held.wakes:
            if isinstance(wake, On) and (waiting := self._held_on.get(wake.ref)):
                waiting.pop(id(entry), None)
                if not waiting:
                    del self._held_on[wake.ref]
                    if wake.ref is None:
                        self._any_actions = Action(0)
        entry.held = None
