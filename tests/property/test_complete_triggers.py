"""Triggers are complete: after any events, what is remembered is what a fresh look would say.

No event may be missed and no wake left out. Acting is off, so nobody asks for an eviction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from reactive_descheduler.controller import bus
from reactive_descheduler.controller.parking import Evaluated
from reactive_descheduler.strategies import (
    remove_pods_violating_inter_pod_anti_affinity as anti_affinity,
)
from tests.property.cluster_model import (
    ARGUMENTS,
    NODES,
    PODS,
    SECONDS,
    SHAPES,
    Event,
    Fields,
    Start,
    crowds,
    crowds_for,
    events,
    happenings,
    pod_changes,
    policies,
    some_cluster,
)
from tests.property.running_core import RunningCore, verdict_of


@pytest.fixture(autouse=True, scope="module")
def _short_slices() -> Iterator[None]:
    """Let a whole pass take several turns even here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bus, "_SLICE", 3)
        yield


Move = tuple[Any, ...]
_changes = st.tuples(
    st.just("change"),
    happenings,
    st.integers(0, 4),
    st.integers(0, 3),
)
_others: tuple[st.SearchStrategy[Move], ...] = (
    _changes,
    _changes,
    st.tuples(st.just("miss"), st.lists(events, min_size=1, max_size=4)),
    st.tuples(
        st.just("fill"),
        st.sampled_from(NODES),
        st.integers(0, 2),
        st.lists(st.tuples(st.integers(0, 6), st.sampled_from(SHAPES)), min_size=1, max_size=2),
    ),
    st.tuples(st.just("wait"), st.sampled_from(SECONDS)),
    st.just(("resync",)),
)


def moves(alone: str | None) -> st.SearchStrategy[Move]:
    crowd = crowds if alone is None else crowds_for.get(alone, crowds)
    touch = st.tuples(st.just("touch"), st.integers(0, 9), pod_changes, crowd)
    return st.one_of(touch, touch, touch, *_others)


class Triggers(RuleBasedStateMachine):
    def begin(self, policy: str, start: Start) -> None:
        self.run = RunningCore(policy)
        self.run.cluster.begin(start)
        self.run.core.go_live()
        self.compare()

    def change(self, happening: list[Event], taken: int, at_rest: int) -> None:
        for event in happening:
            self.run.cluster.tell(event)
            self.run.drain(taken)
        if at_rest:
            self.compare()

    def touch(self, which: int, change: tuple[str, object], crowd: list[Event]) -> None:
        """Change a Pod of which something is remembered, and nothing else; if there is none, let
        some come."""
        remembered = list(self.run.core.parking.values())
        said = [candidate.pod.ref for each in remembered for candidate in each.offered]
        said += [refused.pod for each in remembered for refused in each.rejected if refused.pod]
        happening = crowd
        if said:
            _, namespace, name = said[which % len(said)]
            happening = [Event("Pod", (namespace, name), *change)]
        for event in happening:
            self.run.cluster.tell(event)
        self.compare()

    def fill(self, node: str, room: int, coming: list[tuple[int, Fields]]) -> None:
        """Leave room for so many more Pods on a node, then let some come there."""
        cluster, there = self.run.cluster, self.run.core.lister.active_pods_on(node)
        cluster.tell(Event("Node", ("", node), "room", ("6", str(there + room))))
        self.compare()
        for which, shape in coming:
            free = [name for name in PODS if cluster.found("Pod", name) is None] or PODS
            made = {**shape, "node": node}
            cluster.tell(Event("Pod", free[which % len(free)], "made", made))
            self.compare()

    def miss(self, missed: list[Event]) -> None:
        self.run.cluster.miss(missed)
        self.compare()

    def wait(self, seconds: float) -> None:
        self.run.wait(seconds)
        self.compare()

    def resync(self) -> None:
        self.run.core.resync()
        self.compare()

    def compare(self) -> None:
        self.run.rest()
        self.run.check_sound()
        core = self.run.core
        nothing = Evaluated()
        for key in self.run.key_space():
            now = core.loop.evaluate(key)
            remembered = core.parking.get(key, nothing)
            assert verdict_of(remembered) == verdict_of(now), f"{key}\nwakes: {remembered.wakes}"
            waiting = verdict_of(Evaluated(tuple(core.evictions.offers(key))))
            assert waiting[0] == verdict_of(now)[0], key


def triggers(alone: str | None = None) -> type[Triggers]:
    """Return the machine for any policy, or for one strategy, which then has more to do."""

    class Of(Triggers):
        @initialize(policy=policies(acting=False, alone=alone), start=some_cluster)
        def start(self, policy: str, start: Start) -> None:
            self.begin(policy, start)

        @rule(move=moves(alone))
        def move(self, move: Move) -> None:
            """Make one of the moves. They are no rules of their own, for of several Hypothesis
            leaves some out in each run."""
            name, *arguments = move
            getattr(self, name)(*arguments)

    return Of


class WholePasses(RuleBasedStateMachine):
    """Keys partition, and evaluated one by one they offer what a pass over everything offers."""

    @initialize(policy=policies(acting=False), start=some_cluster)
    def start(self, policy: str, start: Start) -> None:
        self.run = RunningCore(policy)
        self.run.cluster.begin(start)
        self.compare()

    @rule(happening=happenings, seconds=st.sampled_from((0, 7)))
    def change(self, happening: list[Event], seconds: float) -> None:
        for event in happening:
            self.run.cluster.tell(event)
        self.run.clock.advance(seconds)
        self.compare()

    def compare(self) -> None:
        for profile, strategy in self.run.strategies:
            offered = {}
            for key in strategy.keys_of(self.run.core.live):
                for found in verdict_of(self.run.evaluated(profile, strategy, key))[0]:
                    assert found[0] not in offered, "candidate of two keys"
                    offered[found[0]] = found
            assert offered == self.run.swept(profile, strategy), strategy.NAME


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_is_remembered_of_a_strategy_is_what_a_fresh_look_says(name: str) -> None:
    usual = settings(max_examples=150, stateful_step_count=40)
    run_state_machine_as_test(triggers(name), settings=usual)


@pytest.mark.timeout(300)
def test_what_is_remembered_is_what_a_fresh_look_says() -> None:
    usual = settings(max_examples=100, stateful_step_count=40)
    run_state_machine_as_test(triggers(), settings=usual)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("many", [0, 1000])
def test_so_it_is_where_more_are_in_conflict_than_are_offered_at_a_time(
    many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anti_affinity, "_MOST", 1)
    monkeypatch.setattr(anti_affinity, "_MANY", many)
    usual = settings(max_examples=100, stateful_step_count=40)
    run_state_machine_as_test(triggers("RemovePodsViolatingInterPodAntiAffinity"), settings=usual)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_is_remembered_of_a_strategy_is_what_a_fresh_look_says_for_long(name: str) -> None:
    long = settings(max_examples=600, stateful_step_count=50)
    run_state_machine_as_test(triggers(name), settings=long)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_what_is_remembered_is_what_a_fresh_look_says_for_long() -> None:
    long = settings(max_examples=1500, stateful_step_count=50)
    run_state_machine_as_test(triggers(), settings=long)


@pytest.mark.timeout(300)
def test_keys_offer_what_a_full_pass_offers() -> None:
    usual = settings(max_examples=60, stateful_step_count=40)
    run_state_machine_as_test(WholePasses, settings=usual)
