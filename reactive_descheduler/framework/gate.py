"""The interface of a gate: a stateful permit, taken and given back in one synchronous step."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import ClassVar, Protocol

from reactive_descheduler.api.changes import Change, ClusterEvent, Wakes
from reactive_descheduler.api.eviction import Candidate, EvictionOutcome, Held, Rejection


class Gate(Protocol):
    """One reason to wait. All gates are asked, then all permits are taken, without an await
    between."""

    NAME: ClassVar[str]
    REJECTS: ClassVar[bool]
    """Whether `check` may return a Rejection: only such gates are asked in an evaluation."""

    def closed(self, now: datetime, /) -> Held | None:
        """Return what holds everything (bucket, stale, not synced), else None."""

    def check(self, candidate: Candidate, now: datetime, /) -> Held | Rejection | None:
        """Return what holds this candidate. Pure: `plan`, evaluation and the status page ask
        too."""

    def take(self, candidate: Candidate, now: datetime, /) -> None:
        """Take the permit. All checks passed just before, so it cannot fail."""

    def sent(self, candidate: Candidate, now: datetime, /) -> None:
        """The candidate stood the last look, and its request starts now."""

    def give_back(self, candidate: Candidate, now: datetime, /) -> None:
        """Give the permit back: nothing was sent."""

    def on_outcome(self, outcome: EvictionOutcome, now: datetime, /) -> Iterable[ClusterEvent]:
        """Learn what a request came to; the cluster events returned wake others."""

    def on_change(self, change: Change, now: datetime, /) -> Iterable[ClusterEvent]:
        """Learn of a change in the cluster; the cluster events returned wake others."""

    def on_jump(self, by: timedelta, /) -> None:
        """Shift every time noted: the wall clock jumped, and it is to last as long as it was."""

    def snapshot(self) -> bytes:
        """Return what must survive a restart, for the ledger; `b""` where nothing must."""

    def restore(self, saved: bytes, now: datetime, /) -> None:
        """Take up what another process saved."""


class OpenGate:
    """What a gate does where it has nothing to say; gates override what they need."""

    REJECTS: ClassVar[bool] = False

    def closed(self, now: datetime, /) -> Held | None:
        return None

    def check(self, candidate: Candidate, now: datetime, /) -> Held | Rejection | None:
        return None

    def take(self, candidate: Candidate, now: datetime, /) -> None:
        return None

    def sent(self, candidate: Candidate, now: datetime, /) -> None:
        return None

    def give_back(self, candidate: Candidate, now: datetime, /) -> None:
        return None

    def on_outcome(self, outcome: EvictionOutcome, now: datetime, /) -> Iterable[ClusterEvent]:
        return ()

    def on_change(self, change: Change, now: datetime, /) -> Iterable[ClusterEvent]:
        return ()

    def on_jump(self, by: timedelta, /) -> None:
        return None

    def snapshot(self) -> bytes:
        return b""

    def restore(self, saved: bytes, now: datetime, /) -> None:
        return None


def blocked(by: str, reason: str, wakes: Wakes, candidate: Candidate) -> Held | Rejection:
    """Return what keeps a Pod for so long that its strategy had better turn to another, as
    upstream does after a refusal. Where the key is of this Pod alone there is no other: it waits
    in the queue."""
    pod = candidate.pod
    if candidate.key.unit == (pod.uid,):
        return Held(by, reason, wakes)
    return Rejection(by, reason, wakes, pod.ref)
