"""Nothing that may go is left waiting, and nothing goes that may not.

Acting is on: requests are started as the dispatcher says, and a small API server answers them as it
pleases. Once it is quiet, no key offers a candidate that every gate would let pass. Whenever none
is in flight, what a fresh look offers waits. A balance strategy asks for nobody while what
it counts goes for another's sake.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from reactive_descheduler.api.changes import At, Key
from reactive_descheduler.api.eviction import Answer, Candidate, EvictionOutcome
from reactive_descheduler.api.pod import REQUEST_EVICT_ONLY_ANNOTATION, Pod, workload
from reactive_descheduler.controller import bus
from reactive_descheduler.controller.parking import Evaluated
from reactive_descheduler.evictor.queue import Queued
from reactive_descheduler.framework.strategy import Holds
from tests.property.cluster_model import (
    REPLACED,
    SECONDS,
    Event,
    Name,
    Start,
    bindings,
    crowds,
    deletions,
    events,
    happenings,
    policies,
    some_cluster,
)
from tests.property.running_core import HAIR, RunningCore

GRANTED = frozenset({Answer.EVICTED, Answer.UNKNOWN})
COUNTED = GRANTED | {Answer.SERVER_ERROR}
STATUS = {
    Answer.EVICTED: 201,
    Answer.NOT_FOUND: 404,
    Answer.SERVER_ERROR: 500,
    Answer.UNKNOWN: None,
}
ANSWERS = (
    Answer.EVICTED,
    Answer.EVICTED,
    Answer.EVICTED,
    Answer.EVICTED,
    Answer.UNKNOWN,
    Answer.UNKNOWN,
    Answer.BUDGET,
    Answer.BUDGET_UNOBSERVED,
    Answer.THROTTLED,
    Answer.WEBHOOK_DENIED,
    Answer.SERVER_ERROR,
    Answer.SEVERAL_BUDGETS,
)
REFUSALS = (Answer.BUDGET, Answer.SERVER_ERROR, Answer.UNKNOWN)
LONGEST_SETTLE = 9.0


@pytest.fixture(autouse=True, scope="module")
def _short_slices() -> Iterator[None]:
    """Let a whole pass take several turns even here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bus, "_SLICE", 3)
        yield


