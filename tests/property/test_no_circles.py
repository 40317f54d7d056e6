"""No circles: who was evicted and is placed anew as was meant is not evicted again.

All corrections are on. A full pass, then an ideal scheduler, then the next pass, until none wants
anybody gone. Left out are policies that `validate` says fight, and those by which a Pod is too old
at once. What a Pod went through (restarts, failures, age) does not go over to its replacement.

A strategy that is alone takes no replacement back at all, in no later pass, and where node fit is
on there is a place for each. Of several, none takes back in the next pass what it moved itself, and
no other takes it away as long as the pass has evicted nobody else. More cannot be: once somebody
else went, numbers and shares that another strategy goes by have changed, and a Pod that was well
placed need not be any more. It ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reactive_descheduler.api.eviction import Candidate
from reactive_descheduler.app.booking import rooms_of
from reactive_descheduler.app.pass_driver import run_pass
from reactive_descheduler.app.policy import pass_limits
from reactive_descheduler.config.doubt_kinds import Doubt
from reactive_descheduler.config.doubts import doubts
from tests.property.cluster_model import (
    ARGUMENTS,
    Event,
    Start,
    happenings,
    policies,
    some_cluster,
)
from tests.property.ideal_scheduler import IdealScheduler
from tests.property.running_core import RunningCore

FIGHTS = {Doubt.UTILIZATION_FIGHT, Doubt.PACKING_FIGHT, Doubt.AGE_ZERO}
MOST_PASSES = 12

Then = list[list[Event]]
_then: st.SearchStrategy[Then] = st.lists(happenings, max_size=3)
_seeds = st.integers(0, 2**16)


def begun(policy: str, start: Start, then: Then) -> Iterator[RunningCore]:
    """Yield the cluster as it is at first, and after each thing that happens."""
    run = RunningCore(policy)
    assume(not any(doubt.kind in FIGHTS for doubt in doubts(run.policy)))
    run.cluster.begin(start)
    yield run
    for happening in then:
        for event in happening:
            run.cluster.tell(event)
        yield run


def check_alone(policy: str, start: Start, then: Then, seed: int) -> None:
    for run in begun(policy, start, then):
        scheduler, victims = IdealScheduler(run, Random(seed)), evicted(run)
        for _ in range(MOST_PASSES):
            if not victims:
                break
            placed, pending = scheduler.replace(victims)
            assert not (pending and scheduler.have_places(victims)), pending
            scheduler, victims = IdealScheduler(run, Random(seed)), evicted(run)
            again = [each for each in victims if each.pod.uid in placed]
            assert not again, again
        assert not victims, "it never ends"


def check_several(policy: str, start: Start, then: Then, seed: int) -> None:
    for run in begun(policy, start, then):
        placed: dict[str, str] = {}
        for _ in range(MOST_PASSES):
            scheduler = IdealScheduler(run, Random(seed), careful=True)
            victims = evicted(run)
            check_taken_back(victims, placed)
            if not victims:
                break
            placed = scheduler.replace(victims).placed
        assert not victims, "it never ends"


def check_taken_back(victims: list[Candidate], placed: dict[str, str]) -> None:
    """Look at the victims of one pass, in the order in which they went, after those were placed."""
    others = False
    for each in victims:
        moved_by = placed.get(each.pod.uid)
        assert moved_by is None or others, f"{moved_by} moved it: {each}"
        assert each.key.strategy != moved_by, each
        others |= moved_by is None


def evicted(run: RunningCore) -> list[Candidate]:
    core = run.core
    report = run_pass(
        core.profiles,
        store=core.store,
        nodes=core.cycle,
        now=run.clock.now(),
        limits=pass_limits(run.policy),
        ask=lambda _: None,
        one_offer=True,
        rooms=rooms_of(run.policy),
    )
    assert not report.failed, report.failed
    return report.evicted


def hold_alone(name: str, *, examples: int) -> None:
    policy = policies(acting=False, corrections=("all",), alone=name)
    settings(max_examples=examples)(given(policy, some_cluster, _then, _seeds)(check_alone))()


def hold_several(*, examples: int) -> None:
    policy = policies(acting=False, corrections=("all",))
    settings(max_examples=examples)(given(policy, some_cluster, _then, _seeds)(check_several))()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_no_strategy_takes_back_what_it_moved(name: str) -> None:
    hold_alone(name, examples=370)


@pytest.mark.timeout(300)
def test_strategies_together_come_to_rest() -> None:
    hold_several(examples=400)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_no_strategy_takes_back_what_it_moved_for_long(name: str) -> None:
    hold_alone(name, examples=3700)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_strategies_together_come_to_rest_for_long() -> None:
    hold_several(examples=4000)
