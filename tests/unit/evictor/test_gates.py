"""What each gate lets pass and what it holds, and until when."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from reactive_descheduler.api.changes import Change, Key, On
from reactive_descheduler.api.eviction import Answer, Candidate, Held, Rejection, Stop
from reactive_descheduler.app.enduring import Gates
from reactive_descheduler.evictor.gates import ORDER
from reactive_descheduler.evictor.gates.bucket import BucketGate
from reactive_descheduler.evictor.gates.clock import ClockGate
from reactive_descheduler.evictor.gates.limits import Limits, LimitsGate, PassLimits
from reactive_descheduler.evictor.gates.permission import PermissionGate
from reactive_descheduler.evictor.gates.reported import ReportedGate
from reactive_descheduler.evictor.gates.retry import RetryGate
from reactive_descheduler.evictor.gates.settle import SettleGate
from reactive_descheduler.evictor.gates.staleness import StalenessGate
from reactive_descheduler.evictor.gates.synced import SyncedGate
from reactive_descheduler.kit.clock import ManualClock
from reactive_descheduler.kit.token_bucket import TokenBucket
from tests.builders import owner
from tests.unit.evictor.samples import NOW, candidate, later, outcome, pod, taint_cause, times

ALL = frozenset(Answer)


def test_every_gate_stands_in_the_order_and_none_else() -> None:
    assert set(ORDER) == set(Gates.__dataclass_fields__)


# settle


def settle_gate(*, wait: float, began: datetime | None) -> SettleGate:
    return SettleGate(
        settle_of=lambda _candidate: timedelta(seconds=wait), began=lambda _cause: began
    )


@pytest.mark.parametrize(
    ("wait", "began", "at", "due"),
    [
        pytest.param(5, NOW, later(4.9), later(5), id="not long enough"),
        pytest.param(5, NOW, later(5), None, id="just long enough"),
        pytest.param(5, None, later(100), later(105), id="broken: counts from now"),
        pytest.param(0, None, NOW, None, id="no settle time"),
    ],
)
def test_settle(wait: float, began: datetime | None, at: datetime, due: datetime | None) -> None:
    held = settle_gate(wait=wait, began=began).check(candidate(), at)

    assert (times(held) if held else [None]) == [due]


# retry


@pytest.mark.parametrize(
    ("answer", "longest"),
    [
        (Answer.WEBHOOK_DENIED, 1800),
        (Answer.INVALID, 1800),
        (Answer.SEVERAL_BUDGETS, 1800),
        (Answer.SERVER_ERROR, 300),
        (Answer.UNKNOWN, 300),
    ],
)
def test_a_failed_request_is_tried_again_later_each_time(answer: Answer, longest: float) -> None:
    gate, now, waits = RetryGate(), NOW, []
    for _ in range(10):
        gate.on_outcome(outcome(answer), now)
        (due,) = times(gate.check(candidate(), now))
        waits.append((due - now).total_seconds())
        assert gate.check(candidate(), due) is None
        now = due

    assert waits == [min(10 * 2**attempt, longest) for attempt in range(10)]


@pytest.mark.parametrize("answer", sorted(ALL - {Answer.WEBHOOK_DENIED, Answer.INVALID,
    Answer.SEVERAL_BUDGETS, Answer.SERVER_ERROR, Answer.UNKNOWN}))  # fmt: skip
def test_what_other_gates_wait_for_ends_a_row_of_failures(answer: Answer) -> None:
    gate = RetryGate()
    for _ in range(3):
        gate.on_outcome(outcome(Answer.SERVER_ERROR), NOW)
    gate.on_outcome(outcome(answer), NOW)
    assert gate.check(candidate(), NOW) is None
    gate.on_outcome(outcome(Answer.SERVER_ERROR), NOW)

    assert times(gate.check(candidate(), NOW)) == [later(10)]


def test_a_failure_concerns_its_pod_only_and_is_forgotten_with_it() -> None:
    gate = RetryGate()
    gate.on_outcome(outcome(Answer.SERVER_ERROR), NOW)
    assert gate.check(candidate(pod("other")), NOW) is None
    gate.on_change(Change("Pod", pod(), None), NOW)

    assert gate.check(candidate(), NOW) is None


# limits


def limits_gate(**limits: int) -> LimitsGate:
    return LimitsGate(Limits(**limits), window=timedelta(minutes=5))


def send(gate: LimitsGate, of: Candidate, at: datetime) -> None:
    gate.take(of, at)
    gate.sent(of, at)


def deployment_pod(name: str, template_hash: str, **fields: str) -> Candidate:
    labels = {"app": "web", "pod-template-hash": template_hash}
    owners = [owner(f"web-{template_hash}")]
    return candidate(pod(name, labels=labels, owners=owners, **fields))


SHARING = {
    "total": (candidate(pod("a")), candidate(pod("b", node="node-2", namespace="other"))),
    "per_node": (candidate(pod("a")), candidate(pod("b", namespace="other"))),
    "per_namespace": (candidate(pod("a")), candidate(pod("b", node="node-2"))),
    "per_workload": (
        deployment_pod("a", "11"),
        deployment_pod("b", "22", node="node-2"),
    ),
}
APART = {
    "per_node": (candidate(pod("a")), candidate(pod("b", node="node-2"))),
    "per_namespace": (candidate(pod("a")), candidate(pod("b", namespace="other"))),
    "per_workload": (
        candidate(pod("a", owners=[owner("x")])),
        candidate(pod("b", owners=[owner("y")])),
    ),
}


@pytest.mark.parametrize(
    ("scope", "kind"),
    [
        ("total", Held),
        ("per_node", Held),
        ("per_namespace", Rejection),
        ("per_workload", Rejection),
    ],
)
def test_a_key_of_many_turns_to_others_where_these_may_go(
    scope: str, kind: type[Held] | type[Rejection]
) -> None:
    gate = limits_gate(**{scope: 1})
    first, second = SHARING[scope]
    send(gate, first, NOW)

    assert isinstance(gate.check(second._replace(key=Key(0, "S", ("unit",))), NOW), kind)


@pytest.mark.parametrize("scope", SHARING)
def test_a_limit_holds_what_shares_it_until_the_window_has_passed(scope: str) -> None:
    gate = limits_gate(**{scope: 1})
    first, second = SHARING[scope]
    assert gate.check(first, NOW) is None
    send(gate, first, NOW)
    held = gate.check(second, later(10))

    assert times(held) == [later(300)]
    assert gate.check(second, later(299)) is not None
    assert gate.check(second, later(300)) is None


@pytest.mark.parametrize("scope", APART)
def test_a_limit_does_not_hold_what_it_does_not_count(scope: str) -> None:
    gate = limits_gate(**{scope: 1})
    first, second = APART[scope]
    send(gate, first, NOW)

    assert gate.check(second, NOW) is None


def test_the_window_slides() -> None:
    gate = limits_gate(total=2)
    for second in (0, 100):
        send(gate, candidate(pod(f"p{second}")), later(second))
    assert times(gate.check(candidate(), later(200))) == [later(300)]
    send(gate, candidate(pod("p300")), later(300))

    assert times(gate.check(candidate(), later(350))) == [later(400)]


def test_a_limit_of_zero_lets_nothing_go_and_bare_pods_have_no_workload() -> None:
    assert limits_gate(total=0).check(candidate(), NOW) is not None
    assert limits_gate(per_workload=0).check(candidate(pod("a", owners=[])), NOW) is None


COUNTS = {Answer.EVICTED, Answer.DRY_RUN, Answer.UNKNOWN, Answer.SERVER_ERROR}


@pytest.mark.parametrize("answer", sorted(ALL))
def test_what_was_or_may_have_been_granted_counts_and_a_refusal_gives_back(answer: Answer) -> None:
    gate = limits_gate(total=1)
    send(gate, candidate(), NOW)
    other = candidate(pod("other"))
    held = gate.check(other, NOW)
    assert held is not None
    opened = list(gate.on_outcome(outcome(answer), NOW))

    if answer in COUNTS:
        assert opened == []
        assert gate.check(other, NOW) is not None
    else:
        assert gate.check(other, NOW) is None
        assert any(
            isinstance(wake, On) and wake.action & event.action
            for event in opened
            for wake in held.wakes
        )


def test_a_request_that_never_left_does_not_count() -> None:
    gate = limits_gate(total=1)
    send(gate, candidate(), NOW)
    gate.on_outcome(outcome(Answer.SERVER_ERROR, status=None), NOW)

    assert gate.check(candidate(), NOW) is None


def test_a_permit_does_not_count_against_others_while_its_key_is_evaluated_once_more() -> None:
    gate = limits_gate(total=2, per_namespace=1)
    key = Key(0, "S", ("unit",))
    first, second = (candidate(pod(name), key=key) for name in ("a", "b"))
    gate.take(first, NOW)
    before = gate.check(second, NOW)
    gate.sent(first, NOW)

    assert before is None
    assert isinstance(gate.check(second, NOW), Rejection)


def test_what_lets_a_key_turn_to_others_goes_before_what_holds_them_too() -> None:
    gate = limits_gate(total=1, per_namespace=1)
    send(gate, candidate(pod("a")), NOW)
    other = candidate(pod("b"), key=Key(0, "S", ("unit",)))

    assert isinstance(gate.check(other, NOW), Rejection)


def test_a_permit_is_given_back_where_nothing_was_sent() -> None:
    gate = limits_gate(total=1, per_node=1)
    gate.take(candidate(), NOW)
    gate.give_back(candidate(), NOW)

    assert gate.check(candidate(), NOW) is None


@pytest.mark.parametrize(
    ("limits", "stop"),
    [
        (Limits(total=1), Stop.ALL),
        (Limits(per_node=1), Stop.NODE),
        (Limits(per_namespace=1), Stop.NO),
        (Limits(total=1, per_node=1, per_namespace=1), Stop.ALL),
        (Limits(per_node=1, per_namespace=1), Stop.NODE),
    ],
)
def test_limits_of_a_pass_stop_as_upstream_does(limits: Limits, stop: Stop) -> None:
    counting = PassLimits(limits)
    assert counting.check(pod()) is None
    counting.count(pod())
    found = counting.check(pod("b"))

    assert found is not None
    assert found[1] is stop


def test_limits_of_a_pass_know_no_workloads() -> None:
    counting = PassLimits(Limits(per_workload=0))

    assert counting.check(pod()) is None


# bucket


def bucket_gate(
    rate: float = 2, burst: int = 1, *, adaptive: bool = True
) -> tuple[BucketGate, TokenBucket, ManualClock]:
    clock = ManualClock(NOW)
    bucket = TokenBucket(rate, burst, clock)
    return BucketGate(bucket, clock=clock, adaptive=adaptive), bucket, clock


def test_an_empty_bucket_closes_until_the_next_token() -> None:
    gate, _, clock = bucket_gate()
    assert gate.closed(NOW) is None
    gate.take(candidate(), NOW)
    closed = gate.closed(NOW)
    assert times(closed) == [later(0.5)]
    clock.advance(0.5)

    assert gate.closed(clock.now()) is None


def test_a_token_that_was_not_used_is_given_back() -> None:
    gate, _, _ = bucket_gate()
    gate.take(candidate(), NOW)
    gate.give_back(candidate(), NOW)

    assert gate.closed(NOW) is None


def test_a_rate_of_zero_closes_for_good() -> None:
    gate, _, _ = bucket_gate(rate=0)
    closed = gate.closed(NOW)

    assert closed is not None
    assert not times(closed)


@pytest.mark.parametrize(("told", "pause"), [(None, 1.0), (7.0, 7.0)])
def test_an_overloaded_server_pauses_everything(told: float | None, pause: float) -> None:
    gate, _, clock = bucket_gate(rate=100, burst=10, adaptive=False)
    gate.on_outcome(outcome(Answer.THROTTLED, retry_after=told), NOW)
    clock.advance(pause - 0.01)
    assert gate.closed(clock.now()) is not None
    clock.advance(0.03)

    assert gate.closed(clock.now()) is None


@pytest.mark.parametrize("answer", sorted(ALL))
@pytest.mark.parametrize("adaptive", [True, False])
def test_the_rate_gives_way_under_overload_only(answer: Answer, adaptive: bool) -> None:
    gate, bucket, _ = bucket_gate(adaptive=adaptive)
    gate.on_outcome(outcome(answer), NOW)
    slows = answer in {Answer.THROTTLED, Answer.SERVER_ERROR, Answer.UNKNOWN}

    assert bucket.statistics().rate == (1 if slows and adaptive else 2)


def test_success_brings_the_rate_back_and_never_above_what_was_configured() -> None:
    gate, bucket, _ = bucket_gate()
    gate.on_outcome(outcome(Answer.THROTTLED), NOW)
    for _ in range(50):
        gate.on_outcome(outcome(Answer.EVICTED), NOW)

    assert bucket.statistics().rate == 2


# what holds everything


def test_nothing_goes_before_every_cache_is_synced() -> None:
    missing = ["Pod", "Node"]
    gate = SyncedGate(lambda: missing)
    closed = gate.closed(NOW)
    assert closed is not None
    assert "Pod" in closed.reason
    assert [type(wake) for wake in closed.wakes] == [On]
    missing.clear()

    assert gate.closed(NOW) is None


@pytest.mark.parametrize(
    ("ages", "names"),
    [
        ({}, None),
        ({"Pod": 45.0}, None),
        ({"Pod": 46.0, "Node": 1.0}, "Pod for 46 s"),
        ({"Pod": 46.0, "Node": 60.0}, "Node for 60 s, Pod for 46 s"),
    ],
)
def test_nothing_goes_while_a_stream_is_stale(ages: dict[str, float], names: str | None) -> None:
    closed = StalenessGate(lambda: ages, max_age=timedelta(seconds=45)).closed(NOW)

    assert (closed is None) == (names is None)
    if closed is not None:
        assert closed.reason.endswith(str(names))
        assert times(closed) == [later(1)]


@pytest.mark.parametrize(
    ("kinds", "reason"),
    [((), None), (("Pod", "Node"), "the watch of Node, Pod was cut off and has not caught up")],
    ids=["none", "two"],
)
def test_nothing_goes_while_a_watch_that_failed_has_not_caught_up(
    kinds: tuple[str, ...], reason: str | None
) -> None:
    gate = StalenessGate(lambda: {"Pod": 1.0}, lambda: kinds, max_age=timedelta(seconds=45))
    closed = gate.closed(NOW)

    assert (closed and closed.reason) == reason


def test_without_permission_everything_waits_but_one_trial_a_minute() -> None:
    gate = PermissionGate()
    gate.on_outcome(outcome(Answer.FORBIDDEN), NOW)
    assert times(gate.closed(later(59))) == [later(60)]
    assert gate.refusal == "told so"
    assert gate.closed(later(60)) is None
    gate.take(candidate(), later(60))

    assert times(gate.closed(later(60))) == [later(120)]


def test_a_trial_that_was_not_sent_leaves_it_to_the_next() -> None:
    gate = PermissionGate()
    gate.on_outcome(outcome(Answer.FORBIDDEN), NOW)
    gate.take(candidate(), later(60))
    gate.give_back(candidate(), later(60))

    assert gate.closed(later(60)) is None
    assert gate.refusal


TELLS_NOTHING = {
    Answer.DRY_RUN,
    Answer.OBSERVED,
    Answer.UNKNOWN,
    Answer.SERVER_ERROR,
    Answer.THROTTLED,
}


@pytest.mark.parametrize("answer", sorted(ALL - {Answer.FORBIDDEN}))
def test_only_what_comes_after_the_look_at_permissions_proves_them(answer: Answer) -> None:
    gate = PermissionGate()
    gate.on_outcome(outcome(Answer.FORBIDDEN), NOW)
    gate.on_outcome(outcome(answer), NOW)

    assert bool(gate.refusal) == (answer in TELLS_NOTHING)
    assert (gate.closed(NOW) is not None) == (answer in TELLS_NOTHING)


# reported


def test_a_dry_run_tells_each_pod_once_for_each_cause() -> None:
    gate = ReportedGate()
    first, other = candidate(), candidate(cause=taint_cause(taint="other"))
    gate.on_outcome(outcome(Answer.DRY_RUN, first), NOW)
    held = gate.check(first, NOW)

    assert isinstance(held, Held)
    assert gate.check(other, NOW) is None
    assert gate.check(candidate(pod("b")), NOW) is None


def test_only_dry_runs_are_reports_and_a_new_pod_is_told_anew() -> None:
    gate = ReportedGate()
    gate.on_outcome(outcome(Answer.EVICTED), NOW)
    assert gate.check(candidate(), NOW) is None
    gate.on_outcome(outcome(Answer.DRY_RUN), NOW)
    gate.on_change(Change("Pod", pod(), None), NOW)

    assert gate.check(candidate(), NOW) is None


# clock


@pytest.mark.parametrize("jump", [3600.0, -3600.0, 2.5])
def test_a_jump_of_the_wall_clock_holds_everything_for_a_minute(jump: float) -> None:
    clock = ManualClock(NOW)
    gate = ClockGate(clock)
    assert gate.closed(clock.now()) is None
    clock.shift(timedelta(seconds=jump))
    assert gate.closed(clock.now()) is not None, "seen before anything is sent"
    assert gate.look() == timedelta(seconds=jump)
    look_on(gate, clock, seconds=59)
    assert gate.closed(clock.now()) is not None
    look_on(gate, clock, seconds=1)

    assert gate.closed(clock.now()) is None
    assert gate.jumps == 1


def look_on(gate: ClockGate, clock: ManualClock, *, seconds: int) -> None:
    for _ in range(seconds):
        clock.advance(1)
        assert gate.look() is None


def test_after_the_process_stood_still_it_catches_up_before_anything_goes() -> None:
    clock = ManualClock(NOW)
    gate = ClockGate(clock)
    look_on(gate, clock, seconds=5)
    assert gate.closed(clock.now()) is None
    clock.advance(4)
    assert gate.closed(clock.now()) is not None, "seen before anything is sent"
    assert gate.look() is None
    closed = gate.closed(clock.now())
    assert closed is not None
    assert closed.reason == "the process stood still for 4 s: catching up"
    look_on(gate, clock, seconds=2)

    assert gate.closed(clock.now()) is None
    assert gate.jumps == 0


def test_where_nobody_looks_at_the_clocks_time_may_pass() -> None:
    clock = ManualClock(NOW)
    gate = ClockGate(clock)
    clock.advance(100)

    assert gate.closed(clock.now()) is None


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_after_a_jump_what_was_noted_lasts_as_long_as_before(jump: float) -> None:
    by = timedelta(seconds=jump)
    limits, retry, permission = limits_gate(total=1), RetryGate(), PermissionGate()
    send(limits, candidate(), NOW)
    retry.on_outcome(outcome(Answer.SERVER_ERROR), NOW)
    permission.on_outcome(outcome(Answer.FORBIDDEN), NOW)
    for gate in (limits, retry, permission):
        gate.on_jump(by)

    assert times(limits.check(candidate(), NOW + by)) == [later(300) + by]
    assert times(retry.check(candidate(), NOW + by)) == [later(10) + by]
    assert times(permission.closed(NOW + by)) == [later(60) + by]


def test_a_clock_that_is_slewed_did_not_jump() -> None:
    clock = ManualClock(NOW)
    gate = ClockGate(clock)
    for _ in range(100):
        clock.advance(1)
        clock.shift(timedelta(milliseconds=500))
        assert gate.look() is None

    assert gate.closed(clock.now()) is None
