"""No circles: who was evicted and is placed anew as was meant is not evicted again.

All corrections are on. A full pass, then an ideal scheduler, then the next pass, until none wants
anybody gone. Of one strategy alone no replacement is evicted again at all; several may undo each
other's work once, but have to come to an end. Left out are policies that `validate` says fight, and
those by which a Pod is too old at once. What a Pod went through (restarts, failures, age) does not
go over to its replacement.
"""

from __future__ import annotations

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

pytestmark = pytest.mark.timeout(300)
FIGHTS = {Doubt.UTILIZATION_FIGHT, Doubt.PACKING_FIGHT, Doubt.AGE_ZERO}
MOST_ROUNDS = 12


def _check(policy: str, start: Start, then: list[list[Event]], seed: int) -> None:
    run = RunningCore(policy)
    assume(not any(doubt.kind in FIGHTS for doubt in doubts(run.policy)))
    run.cluster.begin(start)
    random = Random(seed)
    _come_to_rest(run, random)
    for happening in then:
        for event in happening:
            run.cluster.tell(event)
        _come_to_rest(run, random)


def _come_to_rest(run: RunningCore, random: Random) -> None:
    strict = len(run.strategies) == 1
    placed: set[str] = set()
    for _ in range(MOST_ROUNDS):
        scheduler = IdealScheduler(run, random)
        victims = _evicted(run)
        again = [each for each in victims if each.pod.uid in placed]
        assert not (strict and again), again
        if not victims:
            return
        placed = scheduler.replace(victims)
    raise AssertionError(f"no end in {MOST_ROUNDS} passes")


def _evicted(run: RunningCore) -> list[Candidate]:
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


_then = st.lists(happenings, max_size=3)
_seeds = st.integers(0, 2**16)


@given(policies(acting=False, corrections=("all",)), some_cluster, _then, _seeds)
@settings(max_examples=150)
def test_several(policy: str, start: Start, then: list[list[Event]], seed: int) -> None:
    _check(policy, start, then, seed)


@pytest.mark.parametrize("name", tuple(ARGUMENTS))
def test_alone(name: str) -> None:
    @given(policies(acting=False, corrections=("all",), alone=name), some_cluster, _then, _seeds)
    @settings(max_examples=100)
    def check(policy: str, start: Start, then: list[list[Event]], seed: int) -> None:
        _check(policy, start, then, seed)

    check()
