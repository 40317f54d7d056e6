"""Keys, each at its time: one queue for debounce, ages, retries, windows and resync.

A key is there once, however often it is added. Two things can make it due: a *debounce* (quiet time
re-armed by each `add`, but never past the longest wait) and a *timer* (`add_at`). It is handed out
to one taker at a time; what is added meanwhile is handed out after `done`. Nothing is dropped.

All of it is synchronous and takes the monotonic time as an argument; only `get` waits.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

from reactive_descheduler.kit.clock import Clock

K = TypeVar("K", bound=Hashable)

_NEVER = float("inf")
_EARLY = 1e-6
"""Seconds by which a key may be handed out before it is due: an event loop fires its timers early
by up to its clock's resolution, and a taker that then finds nothing would come again at once."""


_LOOKS = 500
"""Places of the heap that are looked at in one go, where something is ready already."""


class Statistics(NamedTuple):
    waiting: int
    """Keys with a time that has not come, timers included."""
    ready: int
    """Keys whose time has come and that nobody has taken yet."""
    processing: int
    oldest_ready: float
    """Seconds that the longest-waiting ready key has been due; 0 if there is none."""


class Due(NamedTuple, Generic[K]):
    """A key whose time has come. `since`: monotonic time of the first `add` since it was last
    taken."""

    key: K
    since: float | None


class _Entry:
    __slots__ = ("debounced", "latest", "low", "queued", "since", "timer")

    def __init__(self) -> None:
        self.debounced = _NEVER
        self.latest = _NEVER
        self.timer = _NEVER
        self.since: float | None = None
        self.low = True
        self.queued = _NEVER  # the earliest time under which the heap holds the key

    @property
    def due(self) -> float:
        return min(self.debounced, self.latest, self.timer)


