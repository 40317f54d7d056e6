"""Background: a Pod whose eviction a webhook has taken over is not asked for again meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import ClassVar

from reactive_descheduler.api.changes import Action, At, Change, ClusterEvent, On, Wake
from reactive_descheduler.api.eviction import Answer, Candidate, EvictionOutcome, Held
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.evictor.background import BackgroundEvictions, Ended
from reactive_descheduler.framework.gate import OpenGate

_ENDS = (
    Action.POD_ANNOTATIONS
    | Action.POD_PHASE
    | Action.POD_GONE
    | Action.POD_DELETED
    | Action.LIMIT_FREED
)


class BackgroundGate(OpenGate):
    """`enabled`: the feature gate EvictionsInBackground. Off, it does nothing at all."""

    NAME: ClassVar[str] = "background"

    def __init__(self, evictions: BackgroundEvictions, *, enabled: bool) -> None:
        self._evictions = evictions
        self._enabled = enabled
        self.ended: Callable[[Ended], None] = lambda _: None
        """Told of each eviction that is over; a reload of the policy sets another."""

    def check(self, candidate: Candidate, now: datetime, /) -> Held | None:
        if not self._enabled:
            return None
        going = self._evictions.of_pod(candidate.pod.uid)
        if going is None:
            return None
        wakes: tuple[Wake, *tuple[Wake, ...]] = (On(_ENDS, candidate.pod.ref),)
        if going.until is not None and now < going.until:
            wakes = (*wakes, At(going.until))
        return Held(self.NAME, "its eviction goes on in the background", wakes)

    def on_outcome(self, outcome: EvictionOutcome, now: datetime, /) -> Iterable[ClusterEvent]:
        if outcome.answer is Answer.BACKGROUND:
            self._evictions.start(outcome.candidate, now)
        return ()

    def on_change(self, change: Change, now: datetime, /) -> Iterable[ClusterEvent]:
        if not self._enabled or change.kind != "Pod":
            return ()
        old, new = change.old, change.new
        pod = new if isinstance(new, Pod) else old
        assert isinstance(pod, Pod)  # what the kind says
        was_going = self._evictions.of_pod(pod.uid) is not None
        if isinstance(new, Pod):
            ended = self._evictions.on_pod(new, now)
        else:
            ended = self._evictions.on_deleted(pod)
        if ended is not None:
            self.ended(ended)
        if was_going and self._evictions.of_pod(pod.uid) is None:
            return (ClusterEvent(Action.LIMIT_FREED, pod.ref),)
        return ()

    def on_jump(self, by: timedelta, /) -> None:
        self._evictions.on_jump(by)

    def expire(self, now: datetime) -> Iterator[ClusterEvent]:
        """Give up what never showed in time. Until that is called it holds and counts on."""
        for ended in self._evictions.expire(now):
            self.ended(ended)
            yield ClusterEvent(Action.LIMIT_FREED, ended.candidate.pod.ref)
