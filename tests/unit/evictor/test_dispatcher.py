"""The dispatcher: all permits or none, one more look, then the request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import ClassVar

import anyio
import anyio.lowlevel
import pytest
from structlog.testing import capture_logs

from reactive_descheduler.api.changes import Action, At, Change, ClusterEvent, Key, On
from reactive_descheduler.api.eviction import Answer, Candidate, EvictionOutcome, Held, Rejection
from reactive_descheduler.client.evictions import EvictionAnswer
from reactive_descheduler.evictor.assumed import Assumed
from reactive_descheduler.evictor.dispatcher import Dispatcher, pool_size
from reactive_descheduler.evictor.queue import EvictionQueue, Queued
from reactive_descheduler.evictor.worker import EvictionWorker, WorkerSettings
from reactive_descheduler.framework.gate import OpenGate
from reactive_descheduler.kit.clock import Clock, LoopClock, ManualClock
from tests.builders import make_pod, pod_view
from tests.unit.evictor.samples import NOW, candidate, later, outcome, pod

BUDGET = ("PodDisruptionBudget", "default", "web")


class Gate(OpenGate):
    """Does as it is told, and keeps who has its permit."""

    NAME: ClassVar[str] = "gate"

    def __init__(self) -> None:
        self.closes: Held | None = None
        self.says: dict[str, Held | Rejection] = {}
        self.opens: list[ClusterEvent] = []
        self.taken: list[str] = []
        self.outcomes: list[Answer] = []

    def closed(self, now: datetime, /) -> Held | None:
        return self.closes

    def check(self, of: Candidate, now: datetime, /) -> Held | Rejection | None:
        return self.says.get(of.pod.name)

    def take(self, of: Candidate, now: datetime, /) -> None:
        self.taken.append(of.pod.name)

    def give_back(self, of: Candidate, now: datetime, /) -> None:
        self.taken.remove(of.pod.name)

    def on_outcome(self, told: EvictionOutcome, now: datetime, /) -> Iterable[ClusterEvent]:
        self.outcomes.append(told.answer)
        return self.opens

    def on_change(self, change: Change, now: datetime, /) -> Iterable[ClusterEvent]:
        return self.opens


class Told:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.log: list[tuple[str, str]] = []

    def held(self, entry: Queued, held: Held) -> None:
        self.log.append(("held", entry.candidate.pod.name))

    def rejected(self, entry: Queued, rejection: Rejection) -> None:
        self.log.append(("rejected", entry.candidate.pod.name))

    def dropped(self, entry: Queued) -> None:
        self.log.append(("dropped", entry.candidate.pod.name))

    def sent(self, entry: Queued) -> None:
        self.log.append(("sent", entry.candidate.pod.name))

    def answered(self, told: EvictionOutcome) -> None:
        self.log.append((told.answer.value, told.candidate.pod.name))


class Client:
    """Grants each request after a while."""

    def __init__(self, seconds: float = 0.1) -> None:
        self.seconds = seconds
        self.sent: list[str] = []
        self.in_flight = self.most = 0

    async def evict(
        self,
        namespace: str,
        name: str,
        *,
        uid: str,
        grace_period_seconds: int | None,
        annotations: Mapping[str, str],
    ) -> EvictionAnswer:
        self.sent.append(name)
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        try:
            await anyio.sleep(self.seconds)
        finally:
            self.in_flight -= 1
        return EvictionAnswer(Answer.EVICTED, 201, "")


class Desk:
    def __init__(
        self,
        clock: Clock | None = None,
        *,
        gates: Sequence[Gate] = (),
        workers: int = 4,
        dry_run: bool = False,
    ) -> None:
        self.clock = clock or ManualClock(NOW)
        self.gates = list(gates or (Gate(), Gate()))
        self.client = Client()
        self.told = Told()
        self.fallen: set[str] = set()
        self.looked_again: list[Key] = []
        self.again: list[str] = []
        self.timers: list[tuple[Key, datetime]] = []
        self.queue = EvictionQueue(timer=lambda key, time: self.timers.append((key, time)))
        self.assumed = Assumed(counts_again=self.again.append)
        self.dispatcher = Dispatcher(
            self.queue,
            EvictionWorker(self.client, WorkerSettings(dry_run, None, ("p",)), clock=self.clock),
            self.gates,
            assumed=self.assumed,
            clock=self.clock,
            workers=workers,
            revalidate=lambda of: of.pod.name not in self.fallen,
            look_again=self.looked_again.append,
            look_later=lambda key, _time: self.looked_again.append(key),
            opened=lambda events: self.dispatcher.wake(events),
            observer=self.told,
        )

    def offer(self, *names: str) -> None:
        for name in names:
            of = candidate(pod(name))
            self.dispatcher.offer(of.key, [of], urgency=0, change_seen=NOW)

    def next(self) -> str | None:
        entry = self.dispatcher.next_request()
        return entry.candidate.pod.name if entry is not None else None

    def finish(self, entry: Queued, answer: Answer) -> None:
        self.dispatcher.finish(entry, outcome(answer, entry.candidate))

    def start(self, name: str = "a") -> Queued:
        self.offer(name)
        entry = self.dispatcher.next_request()
        assert entry is not None
        return entry


# one synchronous step


def test_all_permits_are_taken_in_one_step() -> None:
    desk = Desk()
    desk.offer("a")

    assert desk.next() == "a"
    assert [gate.taken for gate in desk.gates] == [["a"], ["a"]]
    assert desk.told.log == [("sent", "a")]


def test_no_permit_is_taken_where_one_gate_holds() -> None:
    desk = Desk()
    desk.gates[1].says["a"] = Held("gate", "wait", (On(Action.BUDGET_ROSE, BUDGET),))
    desk.offer("a", "b")

    assert desk.next() == "b"
    assert [gate.taken for gate in desk.gates] == [["b"], ["b"]]
    assert desk.told.log == [("held", "a"), ("sent", "b")]


def test_what_holds_everything_is_asked_once_and_no_candidate_is() -> None:
    desk = Desk()
    desk.gates[1].closes = Held("gate", "shut", (At(later(9)),))
    desk.offer("a", "b")

    assert desk.next() is None
    assert desk.told.log == []
    assert desk.dispatcher.statistics().closed == desk.gates[1].closes
    desk.gates[1].closes = None
    assert desk.next() == "a"


def test_what_a_gate_rejects_is_dropped_and_its_key_looked_at_anew() -> None:
    desk = Desk()
    desk.gates[0].says["a"] = Rejection("gate", "never", (At(later(1)),))
    desk.offer("a")

    assert desk.next() is None
    assert desk.told.log == [("rejected", "a")]
    assert desk.looked_again == [candidate().key]
    assert list(desk.queue.candidates()) == []


def test_a_verdict_that_fell_gives_every_permit_back() -> None:
    desk = Desk()
    desk.fallen.add("a")
    desk.offer("a", "b")

    assert desk.next() == "b"
    assert [gate.taken for gate in desk.gates] == [["b"], ["b"]]
    assert desk.told.log == [("dropped", "a"), ("sent", "b")]
    assert desk.looked_again == [candidate(pod("a")).key]


class ByPod(Gate):
    """Keeps one permit for a Pod, as gates do that keep them by UID."""

    def give_back(self, of: Candidate, now: datetime, /) -> None:
        self.taken = [name for name in self.taken if name != of.pod.name]


def test_another_key_that_wants_a_pod_in_flight_does_not_free_its_permits() -> None:
    gate = ByPod()
    desk = Desk(gates=[gate])
    other = candidate(pod("a"), key=Key(1, "Other", ("x",)))
    desk.dispatcher.offer(other.key, [other], urgency=9, change_seen=None)
    desk.start("a")
    desk.fallen.add("a")  # in flight it counts as gone

    assert desk.next() is None
    assert gate.taken == ["a"]
    assert desk.told.log == [("sent", "a"), ("dropped", "a")]
    assert desk.looked_again == [other.key]


def test_what_is_left_of_a_key_that_offers_nothing_more_waits_for_its_evaluation() -> None:
    desk = Desk()
    names = [f"pod-{number:02}" for number in range(50)]
    key = candidate(pod("a")).key
    of_one = [candidate(pod(name))._replace(key=key) for name in names]
    desk.dispatcher.offer(key, of_one, urgency=0, change_seen=NOW)
    desk.fallen.update(names)

    assert desk.next() is None
    assert desk.told.log == [("dropped", name) for name in names[:8]]
    assert desk.queue.statistics().held == 42
    desk.fallen.clear()
    desk.dispatcher.offer(key, of_one[40:], urgency=0, change_seen=NOW)
    assert [desk.next() for _ in range(11)] == [*names[40:], None]


def test_nothing_waits_holding_a_permit() -> None:
    desk = Desk()
    desk.gates[0].says["a"] = Held("gate", "wait", (At(later(5)),))
    desk.offer("a")
    desk.next()

    assert [gate.taken for gate in desk.gates] == [[], []]
    assert desk.timers == [(candidate().key, later(5))]


# wakes


def test_a_held_candidate_is_asked_about_again_when_its_event_or_time_comes() -> None:
    desk = Desk()
    desk.gates[0].says["a"] = Held("gate", "x", (On(Action.BUDGET_ROSE, BUDGET), At(later(5))))
    desk.offer("a")
    assert desk.next() is None
    desk.next()
    assert desk.told.log == [("held", "a")], "not asked again without a wake"
    desk.dispatcher.wake([ClusterEvent(Action.BUDGET_ROSE, BUDGET)])
    desk.next()
    desk.dispatcher.wake_key(candidate().key)
    desk.next()
    desk.dispatcher.wake_all()
    desk.next()
    assert desk.told.log == [("held", "a")] * 4
    del desk.gates[0].says["a"]
    desk.dispatcher.wake_all()

    assert desk.next() == "a"


def test_what_opens_by_an_answer_wakes_who_waits_for_it() -> None:
    desk = Desk()
    entry = desk.start("a")
    desk.gates[0].says["b"] = Held("gate", "wait", (On(Action.LANE_FREE, BUDGET),))
    desk.offer("b")
    assert desk.next() is None
    desk.gates[0].says.clear()
    desk.gates[0].opens = [ClusterEvent(Action.LANE_FREE, BUDGET)]
    desk.finish(entry, Answer.EVICTED)

    assert desk.next() == "b"


# outcomes


def test_every_gate_and_the_observer_learn_the_answer_and_the_key_is_looked_at_again() -> None:
    desk = Desk()
    entry = desk.start()
    desk.finish(entry, Answer.BUDGET)

    assert [gate.outcomes for gate in desk.gates] == [[Answer.BUDGET]] * 2
    assert desk.told.log == [("sent", "a"), ("budget", "a")]
    assert desk.looked_again == [candidate().key]
    assert list(desk.queue.in_flight()) == []


GOING = {Answer.EVICTED, Answer.UNKNOWN, Answer.NOT_FOUND, Answer.UID_CONFLICT}


@pytest.mark.parametrize("answer", sorted(Answer))
def test_a_pod_counts_as_gone_from_its_request_on_until_a_refusal(answer: Answer) -> None:
    desk = Desk()
    entry = desk.start()
    assert "uid-default-a" in desk.assumed.pods
    desk.finish(entry, answer)

    assert ("uid-default-a" in desk.assumed.pods) is (answer in GOING)
    assert desk.again == ([] if answer in GOING else ["uid-default-a"])


def _going() -> Change:
    new = pod_view(make_pod("a", node="node-1", version="2", deleted=later(30)))
    return Change("Pod", pod("a"), new)


ENDS = {
    "terminating": _going(),
    "gone": Change("Pod", pod("a"), None),
    "finished": Change("Pod", pod("a"), pod("a", phase="Failed", version="2")),
}


@pytest.mark.parametrize("change", ENDS.values(), ids=ENDS)
def test_an_assumption_ends_when_the_watch_shows_it(change: Change) -> None:
    desk = Desk()
    desk.finish(desk.start(), Answer.EVICTED)
    desk.dispatcher.on_change(change)

    assert len(desk.assumed.pods) == 0
    assert desk.told.log == [("sent", "a"), ("evicted", "a")], "told once"


@pytest.mark.parametrize("change", ENDS.values(), ids=ENDS)
def test_an_unknown_outcome_is_told_as_evicted_once_the_watch_shows_it(change: Change) -> None:
    desk = Desk()
    desk.finish(desk.start(), Answer.UNKNOWN)
    desk.dispatcher.on_change(change)
    desk.dispatcher.on_change(change)

    assert desk.told.log == [("sent", "a"), ("unknown", "a"), ("evicted", "a")]


@pytest.mark.parametrize("answer", [Answer.EVICTED, Answer.UNKNOWN, Answer.NOT_FOUND])
def test_where_the_watch_was_faster_than_the_answer_nothing_is_assumed(answer: Answer) -> None:
    desk = Desk()
    entry = desk.start()
    desk.dispatcher.on_change(_going())
    assert "uid-default-a" in desk.assumed.pods, "its request is still on its way"
    desk.finish(entry, answer)

    told = Answer.EVICTED if answer is Answer.UNKNOWN else answer
    assert len(desk.assumed.pods) == 0
    assert desk.told.log == [("sent", "a"), (told.value, "a")]


def test_a_change_that_shows_nothing_leaves_the_assumption() -> None:
    desk = Desk()
    desk.finish(desk.start(), Answer.EVICTED)
    desk.dispatcher.on_change(Change("Pod", pod("a"), pod("a", version="2")))
    failed = pod("a", phase="Failed")
    desk.dispatcher.on_change(Change("Pod", failed, pod("a", phase="Failed", version="2")))
    desk.dispatcher.on_change(Change("Pod", pod("b"), None))

    assert "uid-default-a" in desk.assumed.pods


def test_an_assumption_is_looked_up_after_a_minute() -> None:
    desk = Desk()
    desk.finish(desk.start(), Answer.UNKNOWN)
    assert desk.assumed.overdue(later(59)) == []
    (overdue,) = desk.assumed.overdue(later(60))
    assert overdue.pod.name == "a"
    desk.assumed.keep("uid-default-a", later(61))
    assert desk.assumed.overdue(later(120)) == [], "it could not be looked up: later"
    desk.assumed.drop("uid-default-a")

    assert desk.assumed.overdue(later(1000)) == []


def test_a_jump_of_the_clock_looks_nothing_up_early_and_asks_about_what_is_held() -> None:
    desk = Desk()
    desk.finish(desk.start("b"), Answer.UNKNOWN)
    desk.gates[0].says["a"] = Held("gate", "wait", (At(later(5)),))
    desk.offer("a")
    desk.next()
    desk.dispatcher.on_jump(timedelta(hours=1))
    desk.next()

    assert desk.told.log[-2:] == [("held", "a"), ("held", "a")]
    assert desk.assumed.overdue(later(3659)) == []
    assert len(desk.assumed.overdue(later(3660))) == 1


def test_a_look_that_finds_it_going_is_told_once_and_assumed_on() -> None:
    desk = Desk()
    desk.finish(desk.start(), Answer.UNKNOWN)
    for _ in range(2):
        desk.dispatcher.confirm("uid-default-a")
    desk.dispatcher.confirm("uid-of-nobody")
    assert "uid-default-a" in desk.assumed.pods
    desk.dispatcher.on_change(_going())

    assert desk.told.log == [("sent", "a"), ("unknown", "a"), ("evicted", "a")]
    assert len(desk.assumed.pods) == 0


# the pool


@pytest.mark.parametrize(
    ("rate", "size"), [(0, 4), (5, 4), (20, 4), (30, 6), (50, 10), (80, 16), (1000, 16)]
)
def test_the_pool_follows_the_rate(rate: float, size: int) -> None:
    assert pool_size(rate) == size


async def test_no_more_requests_are_in_flight_than_there_are_workers() -> None:
    desk = Desk(LoopClock(NOW), workers=3)
    desk.offer(*(f"p{number}" for number in range(10)))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(desk.dispatcher.run)
        await anyio.sleep(0.05)
        assert desk.dispatcher.statistics()[:2] == (3, 3)
        await anyio.sleep(0.5)
        desk.dispatcher.stop()

    assert len(desk.client.sent) == 10
    assert desk.client.most == 3


async def test_stopping_sends_nothing_more_and_awaits_what_is_in_flight() -> None:
    desk = Desk(LoopClock(NOW), workers=1)
    desk.client.seconds = 5
    desk.offer("a", "b")
    with anyio.fail_after(6):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(desk.dispatcher.run)
            await anyio.sleep(0.05)
            desk.dispatcher.stop()
            desk.offer("c")

    assert desk.client.sent == ["a"]
    assert desk.told.log[-1] == ("evicted", "a")


async def test_a_closed_gate_is_asked_again_at_its_time() -> None:
    class Timed(Gate):
        def closed(self, now: datetime, /) -> Held | None:
            return Held("gate", "shut", (At(later(5)),)) if now < later(5) else None

    desk = Desk(LoopClock(NOW), gates=[Timed()])
    desk.offer("a")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(desk.dispatcher.run)
        await anyio.sleep(4.9)
        assert desk.client.sent == []
        await anyio.sleep(0.2)
        assert desk.client.sent == ["a"]
        desk.dispatcher.stop()


async def test_an_offer_wakes_the_dispatcher_at_once() -> None:
    desk = Desk(LoopClock(NOW))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(desk.dispatcher.run)
        await anyio.sleep(100)
        desk.offer("a")
        await anyio.sleep(0.001)
        assert desk.client.sent == ["a"]
        desk.dispatcher.stop()


async def test_a_request_that_is_cancelled_gives_no_permit_back() -> None:
    desk = Desk(LoopClock(NOW))
    desk.client.seconds = 100
    desk.offer("a")
    with anyio.move_on_after(1):
        await desk.dispatcher.run()

    assert [gate.taken for gate in desk.gates] == [["a"], ["a"]]
    assert [gate.outcomes for gate in desk.gates] == [[], []]
    assert desk.dispatcher.statistics().in_flight == 0


async def test_a_dry_run_goes_the_whole_way_but_for_the_request() -> None:
    desk = Desk(LoopClock(NOW), dry_run=True)
    desk.offer("a")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(desk.dispatcher.run)
        await anyio.sleep(1)
        desk.dispatcher.stop()

    assert desk.client.sent == []
    assert desk.told.log == [("sent", "a"), ("dry-run", "a")]
    assert [gate.outcomes for gate in desk.gates] == [[Answer.DRY_RUN]] * 2


async def test_thousands_of_held_candidates_do_not_block_the_loop() -> None:
    desk = Desk(LoopClock(NOW), gates=[Gate()])
    names = [f"p{number}" for number in range(3000)]
    for name in names:
        desk.gates[0].says[name] = Held("gate", "wait", (At(later(1000)),))
    desk.offer(*names)
    turns = 0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(desk.dispatcher.run)
        while len(desk.told.log) < len(names):
            turns += 1
            await anyio.lowlevel.checkpoint()
        desk.dispatcher.stop()

    assert turns > 10, "the event loop had its turn in between"
    assert desk.queue.statistics() == (0, 3000, 0)


class Busy(ManualClock):
    """A machine on which every look takes a millisecond."""

    def monotonic(self) -> float:
        self.advance(0.001)
        return super().monotonic()


def test_looking_takes_milliseconds_only_however_dear_a_look_is() -> None:
    desk = Desk(Busy(NOW), gates=[Gate()])
    names = [f"p{number}" for number in range(100)]
    for name in names:
        desk.gates[0].says[name] = Held("gate", "wait", (At(later(1000)),))
    desk.offer(*names)

    assert desk.dispatcher.next_request() is None
    assert 0 < len(desk.told.log) < 10


# a gate with a bug


class Broken(Gate):
    """Raises in one of its methods."""

    NAME: ClassVar[str] = "broken"

    def __init__(self, method: str) -> None:
        super().__init__()
        self.method: str | None = method

    def _fail_in(self, method: str) -> None:
        if method == self.method:
            raise RuntimeError("a bug")

    def closed(self, now: datetime, /) -> Held | None:
        self._fail_in("closed")
        return super().closed(now)

    def check(self, of: Candidate, now: datetime, /) -> Held | Rejection | None:
        self._fail_in("check")
        return super().check(of, now)

    def on_outcome(self, told: EvictionOutcome, now: datetime, /) -> Iterable[ClusterEvent]:
        self._fail_in("on_outcome")
        return super().on_outcome(told, now)

    def on_change(self, change: Change, now: datetime, /) -> Iterable[ClusterEvent]:
        self._fail_in("on_change")
        return super().on_change(change, now)


@pytest.mark.parametrize("method", ["closed", "check"])
def test_a_gate_that_fails_holds_and_is_told_once(method: str) -> None:
    broken = Broken(method)
    desk = Desk(gates=[broken])
    desk.offer("a")

    with capture_logs() as logs:
        assert desk.next() is None
        desk.dispatcher.wake_all()
        assert desk.next() is None

    assert [(line["event"], line["gate"]) for line in logs] == [("Gate failed", "broken")]
    broken.method = None
    desk.dispatcher.wake_all()
    assert desk.next() == "a"


@pytest.mark.parametrize("method", ["on_outcome", "on_change"])
def test_a_gate_that_fails_keeps_nobody_else_from_learning(method: str) -> None:
    broken, other = Broken(method), Gate()
    other.opens = [ClusterEvent(Action.LANE_FREE, BUDGET)]
    desk = Desk(gates=[broken, other])
    entry = desk.start()

    with capture_logs():
        desk.finish(entry, Answer.EVICTED)
        opened = desk.dispatcher.on_change(Change("Pod", None, pod("b")))

    assert other.outcomes == [Answer.EVICTED]
    assert ClusterEvent(Action.LANE_FREE, BUDGET) in opened
