"""Booking: what is promised to whom, and when a promise ends."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reactive_descheduler.api.changes import Action, Change, ClusterEvent
from reactive_descheduler.api.eviction import Answer
from reactive_descheduler.evictor.gates.booking import BookingGate
from tests.builders import make_node, node_view, owner
from tests.unit.evictor.samples import NOW, candidate, later, outcome, pod

HERE = node_view(make_node("node-2"))
FREED = [ClusterEvent(Action.REPLACED, ("Node", "", "node-2"))]


def booking(*, found: bool = True) -> BookingGate:
    gate = BookingGate(timeout=timedelta(minutes=5))
    gate.reconfigure(lambda _: HERE if found else None)
    return gate


def promised(gate: BookingGate) -> list[tuple[str, str]]:
    return [(each.name, each.node_name) for each in gate.promised.all()]


def test_room_is_promised_when_the_request_starts() -> None:
    gate = booking()
    gate.take(candidate(), NOW)
    assert promised(gate) == []

    gate.sent(candidate(), NOW)

    assert promised(gate) == [("a", "node-2")]
    assert [each.uid for each in gate.promised.on("node-2")] == ["uid-default-a"]


def test_nothing_is_promised_where_nobody_would_take_it() -> None:
    gate = booking(found=False)
    gate.sent(candidate(), NOW)
    assert promised(gate) == []


@pytest.mark.parametrize(
    ("answer", "stays"),
    [
        pytest.param(Answer.EVICTED, True, id="evicted"),
        pytest.param(Answer.BACKGROUND, True, id="in-background"),
        pytest.param(Answer.DRY_RUN, True, id="dry-run"),
        pytest.param(Answer.UNKNOWN, True, id="unknown"),
        pytest.param(Answer.BUDGET, False, id="budget"),
        pytest.param(Answer.NOT_FOUND, False, id="not-found"),
        pytest.param(Answer.OBSERVED, False, id="observed"),
        pytest.param(Answer.SERVER_ERROR, False, id="server-error"),
    ],
)
def test_promise_ends_with_a_request_that_comes_to_nothing(answer: Answer, stays: bool) -> None:
    gate = booking()
    gate.sent(candidate(), NOW)

    events = list(gate.on_outcome(outcome(answer), NOW))

    assert bool(promised(gate)) is stays
    assert events == ([] if stays else FREED)


@pytest.mark.parametrize(
    ("name", "node", "workload", "created", "ends"),
    [
        pytest.param("b", "node-3", "web", later(1), True, id="bound-anywhere"),
        pytest.param("b", "", "web", later(1), False, id="not-bound"),
        pytest.param("b", "node-2", "other", later(1), False, id="of-another-owner"),
        pytest.param("b", "node-2", "web", later(-60), False, id="made-before"),
    ],
)
def test_promise_ends_when_the_replacement_is_bound(
    name: str, node: str, workload: str, created: object, ends: bool
) -> None:
    gate = booking()
    gate.sent(candidate(), NOW)
    arrived = pod(name, node=node, owners=[owner(workload)], created=created)

    events = list(gate.on_change(Change("Pod", None, arrived), later(2)))

    assert (events == FREED) is ends
    assert bool(promised(gate)) is not ends


def test_two_replacements_end_two_promises_the_oldest_first() -> None:
    gate = booking()
    for name in ("a", "b"):
        gate.sent(candidate(pod(name)), NOW)

    for name in ("c", "d"):
        waiting = pod(name, node="", created=later(1))
        bound = pod(name, node="node-3", created=later(1))
        assert list(gate.on_change(Change("Pod", None, waiting), later(2))) == []
        assert list(gate.on_change(Change("Pod", waiting, bound), later(2))) == FREED
        assert list(gate.on_change(Change("Pod", bound, bound), later(3))) == []

    assert promised(gate) == []


def test_promise_ends_after_the_timeout_however_the_clock_jumps() -> None:
    gate = booking()
    gate.sent(candidate(), NOW)

    assert list(gate.expire(later(299))) == []
    gate.on_jump(timedelta(hours=1))
    assert list(gate.expire(later(3600 + 299))) == []
    assert list(gate.expire(later(3600 + 300))) == FREED
    assert list(gate.expire(later(9999))) == []


def test_promise_does_not_end_before_the_eviction() -> None:
    going = {"uid-default-a"}
    gate = BookingGate(timeout=timedelta(minutes=5), under_way=going.__contains__)
    gate.reconfigure(lambda _: HERE)
    gate.sent(candidate(), NOW)

    assert list(gate.expire(later(9999))) == []
    going.clear()
    assert list(gate.expire(later(9999))) == FREED


def test_promise_ends_for_a_pod_that_stays() -> None:
    gate = booking()
    gate.sent(candidate(), NOW)
    assert list(gate.stays("uid-default-a")) == FREED
    assert list(gate.stays("uid-default-a")) == []


def test_policy_without_booking_ends_every_promise() -> None:
    gate = booking()
    gate.sent(candidate(), NOW)

    gate.reconfigure(None)
    gate.sent(candidate(pod("b")), NOW)

    assert promised(gate) == []
