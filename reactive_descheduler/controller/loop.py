"""The reconcile loop: takes a key that is due, runs its strategy, remembers and passes on.

A key is small (a Pod, an owner), so the event loop breathes between keys. An exception fails its
key alone: counted, logged once for its place in the code, retried later.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from traceback import walk_tb
from typing import NamedTuple, Protocol

import structlog

from reactive_descheduler.api.changes import Key
from reactive_descheduler.api.eviction import Candidate, Rejection
from reactive_descheduler.api.node import Node
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.usage import Usage
from reactive_descheduler.controller.bus import EventBus, HeldKey, Item, WholePass, Woken
from reactive_descheduler.controller.evaluation import (
    Answer,
    evaluate,
    evaluate_in_steps,
    still_offers,
)
from reactive_descheduler.controller.hold import HoldRule, held
from reactive_descheduler.controller.parking import Evaluated, Parking
from reactive_descheduler.evictor.causes import Causes
from reactive_descheduler.evictor.dispatcher import Dispatcher
from reactive_descheduler.framework.profile import Profile, ProfileView
from reactive_descheduler.framework.strategy import Strategy
from reactive_descheduler.kit.clock import Clock
from reactive_descheduler.kit.delay_queue import DelayQueue, Due

log = structlog.get_logger()

_SLICE = 0.005
"""Seconds of work after which the event loop gets its turn."""
_ATTEMPTS = 3
_RETRY_FIRST, _RETRY_LONGEST = 1.0, 300.0
LEAST_URGENT = 100
"""Urgency of a strategy that the table of those in tree does not name."""
_LOOK_TWICE = timedelta(seconds=2)


class Observer(Protocol):
    """Told of each evaluation; metrics and the status page hang on it."""

    def evaluated(
        self, key: Key, evaluated: Evaluated, *, change_seen: datetime | None, looked_at: int
    ) -> None: ...
    def stays(self, key: Key, rejection: Rejection) -> None: ...
    def failed(self, key: Key, error: Exception) -> None: ...
    def missed(self, key: Key, candidate: Candidate) -> None: ...


class Failure(NamedTuple):
    attempts: int
    error: str


class ReconcileLoop:
    def __init__(
        self,
        queue: DelayQueue[Item],
        parking: Parking,
        bus: EventBus,
        *,
        profiles: tuple[Profile, ...],
        strategies: Mapping[tuple[int, str], Strategy],
        urgencies: Mapping[str, int],
        lister: Lister,
        nodes: Mapping[str, Node],
        usage: Usage | None = None,
        causes: Causes,
        dispatcher: Dispatcher,
        hold: HoldRule,
        clock: Clock,
        observer: Observer,
    ) -> None:
        self._queue = queue
        self._parking = parking
        self._bus = bus
        self._profiles = profiles
        self._strategies = strategies
        self._urgencies = urgencies
        self._lister = lister
        self._nodes = nodes
        self._usage = usage
        self._causes = causes
        self._dispatcher = dispatcher
        self._hold = hold
        self._clock = clock
        self._observer = observer
        self._surprising: set[Key] = set()
        self.failures: dict[Key, Failure] = {}
        """Keys whose last evaluation raised; one without a unit where the strategy could not name
        its keys."""
        self._logged: set[tuple[str, str, int]] = set()
        """Strategies, and where in the code they failed, since something last began to fail: a
        fault on every key is one fault."""
        self.runs: Counter[str] = Counter()
        """Evaluations by strategy."""

    def evaluate(self, key: Key) -> Evaluated:
        """Say what the key comes to now. Changes nothing; the gates are asked, not taken."""
        return self._held(key, self._evaluate(key, self._dispatcher.reject))

    def still_offered(self, candidate: Candidate) -> bool:
        """Evaluate the candidate's key once more, right before its request.

        What is gone or in flight counts as gone. Others are answered as when the key was evaluated,
        or one that was offered in place of a rejected Pod never would be again. An exception means
        no.
        """
        key = candidate.key
        try:
            hold = self._hold.check(self._strategies[key[:2]], key, self._clock.now())
            if hold is not None and hold.by_others:
                return False
            return still_offers(
                self._strategies[key[:2]], self._view(key), candidate, self._dispatcher.reject
            )
        except Exception as error:
            self._fail(key, error)
            return False

    def reconcile(self, due: Due[Item]) -> None:
        """Deal with one item of the delay queue in one go."""
        for _ in self.steps(due):
            pass

    def steps(self, due: Due[Item]) -> Iterator[None]:
        """Deal with one item of the delay queue; yields at good places to give way."""
        item = due.key
        try:
            if isinstance(item, HeldKey):
                self._dispatcher.wake_key(item.key)
            elif isinstance(item, WholePass):
                self._pass_on(item)
            elif isinstance(item, Woken):
                self._bus.wake_on(item)
            else:
                yield from self._reconcile_key(item, due.since)
        finally:
            self._queue.done(item)

    async def run(self) -> None:
        """Work until the queue shuts down."""
        began = self._clock.monotonic()
        while (due := await self._queue.get()) is not None:
            for _ in self.steps(due):
                if self._clock.monotonic() - began > _SLICE:
                    await asyncio.sleep(0)
                    began = self._clock.monotonic()
            if self._clock.monotonic() - began > _SLICE:
                await asyncio.sleep(0)
                began = self._clock.monotonic()

    def _pass_on(self, whole: WholePass) -> None:
        of_all = Key(whole.profile, whole.strategy, ())
        try:
            self._bus.slice_of(whole)
        except Exception as error:
            self._note_failure(of_all, error, again=whole)
        else:
            self.failures.pop(of_all, None)

    def _reconcile_key(self, key: Key, since: float | None) -> Iterator[None]:
        found_by_resync = key in self._bus.resynced
        self._bus.resynced.discard(key)
        self.runs[key.strategy] += 1
        try:
            evaluated, looked_at = yield from self._evaluate_in_steps(key)
        except Exception as error:
            self._fail(key, error)
            return
        self.failures.pop(key, None)
        if not found_by_resync:
            self._surprising.discard(key)
        elif self._is_surprise(key, evaluated):
            return
        now = self._clock.now()
        change_seen = None
        if since is not None:
            change_seen = now - timedelta(seconds=self._clock.monotonic() - since)
        if evaluated.rejected:
            self._tell_stays(key, evaluated.rejected)
        self._parking.remember(key, evaluated)
        self._causes.evaluated(key, evaluated.offered, since=change_seen or now, now=now)
        self._dispatcher.offer(
            key,
            evaluated.offered,
            urgency=self._urgencies.get(key.strategy, LEAST_URGENT),
            change_seen=change_seen,
        )
        self._queue.discard_timer(key)
        if (at := evaluated.due) is not None:
            self._bus.look_at(key, at)
        self._observer.evaluated(key, evaluated, change_seen=change_seen, looked_at=looked_at)

    def _tell_stays(self, key: Key, rejected: Sequence[Rejection]) -> None:
        """Tell what this key's last evaluation did not say, unless it is only not due yet."""
        before = self._parking.get(key)
        told = {(r.pod, r.by, r.reason) for r in before.rejected} if before is not None else ()
        for each in rejected:
            if (each.pod, each.by, each.reason) not in told and not each.not_yet(key.strategy):
                self._observer.stays(key, each)

    def _evaluate(self, key: Key, answer: Answer) -> Evaluated:
        return evaluate(self._strategies[key[:2]], self._view(key), key, answer)

    def _evaluate_in_steps(self, key: Key) -> Generator[None, None, tuple[Evaluated, int]]:
        """Evaluate a key for its verdict of record, and say how many Pods filters were asked about.

        One that gave way and finds another state starts over; after that happened twice it no
        longer gives way, or a key that is never left alone would never be done.
        """
        strategy = self._strategies[key[:2]]
        for attempt in range(_ATTEMPTS):
            view = self._view(key)
            version = view.version
            steps = evaluate_in_steps(strategy, view, key, self._dispatcher.reject)
            while True:
                try:
                    next(steps)
                except StopIteration as ended:
                    evaluated: Evaluated = ended.value
                    return self._held(key, evaluated), view.looked_at
                if attempt < _ATTEMPTS - 1:
                    yield
                    if view.version != version:
                        break
        raise AssertionError  # the last attempt ends by returning

    def _held(self, key: Key, evaluated: Evaluated) -> Evaluated:
        """Let what is on its way keep the key from offering more than it did."""
        if not evaluated.offered:
            return evaluated
        hold = self._hold.check(self._strategies[key[:2]], key, self._clock.now())
        if hold is None:
            return evaluated
        before = self._parking.get(key)
        return held(hold, evaluated, before.offered if before is not None else ())

    def _view(self, key: Key) -> ProfileView:
        evictor = self._profiles[key.profile].evictor
        return ProfileView(evictor, self._lister, self._nodes, self._clock.now(), self._usage)

    def _is_surprise(self, key: Key, evaluated: Evaluated) -> bool:
        """Say whether only the resync found a candidate; if so it is looked at once more in 2 s."""
        known = self._parking.get(key)
        if not evaluated.offered or (known is not None and not known.nothing):
            self._surprising.discard(key)
            return False
        if key not in self._surprising:
            self._surprising.add(key)
            self._bus.resynced.add(key)
            self._bus.look_at(key, self._clock.now() + _LOOK_TWICE)
            return True
        self._surprising.discard(key)
        for candidate in evaluated.offered:
            self._observer.missed(key, candidate)
        return False

    def _fail(self, key: Key, error: Exception) -> None:
        # Nothing is evicted on the word of an evaluation that failed later.
        self._parking.remember(key, Evaluated())
        self._dispatcher.offer(key, (), urgency=0, change_seen=None)
        self._note_failure(key, error, again=key)

    def _note_failure(self, key: Key, error: Exception, *, again: Item) -> None:
        if not self.failures:
            self._logged.clear()
        before = self.failures.get(key)
        attempts = before.attempts + 1 if before is not None else 1
        self.failures[key] = Failure(attempts, f"{type(error).__name__}: {error}")
        self._observer.failed(key, error)
        # The exponent is capped, or a key that fails for days would overflow a float.
        delay = min(_RETRY_FIRST * 2.0 ** min(attempts - 1, 16), _RETRY_LONGEST)
        self._queue.add_at(again, self._clock.monotonic() + delay)
        place = (key.strategy, *_place(error))
        if place not in self._logged:
            self._logged.add(place)
            log.error(
                "strategy failed on a key",
                strategy=key.strategy,
                profile=self._profiles[key.profile].name,
                unit=key.unit,
                exc_info=error,
            )


def _place(error: Exception) -> tuple[str, int]:
    """Return the file and line that raised."""
    frames = [(f.f_code.co_filename, line) for f, line in walk_tb(error.__traceback__)]
    return frames[-1] if frames else ("", 0)