Move = tuple[Any, ...]
_requests = st.integers(0, 3)
_changes = st.tuples(
    st.just("change"),
    happenings,
    st.integers(0, 4),
    _requests,
)
_answers = st.tuples(
    st.just("answer"),
    st.integers(0, 7),
    st.sampled_from(ANSWERS),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
MOVES: st.SearchStrategy[Move] = st.one_of(
    _changes,
    _changes,
    _answers,
    _answers,
    st.tuples(st.just("schedule"), st.lists(bindings, min_size=3, max_size=6), _requests),
    st.tuples(st.just("miss"), st.lists(events, min_size=1, max_size=4)),
    st.tuples(st.just("wait"), st.sampled_from(SECONDS), _requests),
    st.tuples(st.just("come_to_rest"), st.sampled_from((1.0, 15.0, 75.0))),
    st.tuples(st.just("refuse"), st.sampled_from(REFUSALS)),
)
SHARING = (
    "RemovePodsViolatingNodeTaints",
    "PodLifeTime",
    "RemoveDuplicates",
    "RemovePodsViolatingTopologySpreadConstraint",
    "LowNodeUtilization",
)
MOVES_OF_SHARING: st.SearchStrategy[Move] = st.one_of(
    MOVES,
    MOVES,
    st.tuples(st.just("change"), crowds, st.integers(0, 4), _requests),
    st.tuples(
        st.just("change"), st.lists(deletions, min_size=1, max_size=1), st.just(0), _requests
    ),
    st.tuples(st.just("wait"), st.sampled_from(SECONDS), _requests),
    st.tuples(st.just("refuse"), st.sampled_from(REFUSALS)),
)


class Sent(NamedTuple):
    time: datetime
    pod: Pod


class Acting(RuleBasedStateMachine):
    def begin(self, policy: str, start: Start) -> None:
        self.run = RunningCore(policy)
        self.in_flight: list[Queued] = []
        self.started: list[datetime] = []
        self.counted: list[Sent] = []
        self.asked: dict[str, set[Key]] = {}
        self.strategies = {
            (profile.index, strategy.NAME): strategy for profile, strategy in self.run.strategies
        }
        self.leaving: list[Name] = []
        self.run.cluster.begin(start)
        self.run.core.go_live()
        self.ask(1)

    def make(self, move: Move) -> None:
        """Make one of the moves below. They are no rules of their own, for of several Hypothesis
        leaves some out in each run."""
        name, *arguments = move
        getattr(self, name)(*arguments)

    def change(self, happening: list[Event], taken: int, requests: int) -> None:
        for event in happening:
            self.run.cluster.tell(event)
            self.run.drain(taken)
        self.ask(requests)

    def schedule(self, bound: list[Event], requests: int) -> None:
        for event in bound:
            self.run.cluster.tell(event)
        self.run.rest()
        self.ask(requests)

    def miss(self, missed: list[Event]) -> None:
        self.run.cluster.miss(missed)

    def wait(self, seconds: float, requests: int) -> None:
        self.run.wait(seconds)
        self.run.core.end_waits()
        self.ask(requests)

    def answer(
        self, which: int, answer: Answer, granted: bool, lingers: bool, seen_first: bool
    ) -> None:
        if not self.in_flight:
            return
        entry = self.in_flight.pop(which % len(self.in_flight))
        goes = answer is Answer.EVICTED or (answer is Answer.UNKNOWN and granted)
        name = self.name_of(entry)
        if name is None:
            self.finish(entry, Answer.NOT_FOUND)
            return
        if not goes and REQUEST_EVICT_ONLY_ANNOTATION in entry.candidate.pod.annotations:
            self.finish(entry, Answer.BACKGROUND)
            return
        if goes and seen_first:
            self.leave(name, lingers=lingers)
        self.finish(entry, answer)
        if goes and not seen_first:
            self.leave(name, lingers=lingers)

    def refuse(self, answer: Answer) -> None:
        """Refuse or lose whatever is in flight, then look whether the queue has what it should."""
        while self.in_flight:
            self.finish(self.in_flight.pop(), answer)
        self.resolve()
        self.run.rest()
        self.run.core.end_waits()
        self.run.rest()
        self.run.check_sound()
        core, nothing = self.run.core, Evaluated()
        for key in self.run.key_space():
            remembered = core.parking.get(key, nothing)
            offers = uids_of(core.loop.evaluate(key).offered)
            # More may wait: that room was promised meanwhile is seen right before a request.
            assert offers <= uids_of(remembered.offered), f"{key}\n{remembered}"
            # One that fell when it was checked once more too often is looked at again later.
            waiting = uids_of(core.evictions.offers(key))
            assert offers <= waiting or core.queue.pending(key), f"{key}\n{remembered}"

    def resolve(self) -> None:
        """Look up all that is assumed going: it stays."""
        for uid in tuple(self.run.core.assumed.pods):
            key = next((key for key in self.run.key_space() if key.unit == (uid,)), None)
            self.run.core.resolve(uid, key=key)

    def come_to_rest(self, seconds: float) -> None:
        core = self.run.core
        self.answer_all()
        for name in self.leaving:
            self.run.cluster.tell(Event("Pod", name, REPLACED))
        self.leaving.clear()
        self.resolve()
        self.run_for(LONGEST_SETTLE + self.run.debounce + seconds)
        sent = -1
        while len(self.started) > sent:  # what the last one changed is still being gathered
            sent = len(self.started)
            core.end_waits()
            self.run_for(self.run.debounce + 2 * HAIR)
        self.run.check_sound()
        for key in self.run.key_space():
            for candidate in core.loop.evaluate(key).offered:
                held = core.dispatcher.check(candidate) or core.dispatcher.statistics().closed
                assert held is not None, f"{candidate}\n{core.parking.get(key)}"

    def run_for(self, seconds: float) -> None:
        """Let time pass, sending and granting whatever may go."""
        until = self.run.clock.monotonic() + seconds
        while True:
            self.run.drain()
            self.answer_all()
            now = self.run.clock.monotonic()
            at = min(self.next_times(), default=until)
            if at > until + HAIR or now >= until + HAIR:
                break
            self.run.clock.advance(max(at - now, 1e-4))
        self.run.clock.advance(max(0.0, until + HAIR - self.run.clock.monotonic()))
        self.run.drain()
        self.answer_all()

    def next_times(self) -> Iterator[float]:
        """Yield when the queue has something due, and when what holds everything ends."""
        at = self.run.core.queue.next_due()
        if at is not None:
            yield at
        closed = self.run.core.dispatcher.statistics().closed
        for wake in closed.wakes if closed is not None else ():
            if isinstance(wake, At):
                wait = (wake.time - self.run.clock.now()).total_seconds()
                yield self.run.clock.monotonic() + wait

    def answer_all(self) -> None:
        """Grant every request, those that follow too; replacements stay pending."""
        self.ask(100)
        while self.in_flight:
            entry = self.in_flight.pop()
            name = self.name_of(entry)
            self.finish(entry, Answer.NOT_FOUND if name is None else Answer.EVICTED)
            if name is not None:
                self.run.cluster.tell(Event("Pod", name, REPLACED))
            self.run.drain()
            self.ask(100)

    def ask(self, most: int) -> None:
        """Start so many requests, if so many may go."""
        for _ in range(most):
            going = set(self.run.core.assumed.pods)
            entry = self.run.core.dispatcher.next_request()
            if entry is None:
                return
            assert entry.candidate.pod.uid not in going, "it was asked for already"
            self.check_request(entry)
            self.in_flight.append(entry)

    def check_request(self, entry: Queued) -> None:
        now, pod = self.run.clock.now(), entry.candidate.pod
        assert all(each.candidate.pod.uid != pod.uid for each in self.in_flight)
        self.check_hold(entry.candidate)
        self.started.append(now)
        rate = self.run.policy.reactive.rate_limit
        for count, earlier in enumerate(reversed(self.started), start=1):
            tokens = rate.burst + rate.evictions_per_second * (now - earlier).total_seconds()
            assert count <= tokens + 1e-3, "no token"
        self.counted.append(Sent(now, pod))
        window = self.run.policy.reactive.limits.window
        for limit, sent in self.limited(pod, since=now - window):
            assert limit is None or sent <= limit

    def check_hold(self, candidate: Candidate) -> None:
        """See that nothing is on its way that the key counts and did not ask for."""
        key, pod, lister = candidate.key, candidate.pod, self.run.core.lister
        self.asked.setdefault(pod.uid, set()).add(key)
        strategy = self.strategies[key[:2]]
        if strategy.HOLDS is Holds.NOTHING:
            return
        for each in self.in_flight:
            others = each.candidate
            now = lister.pod(others.pod.uid)
            if others.key != key and now is not None and now.active and now.deleted is None:
                assert not strategy.counts(key, others.pod, lister), others
        if strategy.HOLDS is not Holds.COUNTED:
            return
        latest = self.run.clock.now() - self.run.policy.reactive.pacing.timeout
        for going in lister.terminating(pod.namespace):
            if going.deleted is not None and going.deleted > latest:
                is_own = key in self.asked.get(going.uid, ())
                assert is_own or not strategy.counts(key, going, lister), going

    def limited(self, pod: Pod, *, since: datetime) -> Iterator[tuple[int | None, int]]:
        """Yield each limit on the Pod, and how many under it have gone."""
        sent = [each.pod for each in self.counted if each.time > since]
        limits = self.run.policy.limits
        yield limits.total, len(sent)
        yield limits.per_node, sum(each.node_name == pod.node_name for each in sent)
        yield limits.per_namespace, sum(each.namespace == pod.namespace for each in sent)
        owner = workload(pod)
        if owner is not None:
            of_owner = sum(workload(each) == owner for each in sent)
            yield self.run.policy.reactive.limits.per_workload, of_owner

    def finish(self, entry: Queued, answer: Answer) -> None:
        if answer not in COUNTED:
            uid = entry.candidate.pod.uid
            last = max(n for n, sent in enumerate(self.counted) if sent.pod.uid == uid)
            del self.counted[last]
        now = self.run.clock.now()
        outcome = EvictionOutcome(
            entry.candidate, answer, STATUS.get(answer, 429), "so it is", None, now, now
        )
        self.run.core.dispatcher.finish(entry, outcome)

    def name_of(self, entry: Queued) -> Name | None:
        """Return the name of the Pod to evict, if it is still there."""
        pod = entry.candidate.pod
        found = self.run.cluster.found("Pod", (pod.namespace, pod.name))
        there = found is not None and found["uid"] == pod.uid
        return (pod.namespace, pod.name) if there else None

    def leave(self, name: Name, *, lingers: bool) -> None:
        """Delete a Pod that was granted, at once or in a while."""
        if lingers:
            self.run.cluster.tell(Event("Pod", name, "deleted", True))
            self.leaving.append(name)
        else:
            self.run.cluster.tell(Event("Pod", name, REPLACED))


def uids_of(candidates: Iterable[Candidate]) -> set[str]:
    return {each.pod.uid for each in candidates}


class Evictions(Acting):
    @initialize(policy=policies(acting=True), start=some_cluster)
    def start(self, policy: str, start: Start) -> None:
        self.begin(policy, start)

    @rule(move=MOVES)
    def move(self, move: Move) -> None:
        self.make(move)


class SharedEvictions(Acting):
    """Strategies that count the same Pods, of which somebody else deletes some too."""

    @initialize(policy=policies(acting=True, among=SHARING), start=some_cluster)
    def start(self, policy: str, start: Start) -> None:
        self.begin(policy, start)

    @rule(move=MOVES_OF_SHARING)
    def move(self, move: Move) -> None:
        self.make(move)


@pytest.mark.timeout(300)
def test_what_may_go_goes_and_nothing_else() -> None:
    usual = settings(max_examples=150, stateful_step_count=40)
    run_state_machine_as_test(Evictions, settings=usual)


@pytest.mark.timeout(300)
def test_strategies_that_count_the_same_pods_wait_for_each_other() -> None:
    usual = settings(max_examples=100, stateful_step_count=40)
    run_state_machine_as_test(SharedEvictions, settings=usual)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_strategies_that_count_the_same_pods_wait_for_each_other_for_long() -> None:
    long = settings(max_examples=1500, stateful_step_count=50)
    run_state_machine_as_test(SharedEvictions, settings=long)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_what_may_go_goes_and_nothing_else_for_long() -> None:
    long = settings(max_examples=1500, stateful_step_count=50)
    run_state_machine_as_test(Evictions, settings=long)
