"""Booking: the room that a victim's replacement will take counts as taken from the request on.

It holds nobody by itself: node fit reads what is promised, and so the next one that counted on the
same room is refused when it is checked once more before its request. A promise ends when the
replacement is bound anywhere, when the request comes to nothing, or when it was waited for long
enough: not before the eviction itself. A dry run promises like a real one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import ClassVar, NamedTuple

from reactive_descheduler.api.changes import Action, Change, ClusterEvent
from reactive_descheduler.api.eviction import Answer, Candidate, EvictionOutcome
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod, controller
from reactive_descheduler.cache.promised import PromisedPods
from reactive_descheduler.framework.gate import OpenGate

RoomOf = Callable[[Candidate], Node | None]
_WILL_BE_REPLACED = frozenset({Answer.EVICTED, Answer.BACKGROUND, Answer.UNKNOWN, Answer.DRY_RUN})


class _Promise(NamedTuple):
    owner: str
    since: datetime
    until: datetime


class BookingGate(OpenGate):
    """Replacements are told by their owner's UID and by being created after the request.

    `under_way`: whether the eviction of the Pod with this UID is still waited for.
    """

    NAME: ClassVar[str] = "booking"

    def __init__(
        self, *, timeout: timedelta, under_way: Callable[[str], bool] = lambda _uid: False
    ) -> None:
        self.promised = PromisedPods()
        """What node fit reads; live."""
        self.timeout = timeout
        """A reload of the policy sets another; it counts for promises from then on."""
        self._under_way = under_way
        self._room_of: RoomOf | None = None
        self._promises: dict[str, _Promise] = {}

    def reconfigure(self, room_of: RoomOf | None) -> None:
        """`room_of`: which node would take the replacement; None: nothing is promised."""
        self._room_of = room_of
        if room_of is None:
            for uid in tuple(self._promises):
                self._end(uid)

    def sent(self, candidate: Candidate, now: datetime, /) -> None:
        node = self._room_of(candidate) if self._room_of is not None else None
        if node is None:
            return
        pod, owner = candidate.pod, controller(candidate.pod)
        self.promised.promise(pod, node.name)
        since = now.replace(microsecond=0)  # the API server's times have whole seconds
        self._promises[pod.uid] = _Promise(owner.uid if owner else "", since, now + self.timeout)

    def on_outcome(self, outcome: EvictionOutcome, now: datetime, /) -> Iterable[ClusterEvent]:
        if outcome.answer in _WILL_BE_REPLACED:
            return ()
        return self._end(outcome.candidate.pod.uid)

    def on_change(self, change: Change, now: datetime, /) -> Iterable[ClusterEvent]:
        old, new = change.old, change.new
        if not self._promises or not isinstance(new, Pod) or not new.node_name:
            return ()
        if isinstance(old, Pod) and old.node_name:
            return ()
        uid = self._oldest_that(new)
        return self._end(uid) if uid is not None else ()

    def on_jump(self, by: timedelta, /) -> None:
        for uid, each in self._promises.items():
            self._promises[uid] = each._replace(since=each.since + by, until=each.until + by)

    def stays(self, uid: str) -> Iterable[ClusterEvent]:
        """Learn that a Pod whose answer was lost was not evicted."""
        return self._end(uid)

    def expire(self, now: datetime) -> Iterator[ClusterEvent]:
        """End what was waited for long enough."""
        for uid, each in tuple(self._promises.items()):
            if each.until <= now and not self._under_way(uid):
                yield from self._end(uid)

    def _oldest_that(self, arrived: Pod) -> str | None:
        """Return whose promise is met by a Pod that was just bound, if anybody's."""
        owners = {owner.uid for owner in arrived.template.owners}
        for uid, each in self._promises.items():
            if each.owner in owners and (arrived.created is None or arrived.created >= each.since):
                return uid
        return None

    def _end(self, uid: str) -> Iterable[ClusterEvent]:
        self._promises.pop(uid, None)
        there = self.promised.end(uid)
        if there is None:
            return ()
        return (ClusterEvent(Action.REPLACED, ("Node", "", there.node_name)),)
