"""The dispatcher: picks the best candidate that may go now, checks it once more, and sends it.

When a worker is free and nothing holds everything, it asks the gates about the best candidate,
takes all permits in one synchronous step, evaluates the key anew and starts the request. Nothing
waits holding a permit; permits are given back if the verdict fell. No await stands between the
first check and the start of the request, so no change can slip in between.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

import anyio

from reactive_descheduler.api.changes import At, Change, ClusterEvent, Key, Never
from reactive_descheduler.api.eviction import Answer, Candidate, EvictionOutcome, Held, Rejection
from reactive_descheduler.evictor.assumed import Assumed
from reactive_descheduler.evictor.disagreements import Disagreements
from reactive_descheduler.evictor.gate_chain import GateChain
from reactive_descheduler.evictor.queue import EvictionQueue, Queued
from reactive_descheduler.evictor.worker import EvictionWorker
from reactive_descheduler.framework.gate import Gate
from reactive_descheduler.kit.clock import Clock

LEAST_WORKERS, MOST_WORKERS = 4, 16
SECONDS_IN_FLIGHT = 0.2
"""A real API server takes 70-100 ms an eviction, nearly all of it waiting; twice that, for
reserve."""

_LOOKS, _SLICE = 200, 0.005
"""Candidates that are looked at in one go, and seconds: thousands may be held, in a thousand
namespaces, and the loop must breathe."""


_VOID = "evaluation"


def pool_size(rate: float) -> int:
    """Return how many requests may be in flight at this rate of evictions a second."""
    return max(LEAST_WORKERS, min(MOST_WORKERS, round(rate * SECONDS_IN_FLIGHT)))


class Observer(Protocol):
    """Told of everything that the dispatcher decides; metrics, logs and Events hang on it."""

    def held(self, entry: Queued, held: Held) -> None: ...
    def rejected(self, entry: Queued, rejection: Rejection) -> None: ...
    def dropped(self, entry: Queued) -> None: ...
    def sent(self, entry: Queued) -> None: ...
    def answered(self, outcome: EvictionOutcome) -> None: ...


class Statistics(NamedTuple):
    in_flight: int
    workers: int
    closed: Held | None
    """What holds everything now."""


class Dispatcher:
    """`revalidate`: evaluate a candidate's key anew, and say whether it is still offered.

    `look_again`: evaluate this key soon, since a gate rejected what it offers. `look_later`: not
    before this time. `opened`: what an answer let open; to be handed back to `wake`, and to whoever
    else may wait for it.
    """

    def __init__(
        self,
        queue: EvictionQueue,
        worker: EvictionWorker,
        gates: Sequence[Gate],
        *,
        assumed: Assumed,
        clock: Clock,
        workers: int,
        revalidate: Callable[[Candidate], bool],
        look_again: Callable[[Key], None],
        look_later: Callable[[Key, datetime], None],
        opened: Callable[[Iterable[ClusterEvent]], None],
        observer: Observer,
    ) -> None:
        self._queue = queue
        self._worker = worker
        self._gates = GateChain(gates)
        self._assumed = assumed
        self._clock = clock
        self._workers = workers
        self._revalidate = revalidate
        self._look_again = look_again
        self._look_later = look_later
        self._opened = opened
        self._disagreements = Disagreements()
        self._observer = observer
        self._in_flight = 0
        self._closed: Held | None = None
        self._stopping = False
        self._idle: deque[asyncio.Future[None]] = deque()
        self._begun: deque[tuple[Queued, datetime]] = deque()
        """Requests that neither gates nor observers were told of, and when they were picked."""
        self._missed = False
        self._more = False
        self._going_on = False

    def check(self, candidate: Candidate) -> Held | Rejection | None:
        """Ask every gate about one candidate, as `take` would; for evaluation, status and
        `plan`."""
        return self._gates.check(candidate, self._clock.now())

    def reject(self, candidate: Candidate) -> Rejection | None:
        """Ask only for a Rejection: for an evaluation, what merely waits counts as taken."""
        return self._gates.reject(candidate, self._clock.now())

    def offer(
        self,
        key: Key,
        candidates: Sequence[Candidate],
        *,
        urgency: int,
        change_seen: datetime | None,
    ) -> None:
        """Take the latest candidates of a key, accepted or held alike."""
        self._disagreements.evaluated(key)
        self._queue.replace(
            key, candidates, urgency=urgency, now=self._clock.now(), change_seen=change_seen
        )
        self._wake_one()

    def on_change(self, change: Change) -> list[ClusterEvent]:
        """Hand a change to assumptions and gates; return what opened."""
        self._tell_begun()
        now = self._clock.now()
        lost = self._assumed.on_change(change)
        if lost is not None:
            self._granted(lost, now)
        return self._gates.on_change(change, now)

    def confirm(self, uid: str) -> None:
        """A look-up told that a Pod that was assumed going is."""
        now = self._clock.now()
        lost = self._assumed.confirm(uid, now)
        if lost is not None:
            self._granted(lost, now)

    def _granted(self, lost: EvictionOutcome, now: datetime) -> None:
        """The answer never came, but the Pod goes: the request was granted."""
        self._observer.answered(lost._replace(answer=Answer.EVICTED, ended=now))

    def wake(self, events: Iterable[ClusterEvent]) -> None:
        """Return to the running order what waits for these, and look whether something may go.

        Not if nothing was waiting: every change comes by here, and most wake nobody.
        """
        woken = [self._queue.wake(event) for event in events]
        if any(woken) or self._closed is not None:
            self._wake_one()

    def on_jump(self, by: timedelta) -> None:
        """The wall clock jumped: shift what was noted, and ask about every held candidate anew."""
        self._tell_begun()
        self._assumed.on_jump(by)
        self._gates.on_jump(by)
        self.wake_all()

    def wake_all(self) -> None:
        """Ask the gates about every held candidate anew."""
        for entry in tuple(self._queue.candidates()):
            if entry.held is not None:
                self._queue.release(entry)
        self._wake_one()

    def wake_key(self, key: Key) -> None:
        """A time that a held candidate of this key waited for has come."""
        if self._queue.wake_key(key):
            self._wake_one()

    def next_request(self) -> Queued | None:
        """Return the candidate to send now, all permits taken; None if nothing may go."""
        entry = self._pick()
        self._tell_begun()
        return entry

    def _pick(self) -> Queued | None:
        """Do the same, but leave it to `_tell_begun` to tell of it."""
        self._tell_begun()
        now = self._clock.now()
        self._closed = self._gates.closed(now)
        if self._closed is not None:
            return None
        until = self._clock.monotonic() + _SLICE
        for _ in range(_LOOKS):
            if self._clock.monotonic() > until:
                break
            entry = self._queue.best(now)
            if entry is None:
                return None
            candidate = entry.candidate
            if self._disagreements.is_void(candidate.key):
                # Its next evaluation, which is under way, offers it anew or not at all.
                self._queue.hold(
                    entry, Held(_VOID, "its key is evaluated anew", (Never(candidate.pod.uid),))
                )
                continue
            why = self._gates.check(candidate, now)
            if isinstance(why, Held):
                self._observer.held(entry, why)
                self._queue.hold(entry, why)
                continue
            if isinstance(why, Rejection):
                self._observer.rejected(entry, why)
                self._queue.drop(entry)
                self._look_again(candidate.key)
                continue
            if not self._permitted(candidate, now):
                self._observer.dropped(entry)
                self._queue.drop(entry)
                if wait := self._disagreements.dropped(candidate.key, now):
                    self._look_later(candidate.key, now + wait)
                else:
                    self._look_again(candidate.key)
                continue
            self._disagreements.sent(candidate.key)
            self._queue.start(entry)
            self._assumed.start(candidate.pod)
            self._begun.append((entry, now))
            return entry
        self._more = True
        return None

    def _permitted(self, candidate: Candidate, now: datetime) -> bool:
        """Take all permits and check the candidate once more; if it falls, give them back."""
        if candidate.pod.uid in self._assumed.pods:
            # Another key has asked for it. Gates keep permits by Pod, so to take and give back
            # here would free those of the request that is in flight.
            return False
        self._gates.take(candidate, now)
        if self._revalidate(candidate):
            return True
        self._gates.give_back(candidate, now)
        return False

    def _tell_begun(self) -> None:
        """Tell gates and observers of requests that have begun; before anything else is picked, a
        change is taken in or an answer learnt, so that none of these finds them untold."""
        while self._begun:
            entry, now = self._begun.popleft()
            self._gates.sent(entry.candidate, now)
            self._observer.sent(entry)

    async def run(self) -> None:
        """Send what may go, until `stop`; what is in flight then is awaited."""
        async with anyio.create_task_group() as workers:
            for _ in range(self._workers):
                workers.start_soon(self._work)

    def stop(self) -> None:
        """Send nothing more."""
        self._tell_begun()
        self._stopping = True
        while self._idle:
            self._wake_one()

    def statistics(self) -> Statistics:
        # Asked anew: a worker only looks when there may be something to send.
        return Statistics(self._in_flight, self._workers, self._gates.closed(self._clock.now()))

    async def _work(self) -> None:
        """One worker: it picks and sends in one step, which saves handing over to another task."""
        while not self._stopping:
            if self._going_on:
                await self._wait()
                continue
            entry = self._pick()
            if entry is not None:
                # The request is written in the loop's next turn; what can wait comes after that.
                loop = asyncio.get_running_loop()
                loop.call_soon(loop.call_soon, self._after_begun)
                await self._send(entry)
            elif self._more:
                await self._go_on()
            else:
                await self._wait()

    def _after_begun(self) -> None:
        self._tell_begun()
        self._wake_one()  # while one waits for its answer, another looks for more

    async def _go_on(self) -> None:
        """Look at the rest after the event loop had its turn; nobody else looks meanwhile."""
        self._more, self._going_on = False, True
        try:
            await asyncio.sleep(0)
        finally:
            self._going_on = False

    def _wake_one(self) -> None:
        """Let one worker look; if all are busy, the next that is not does so before it waits."""
        while self._idle:
            sleeper = self._idle.popleft()
            if not sleeper.done():
                sleeper.set_result(None)
                return
        self._missed = True

    async def _wait(self) -> None:
        if self._missed:
            self._missed = False
            await asyncio.sleep(0)
            return
        delay = None
        if self._closed is not None:
            times = [wake.time for wake in self._closed.wakes if isinstance(wake, At)]
            if times:
                delay = max(0.0, (min(times) - self._clock.now()).total_seconds())
        loop = asyncio.get_running_loop()
        sleeper = loop.create_future()
        self._idle.append(sleeper)
        timer = loop.call_later(delay, _rouse, sleeper) if delay is not None else None
        try:
            await sleeper
        finally:
            if timer is not None:
                timer.cancel()
            sleeper.cancel()  # a worker that no longer sleeps must not be chosen to be woken

    async def _send(self, entry: Queued) -> None:
        self._in_flight += 1
        try:
            outcome = await self._worker.evict(entry.candidate)
            self.finish(entry, outcome)
        finally:
            # When cancelled the request may have been carried out, so no permit is given back.
            self._in_flight -= 1

    def finish(self, entry: Queued, outcome: EvictionOutcome) -> None:
        """Learn what the request of an entry from `next_request` came to."""
        self._tell_begun()
        now = self._clock.now()
        self._queue.finish(entry)
        outcome = self._assumed.finish(outcome)
        events = self._gates.on_outcome(outcome, now)
        self._observer.answered(outcome)
        self._opened(events)
        # What the answer means for the key is for a fresh evaluation to say: gone, held or again.
        self._look_again(entry.candidate.key)


def _rouse(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)
