"""Since when each cause holds: what the settle gate asks.

A cause begins with the first change that led to it and ends when no key offers a candidate of it
any more. A change that interrupts it (`Strategy.breaks`) restarts its time even if, inside one
debounce batch, the cause is back before anybody evaluates.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import structlog

from reactive_descheduler.api.changes import Change, Key
from reactive_descheduler.api.eviction import Candidate, Cause
from reactive_descheduler.api.meta import Ref

log = structlog.get_logger()

Identity = tuple[str, tuple[str, ...]]
Breaks = Callable[[Key, Cause, Change], bool]

_FORGET_BREAK_AFTER = timedelta(minutes=10)


def identity(cause: Cause) -> Identity:
    """Return what makes two causes the same: kind and ident, not the objects they stand on."""
    return (cause.kind, cause.ident)


class Causes:
    """`longest_batch`: how long changes may be gathered before a key is evaluated."""

    def __init__(self, breaks: Breaks, *, longest_batch: timedelta) -> None:
        self.breaks = breaks
        self.longest_batch = longest_batch
        """A reload of the policy sets both anew."""
        self._recent: deque[tuple[datetime, Ref]] = deque()
        self._recent_of: dict[Ref, deque[tuple[datetime, Change]]] = {}
        self._began: dict[Identity, datetime] = {}
        self._holders: dict[Identity, dict[Key, Cause]] = {}
        self._of_key: dict[Key, set[Identity]] = {}
        self._on_object: dict[Ref, set[Identity]] = {}
        self._broken: dict[Identity, datetime] = {}
        self._failed: set[str] = set()

    def evaluated(
        self, key: Key, offered: Sequence[Candidate], *, since: datetime, now: datetime
    ) -> None:
        """Take note of what an evaluation offered. `since`: the first change that led to it."""
        before = self._of_key.pop(key, set())
        current: set[Identity] = set()
        for candidate in offered:
            cause = candidate.cause
            ident = identity(cause)
            current.add(ident)
            self._hold(ident, key, cause)
            if ident not in self._began:
                # After a break the time at which the cause came back is not known, only that it is
                # after `since`; the later time is the safe one.
                broken = ident in self._broken or self._broke_since(since, key, cause)
                self._began[ident] = now if broken else since
                self._broken.pop(ident, None)
        if current:
            self._of_key[key] = current
        for ident in before - current:
            self._release(ident, key)

    def on_change(self, change: Change, now: datetime) -> bool:
        """Restart every cause that this change interrupts; say whether there was one."""
        found = False
        self._remember(change, now)
        for ident in tuple(self._on_object.get(change.ref, ())):
            holders = self._holders.get(ident)
            if not holders:
                continue
            key, cause = next(iter(holders.items()))
            if ident in self._began and self._is_broken(key, cause, change):
                del self._began[ident]
                self._broken[ident] = now
                found = True
        if found and len(self._broken) > 1000:
            limit = now - _FORGET_BREAK_AFTER
            self._broken = {ident: at for ident, at in self._broken.items() if at > limit}
        return found

    def on_jump(self, by: timedelta, now: datetime) -> None:
        """The wall clock jumped: every cause has stood for as long as before."""
        # What was noted by the new clock already must not come to lie ahead.
        self._began = {ident: min(began + by, now) for ident, began in self._began.items()}
        self._broken = {ident: at + by for ident, at in self._broken.items()}
        self._recent = deque((at + by, ref) for at, ref in self._recent)
        for ref, changes in self._recent_of.items():
            self._recent_of[ref] = deque((at + by, change) for at, change in changes)

    def keep(self, keys: Container[Key]) -> None:
        """Let go of the causes of all other keys: their strategies are no longer there."""
        for key in [key for key in self._of_key if key not in keys]:
            for ident in self._of_key.pop(key):
                self._release(ident, key)

    def began(self, cause: Cause) -> datetime | None:
        """Return since when the cause holds; None after a break, until an evaluation offers it
        again."""
        began = self._began.get(identity(cause))
        if cause.proven_since is None:
            return began
        return min(cause.proven_since, began) if began is not None else cause.proven_since

    def held(self) -> Iterable[Identity]:
        """Return the causes that hold now."""
        return self._holders.keys()

    def _hold(self, ident: Identity, key: Key, cause: Cause) -> None:
        holders = self._holders.setdefault(ident, {})
        before = holders.get(key)
        holders[key] = cause
        for ref in cause.objects:
            self._on_object.setdefault(ref, set()).add(ident)
        if before is not None and before.objects != cause.objects:
            self._let_go(before, ident, holders)

    def _remember(self, change: Change, now: datetime) -> None:
        """Keep what may have interrupted a cause that no evaluation has offered yet."""
        while self._recent and self._recent[0][0] < now - self.longest_batch:
            _, ref = self._recent.popleft()
            changes = self._recent_of[ref]
            changes.popleft()
            if not changes:
                del self._recent_of[ref]
        if change.old is not None:  # what is new has interrupted nothing
            self._recent.append((now, change.ref))
            self._recent_of.setdefault(change.ref, deque()).append((now, change))

    def _broke_since(self, since: datetime, key: Key, cause: Cause) -> bool:
        """Say whether a cause left, and came back, within the batch that it is first seen in."""
        return any(
            at >= since and self._is_broken(key, cause, change)
            for ref in cause.objects
            for at, change in self._recent_of.get(ref, ())
        )

    def _is_broken(self, key: Key, cause: Cause, change: Change) -> bool:
        try:
            return self.breaks(key, cause, change)
        except Exception:  # doubt means: let it settle anew
            if key.strategy not in self._failed:
                self._failed.add(key.strategy)
                log.exception("strategy failed to judge a break", strategy=key.strategy)
            return True

    def _release(self, ident: Identity, key: Key) -> None:
        holders = self._holders.get(ident)
        if holders is None:
            return
        cause = holders.pop(key, None)
        if cause is not None:
            self._let_go(cause, ident, holders)
        if not holders:
            del self._holders[ident]
            self._began.pop(ident, None)

    def _let_go(self, cause: Cause, ident: Identity, holders: Mapping[Key, Cause]) -> None:
        """Listen no more to objects that nobody who holds the cause stands on."""
        # Causes of one identity may stand on different objects; a shared node stays.
        still = {ref for other in holders.values() for ref in other.objects}
        for ref in cause.objects:
            if ref not in still:
                self._unindex(ref, ident)

    def _unindex(self, ref: Ref, ident: Identity) -> None:
        idents = self._on_object.get(ref)
        if idents is not None:
            idents.discard(ident)
            if not idents:
                del self._on_object[ref]
