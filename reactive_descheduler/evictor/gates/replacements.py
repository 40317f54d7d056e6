"""Replacements: what evictions are still waited for to have their full effect.

It holds nobody by itself: it keeps, of every request from its start, whether the Pod is gone and
whether the Pod that its controller made in its place is bound. The hold rule (design 5.3) and the
booking of room ask it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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

    __slots__ = ("candidate", "gone", "owner", "since", "until")

    def __init__(self, candidate: Candidate, now: datetime, timeout: timedelta) -> None:
        owner = controller(candidate.pod)
        self.candidate = candidate
        self.owner = owner.uid if owner and owner.kind not in _REPLACE_NOTHING else ""
        """UID of the controller whose new Pod is waited for; empty when none is, or no longer."""
        self.gone = False
        self.since = now
        self.until = now + timeout
        """From then on it is waited for no longer."""


class ReplacementsGate(OpenGate):
    """Replacements are told by their owner's UID and by being created after the request: counted,
    not paired."""

    NAME: ClassVar[str] = "replacements"

    def __init__(self, *, timeout: timedelta) -> None:
        self.timeout = timeout
        """A reload of the policy sets another; it counts for evictions from then on."""
        self._awaited: dict[str, Awaited] = {}
        self._of_owner: dict[str, dict[str, Awaited]] = {}

    def awaited(self, now: datetime) -> Iterator[Awaited]:
        """Yield what is under way, the oldest first, from the start of the request on."""
        self.expire(now)
        yield from tuple(self._awaited.values())

    def expire(self, now: datetime) -> None:
        """Forget what was waited for long enough: only keys of balance strategies ask, and there
        may be none."""
        for uid in [uid for uid, each in self._awaited.items() if each.until <= now]:
            self._drop(uid)

    def take(self, candidate: Candidate, now: datetime, /) -> None:
        each = Awaited(candidate, now, self.timeout)
        self._awaited[candidate.pod.uid] = each
        if each.owner:
            self._of_owner.setdefault(each.owner, {})[candidate.pod.uid] = each

    def give_back(self, candidate: Candidate, now: datetime, /) -> None:
        self._drop(candidate.pod.uid)

    def on_outcome(self, outcome: EvictionOutcome, now: datetime, /) -> Iterable[ClusterEvent]:
        pod = outcome.candidate.pod
        if outcome.answer in _GOING:
            return ()
        self._drop(pod.uid)
        return (ClusterEvent(Action.REPLACED, pod.ref),)

    def on_change(self, change: Change, now: datetime, /) -> Iterable[ClusterEvent]:
        old, new = change.old, change.new
        if not self._awaited or change.kind != "Pod":
            return ()
        if isinstance(new, Pod):
            arrived = new.node_name and not (isinstance(old, Pod) and old.node_name)
            found = list(self._replaced_by(new)) if arrived else []
            return (*found, *self._left(new.uid)) if not new.active else found
        return self._left(old.uid) if isinstance(old, Pod) else ()

    def on_jump(self, by: timedelta, /) -> None:
        for each in self._awaited.values():
            each.since += by
            each.until += by

    def stays(self, uid: str) -> Iterable[ClusterEvent]:
        """Learn that a Pod whose answer was lost was not evicted."""
        each = self._awaited.get(uid)
        if each is None:
            return ()
        self._drop(uid)
        return (ClusterEvent(Action.REPLACED, each.candidate.pod.ref),)

    def _replaced_by(self, pod: Pod) -> Iterator[ClusterEvent]:
        """Take a Pod that was just bound for the replacement of the oldest one of its owner."""
        for owner in pod.template.owners:
            for each in self._of_owner.get(owner.uid, {}).values():
                # The API server's times have whole seconds.
                if pod.created is None or pod.created < each.since.replace(microsecond=0):
                    continue
                self._leave_owner(each)
                yield from self._ended(each)
                return

    def _left(self, uid: str) -> Iterable[ClusterEvent]:
        each = self._awaited.get(uid)
        if each is None or each.gone:
            return ()
        each.gone = True
        return self._ended(each)

    def _ended(self, each: Awaited) -> Iterable[ClusterEvent]:
        if each.gone and not each.owner:
            self._drop(each.candidate.pod.uid)
        return (ClusterEvent(Action.REPLACED, each.candidate.pod.ref),)

    def _drop(self, uid: str) -> None:
        each = self._awaited.pop(uid, None)
        if each is not None:
            self._leave_owner(each)

    def _leave_owner(self, each: Awaited) -> None:
        if not each.owner:
            return
        of_owner = self._of_owner[each.owner]
        del of_owner[each.candidate.pod.uid]
        if not of_owner:
            del self._of_owner[each.owner]
        each.owner = ""