class DelayQueue(Generic[K]):
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: dict[K, _Entry] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._left: dict[K, float] = {}
        """Times of places that keys have in the heap and do not need now. Such a place serves the
        key's next timer: each look at a key sets its far-off age anew, and the heap must not grow
        by that."""
        self._sequence = 0
        self._ready: deque[tuple[float, K]] = deque()
        self._ready_low: deque[tuple[float, K]] = deque()
        self._ready_keys: set[K] = set()
        self._processing: set[K] = set()
        self._wake = asyncio.Event()
        self._closed = False

    def add(self, key: K, *, quiet: float = 0.0, max_wait: float = 0.0, low: bool = False) -> None:
        """Make the key due once it was left alone for `quiet` seconds, at the latest after
        `max_wait`.

        `low`: live keys overtake it (a full pass); a live `add` of the same key lifts it.
        """
        now = self._clock.monotonic()
        entry = self._entry(key)
        entry.debounced = now + quiet
        entry.latest = min(entry.latest, now + max(max_wait, quiet))
        if entry.since is None:
            entry.since = now
        self._lift(key, entry, low=low)
        self._arm(key, entry)

    def add_at(self, key: K, time: float) -> None:
        """Make the key due at this monotonic time, if nothing makes it due before."""
        entry = self._entry(key)
        entry.timer = min(entry.timer, time)
        self._lift(key, entry, low=False)
        self._arm(key, entry)

    def discard_timer(self, key: K) -> None:
        """Forget what `add_at` asked for; a debounce stays."""
        entry = self._entries.get(key)
        if entry is None or key in self._ready_keys:
            return
        entry.timer = _NEVER
        if entry.due == _NEVER:
            del self._entries[key]  # what the heap still holds of it is skipped when it comes up
            self._leave(key, entry.queued)

    def pending(self, key: K) -> bool:
        """Say whether a change has put the key here; a mere timer does not count."""
        entry = self._entries.get(key)
        return key in self._ready_keys or (entry is not None and entry.since is not None)

    def pop(self) -> Due[K] | None:
        """Take the next key that is due, live ones first; None if there is none."""
        self._promote()
        for ready in (self._ready, self._ready_low):
            while ready:
                _, key = ready.popleft()
                if key not in self._ready_keys:
                    continue  # lifted to the live line meanwhile, and taken from there
                self._ready_keys.discard(key)
                entry = self._entries.pop(key)
                self._processing.add(key)
                return Due(key, entry.since)
        return None

    def done(self, key: K) -> None:
        """Say that the key taken was dealt with; what was added meanwhile may be handed out now."""
        self._processing.discard(key)
        entry = self._entries.get(key)
        if entry is not None:
            entry.queued = _NEVER
            self._arm(key, entry)

    def next_due(self) -> float | None:
        """Return the monotonic time at which `pop` may next find something; None if never."""
        if self._ready or self._ready_low:
            return self._clock.monotonic()
        return self._heap[0][0] if self._heap else None

    def has_due(self) -> bool:
        """Say whether the time of some key has come."""
        at = self.next_due()
        return at is not None and at <= self._clock.monotonic()

    async def get(self) -> Due[K] | None:
        """Wait for the next key that is due and take it; None after `shut_down`."""
        while not self._closed:
            due = self.pop()
            if due is not None:
                return due
            self._wake.clear()
            at = self.next_due()
            timer: asyncio.TimerHandle | None = None
            if at is not None:
                delay = max(0.0, at - self._clock.monotonic())
                timer = asyncio.get_running_loop().call_later(delay, self._wake.set)
            try:
                await self._wake.wait()
            finally:
                if timer is not None:
                    timer.cancel()
        return None

    def shut_down(self) -> None:
        """Let every `get` return None; what is queued stays countable, but is not handed out."""
        self._closed = True
        self._wake.set()

    def statistics(self) -> Statistics:
        now = self._clock.monotonic()
        oldest = min((line[0][0] for line in (self._ready, self._ready_low) if line), default=now)
        return Statistics(
            waiting=len(self._entries) - len(self._ready_keys),
            ready=len(self._ready_keys),
            processing=len(self._processing),
            oldest_ready=max(0.0, now - oldest),
        )

    def _entry(self, key: K) -> _Entry:
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry()
        return entry

    def _arm(self, key: K, entry: _Entry) -> None:
        if key in self._processing or key in self._ready_keys:
            return  # one key is never with two takers: `done` arms what is added meanwhile
        due = entry.due
        # A time that moved back leaves its old place in the heap, where `_promote` finds it early
        # and files it anew: cheaper than taking it out.
        if due < entry.queued:
            left = self._left.get(key, _NEVER)
            if left <= due:
                del self._left[key]
                entry.queued = left
                return
            self._leave(key, entry.queued)
            entry.queued = due
            self._sequence += 1
            heapq.heappush(self._heap, (due, self._sequence, key))
            self._wake.set()

    def _leave(self, key: K, time: float) -> None:
        if time < self._left.get(key, _NEVER):
            self._left[key] = time

    def _lift(self, key: K, entry: _Entry, *, low: bool) -> None:
        if entry.low and not low and key in self._ready_keys:
            # Its place in the low line stays, and is skipped when it comes up.
            self._ready.append((self._clock.monotonic(), key))
        entry.low = entry.low and low

    def _promote(self) -> None:
        """Move what is due to its line; by parts, for a hundred thousand may be due at once."""
        now = self._clock.monotonic() + _EARLY
        looks = 0
        while self._heap and self._heap[0][0] <= now:
            looks += 1
            if looks > _LOOKS and self._ready_keys:
                return  # the next `pop` goes on
            at, _, key = heapq.heappop(self._heap)
            if self._left.get(key) == at:
                del self._left[key]
            entry = self._entries.get(key)
            if entry is None or key in self._processing or key in self._ready_keys:
                continue
            if entry.queued != at:
                continue  # an older place of a key that has an earlier one
            if entry.due > now:
                entry.queued = _NEVER
                self._arm(key, entry)
                continue
            self._ready_keys.add(key)
            (self._ready_low if entry.low else self._ready).append((entry.due, key))
