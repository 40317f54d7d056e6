"""Replacements: what evictions are still waited for to have their full effect.

It holds nobody by itself: it keeps, of every request from its start, whether the Pod is gone and
whether the Pod that its controller made in its place is bound. The hold rule (design 5.3) and the
booking of room ask it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import ClassVar

from reactive_descheduler.api.changes import Action, Change, ClusterEvent
from reactive_descheduler.api.eviction import Answer, Candidate, EvictionOutcome
from reactive_descheduler.api.pod import Pod, controller
from reactive_descheduler.framework.gate import OpenGate

_GOING = frozenset({Answer.EVICTED, Answer.UNKNOWN, Answer.BACKGROUND})
_REPLACE_NOTHING = frozenset({"Job", "Node"})
"""Kinds of owners that need not make a new Pod for one that went."""


class Awaited:
    """One eviction that is under way."""

    __slots__ = (
        "candidate",
        "gone",
        "in_background",
        "in_flight",
        "owner",
        "replaced",
        "since",
        "timeout",
        "until",
    )

    def __init__(self, candidate: Candidate, now: datetime, timeout: timedelta) -> None:
        owner = controller(candidate.pod)
        self.candidate = candidate
        self.owner = owner.uid if owner and owner.kind not in _REPLACE_NOTHING else ""
        """UID of the controller whose new Pod is waited for; empty when none is."""
        self.replaced: datetime | None = None
        """When the bound Pod that counts as its replacement was made."""
        self.gone = False
        self.in_background = False
        """A webhook has taken it over, and the Pod is not seen to go yet."""
        self.in_flight = True
        """The request is not answered yet, and the Pod not seen to go."""
        self.since = now
        self.timeout = timeout
        self.until = now + timeout
        """From then on it is waited for no longer, unless it goes on in flight or in background.
        Each step that is seen moves it: a Pod may take its time to end, and be replaced only
        then."""

    @property
    def complete(self) -> bool:
        return self.gone and (self.replaced is not None or not self.owner)

    def is_over(self, now: datetime) -> bool:
        return self.until <= now and not self.in_flight and not self.in_background

    def may_be_over(self, now: datetime) -> datetime:
        """Return when to look whether it is over."""
        return self.until if now < self.until else now + self.timeout

    def wait_from(self, time: datetime) -> None:
        """Wait for its next step from then on, which is the whole timeout."""
        self.until = max(self.until, time + self.timeout)

    def goes(self) -> None:
        """Its Pod is seen to go, whatever the answer may be."""
        self.in_flight = self.in_background = False

    def may_take(self, made: datetime | None, now: datetime) -> bool:
        """Say whether a Pod of its owner that was made then may be what replaces it."""
        if self.replaced is not None or self.is_over(now):
            return False
        # The API server's times have whole seconds.
        return made is not None and made >= self.since.replace(microsecond=0)


class ReplacementsGate(OpenGate):
    """Replacements are told by their owner's UID and by being created after the request: counted,
    not paired. One counts for the oldest eviction of its owner; if that turns out to have come to
    nothing, for the next.

    `goes_on`: whether a Pod's eviction goes on in background.
    """

    NAME: ClassVar[str] = "replacements"

    def __init__(
        self, *, timeout: timedelta, goes_on: Callable[[str], bool] = lambda _uid: False
    ) -> None:
        self.timeout = timeout
        """A reload of the policy sets another; it counts for evictions from then on."""
        self._goes_on = goes_on
        self._awaited: dict[str, Awaited] = {}
        self._of_owner: dict[str, dict[str, Awaited]] = {}

    def awaited(self, now: datetime) -> Iterator[Awaited]:
        """Yield what is under way, the oldest first, from the start of the request on."""
        for each in tuple(self._awaited.values()):
            if not each.is_over(now):
                yield each

    def awaits(self, uid: str) -> bool:
        """Say whether the eviction of this Pod is under way; until `expire` is called it is."""
        return uid in self._awaited

    def expire(self, now: datetime) -> Iterator[ClusterEvent]:
        """Forget what was waited for long enough, and what was given up in background."""
        for uid, each in tuple(self._awaited.items()):
            if each.is_over(now):
                self._drop(uid)
                yield _ended(each)
            elif self._was_given_up(each):
                yield from self._comes_to_nothing(uid, now)

    def take(self, candidate: Candidate, now: datetime, /) -> None:
        each = Awaited(candidate, now, self.timeout)
        self._awaited[candidate.pod.uid] = each
        if each.owner:
            self._of_owner.setdefault(each.owner, {})[candidate.pod.uid] = each

    def give_back(self, candidate: Candidate, now: datetime, /) -> None:
        self._drop(candidate.pod.uid)

    def on_outcome(self, outcome: EvictionOutcome, now: datetime, /) -> Iterable[ClusterEvent]:
        uid = outcome.candidate.pod.uid
        if outcome.answer not in _GOING:
            return self._comes_to_nothing(uid, now)
        each = self._awaited.get(uid)
        if each is not None and each.in_flight:
            each.in_flight = False
            each.in_background = outcome.answer is Answer.BACKGROUND
            each.wait_from(now)
        return ()

    def on_change(self, change: Change, now: datetime, /) -> Iterable[ClusterEvent]:
        old, new = change.old, change.new
        if not self._awaited or change.kind != "Pod":
            return ()
        if isinstance(new, Pod):
            arrived = new.node_name and not (isinstance(old, Pod) and old.node_name)
            found = list(self._replaced_by(new, now)) if arrived else []
            return (*found, *self._moved_on(new, now))
        return self._left(old.uid, now) if isinstance(old, Pod) else ()

    def on_jump(self, by: timedelta, /) -> None:
        for each in self._awaited.values():
            each.since += by
            each.until += by

    def stays(self, uid: str, now: datetime) -> Iterable[ClusterEvent]:
        """Learn that a Pod whose answer was lost was not evicted."""
        return self._comes_to_nothing(uid, now)

    def _moved_on(self, pod: Pod, now: datetime) -> Iterable[ClusterEvent]:
        """Follow a Pod that is still there, as it is now."""
        if not pod.active:
            return self._left(pod.uid, now)
        each = self._awaited.get(pod.uid)
        if each is None:
            return ()
        if pod.deleted is not None:
            each.goes()
            each.wait_from(pod.deleted)
        elif self._was_given_up(each):
            return self._comes_to_nothing(pod.uid, now)
        return ()

    def _was_given_up(self, each: Awaited) -> bool:
        return each.in_background and not self._goes_on(each.candidate.pod.uid)

    def _replaced_by(self, pod: Pod, now: datetime) -> Iterable[ClusterEvent]:
        """Take a Pod that was just bound for the replacement of the oldest one of its owner."""
        for owner in pod.template.owners:
            if events := self._credit(owner.uid, pod.created, now):
                return events
        return ()

    def _credit(self, owner: str, made: datetime | None, now: datetime) -> tuple[ClusterEvent, ...]:
        """Let a Pod made then count for the oldest eviction that it may have been made for."""
        for each in self._of_owner.get(owner, {}).values():
            if each.may_take(made, now):
                each.replaced = made
                return self._one_step(each)
        return ()

    def _left(self, uid: str, now: datetime) -> Iterable[ClusterEvent]:
        each = self._awaited.get(uid)
        if each is None or each.gone:
            return ()
        each.gone = True
        each.goes()
        each.wait_from(now)
        return self._one_step(each)

    def _one_step(self, each: Awaited) -> tuple[ClusterEvent, ...]:
        if each.complete:
            self._drop(each.candidate.pod.uid)
        return (_ended(each),)

    def _comes_to_nothing(self, uid: str, now: datetime) -> Iterable[ClusterEvent]:
        each = self._drop(uid)
        if each is None:
            return ()
        another = self._credit(each.owner, each.replaced, now) if each.replaced else ()
        return (_ended(each), *another)

    def _drop(self, uid: str) -> Awaited | None:
        each = self._awaited.pop(uid, None)
        if each is not None and each.owner:
            of_owner = self._of_owner[each.owner]
            del of_owner[uid]
            if not of_owner:
                del self._of_owner[each.owner]
        return each


def _ended(each: Awaited) -> ClusterEvent:
    return ClusterEvent(Action.REPLACED, each.candidate.pod.ref)
