"""PodLifeTime."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from pydantic import ValidationError

from reactive_descheduler.api.changes import At
from reactive_descheduler.api.eviction import Candidate, Stop, Verdict
from reactive_descheduler.strategies.pod_life_time import STATES, PodLifeTimeArguments
from tests.builders import Manifest, cluster, make_node, make_pod, owner
from tests.unit.strategies.driving import (
    NOW,
    build,
    changed,
    evaluate,
    hits,
    run,
    sweep,
    view_of,
)

NAME = "PodLifeTime"
NODES = (make_node("n1"), make_node("n2"))
MAX = {"maxPodLifeTimeSeconds": 600}
IDLE = {"type": "Idle", "status": "True", "minTimeSinceLastTransitionSeconds": 300}


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def aged(seconds: float, name: str = "p", node: str = "n1") -> Manifest:
    return make_pod(name, node=node, created=ago(seconds))


def condition(seconds: float | None, **more: str) -> Manifest:
    found: Manifest = {"type": "Idle", "status": "True", **more}
    if seconds is not None:
        found["lastTransitionTime"] = ago(seconds).isoformat()
    return found


def conditioned(*conditions: Manifest) -> Manifest:
    return make_pod("p", node="n1", conditions=conditions)


def ended(reason: str, code: int) -> Manifest:
    return {"terminated": {"reason": reason, "exitCode": code}}


def init_ended(reason: str, code: int, *, kind: str = "initContainerStatuses") -> Manifest:
    return {kind: [{"name": "x", "restartCount": 0, "state": ended(reason, code)}]}


@pytest.mark.parametrize(
    ("pod", "arguments", "expected"),
    [
        pytest.param(aged(600.9), MAX, [], id="just-too-young"),
        pytest.param(aged(601), MAX, ["p"], id="just-old-enough"),
        pytest.param(aged(0.9), {"maxPodLifeTimeSeconds": 0}, [], id="zero-asks-for-a-second"),
        pytest.param(aged(1), {"maxPodLifeTimeSeconds": 0}, ["p"], id="zero"),
        pytest.param(aged(-60), {"maxPodLifeTimeSeconds": 0}, [], id="created-in-the-future"),
        pytest.param(aged(9999), {"maxPodLifeTimeSeconds": 2**63}, [], id="longer-than-all-time"),
        pytest.param(make_pod("p", node="n1", created=None), MAX, [], id="no-creation-time"),
        pytest.param(
            make_pod("p", node="n1", phase="Succeeded"),
            {"states": ["Succeeded"]},
            ["p"],
            id="phase",
        ),
        pytest.param(
            make_pod("p", node="n1", reason="NodeLost"),
            {"states": ["NodeLost"]},
            ["p"],
            id="reason",
        ),
        pytest.param(
            make_pod("p", node="n1", state={"waiting": {"reason": "ErrImagePull"}}),
            {"states": ["ErrImagePull"]},
            ["p"],
            id="waiting",
        ),
        pytest.param(
            make_pod("p", node="n1", state=ended("OOMKilled", 137)),
            {"states": ["OOMKilled"]},
            ["p"],
            id="terminated",
        ),
        pytest.param(make_pod("p", node="n1"), {"states": ["Failed"]}, [], id="other-state"),
        pytest.param(
            make_pod("p", node="n1", status=init_ended("Error", 1)),
            {"states": ["Error"]},
            [],
            id="init-state",
        ),
        pytest.param(
            make_pod("p", node="n1", status=init_ended("Error", 1)),
            {"states": ["Error"], "includingInitContainers": True},
            ["p"],
            id="init-state-counted",
        ),
        pytest.param(
            make_pod(
                "p", node="n1", status=init_ended("Error", 1, kind="ephemeralContainerStatuses")
            ),
            {"states": ["Error"], "includingEphemeralContainers": True},
            ["p"],
            id="ephemeral-state-counted",
        ),
        pytest.param(
            make_pod(
                "p", node="n1", status=init_ended("Error", 1, kind="ephemeralContainerStatuses")
            ),
            {"states": ["Error"]},
            [],
            id="ephemeral-state",
        ),
        pytest.param(
            make_pod("p", node="n1", state=ended("Error", 3)), {"exitCodes": [3]}, ["p"], id="code"
        ),
        pytest.param(
            make_pod("p", node="n1", state=ended("Error", 3)),
            {"exitCodes": [4]},
            [],
            id="other-code",
        ),
        pytest.param(
            make_pod("p", node="n1", status=init_ended("Error", 3)),
            {"exitCodes": [3], "includingInitContainers": True},
            ["p"],
            id="init-code",
        ),
        pytest.param(
            make_pod(
                "p", node="n1", status=init_ended("Error", 3, kind="ephemeralContainerStatuses")
            ),
            {"exitCodes": [3], "includingEphemeralContainers": True},
            [],
            id="no-ephemeral-code",
        ),
        pytest.param(
            aged(700), {**MAX, "ownerKinds": {"include": ["ReplicaSet"]}}, ["p"], id="kind-in"
        ),
        pytest.param(aged(700), {**MAX, "ownerKinds": {"include": ["Job"]}}, [], id="kind-not-in"),
        pytest.param(
            aged(700), {**MAX, "ownerKinds": {"exclude": ["ReplicaSet"]}}, [], id="kind-out"
        ),
        pytest.param(
            make_pod("p", node="n1", owners=[owner("j", kind="Job")], created=ago(700)),
            {**MAX, "ownerKinds": {"exclude": ["ReplicaSet"]}},
            ["p"],
            id="kind-not-out",
        ),
        pytest.param(
            conditioned(condition(299.9)), {"conditions": [IDLE]}, [], id="idle-too-short"
        ),
        pytest.param(conditioned(condition(300)), {"conditions": [IDLE]}, ["p"], id="idle-enough"),
        pytest.param(conditioned(condition(None)), {"conditions": [IDLE]}, [], id="no-transition"),
        pytest.param(
            conditioned(condition(None)),
            {"conditions": [{**IDLE, "minTimeSinceLastTransitionSeconds": 0}]},
            [],
            id="zero-asks-for-a-transition",
        ),
        pytest.param(
            conditioned(condition(None)), {"conditions": [{"type": "Idle"}]}, ["p"], id="any-time"
        ),
        pytest.param(
            conditioned(condition(9, status="False")),
            {"conditions": [{"type": "Idle", "status": "True"}]},
            [],
            id="other-status",
        ),
        pytest.param(
            conditioned(condition(9, reason="Done")),
            {"conditions": [{"reason": "Done"}]},
            ["p"],
            id="condition-reason",
        ),
        pytest.param(conditioned(), {"conditions": [IDLE]}, [], id="no-such-condition"),
        pytest.param(
            conditioned(condition(400), {"type": "Other", "status": "True"}),
            {"conditions": [IDLE]},
            ["p"],
            id="another-condition-does-not-matter",
        ),
        pytest.param(
            conditioned(condition(10)),
            {"conditions": [IDLE, {"type": "Ready"}]},
            ["p"],
            id="one-filter-is-enough",
        ),
        pytest.param(
            conditioned(condition(400)), {**MAX, "conditions": [IDLE]}, ["p"], id="all-criteria"
        ),
        pytest.param(
            conditioned(condition(10)), {**MAX, "conditions": [IDLE]}, [], id="not-all-criteria"
        ),
    ],
)
def test_pod_that_meets_every_criterion_is_offered(
    pod: Manifest, arguments: Manifest, expected: list[str]
) -> None:
    assert run(NAME, arguments, *NODES, pod).names == expected


@pytest.mark.parametrize(
    ("pod", "arguments", "due"),
    [
        pytest.param(aged(100), MAX, NOW + timedelta(seconds=501), id="age"),
        pytest.param(
            conditioned(condition(100)),
            {"conditions": [IDLE]},
            NOW + timedelta(seconds=200),
            id="condition",
        ),
        pytest.param(
            make_pod("p", node="n1", created=ago(100), conditions=[condition(10)]),
            {**MAX, "conditions": [IDLE]},
            NOW + timedelta(seconds=501),
            id="the-later-of-two-criteria",
        ),
        pytest.param(
            conditioned(condition(100), condition(200)),
            {"conditions": [IDLE]},
            NOW + timedelta(seconds=100),
            id="the-sooner-of-two-conditions",
        ),
    ],
)
def test_pod_that_is_not_due_yet_wakes_when_it_is(
    pod: Manifest, arguments: Manifest, due: datetime
) -> None:
    said = run(NAME, arguments, *NODES, pod)

    assert said.refused == {"p": NAME}
    assert said.rejections[0].wakes == (At(due),)
    assert run(NAME, arguments, *NODES, pod, now=due).names == ["p"]
    assert run(NAME, arguments, *NODES, pod, now=due - timedelta(seconds=0.001)).names == []


def test_pod_that_time_alone_will_not_bring_in_is_not_waited_for() -> None:
    said = run(NAME, {**MAX, "states": ["Failed"]}, *NODES, aged(10))

    assert said.rejections == []


def test_oldest_of_all_nodes_go_first_and_a_full_node_ends_nothing() -> None:
    lister = cluster(
        *NODES,
        aged(700, "a", "n1"),
        aged(900, "b", "n1"),
        aged(800, "c", "n2"),
        aged(900, "d", "n2"),
    )

    def offered(stop: Stop) -> list[str]:
        def answer(_candidate: Candidate) -> Verdict:
            return Verdict(taken=False, stop=stop)

        return sweep(build(NAME, MAX), view_of(lister), answer).names

    assert offered(Stop.NO) == ["b", "d", "c", "a"]
    assert offered(Stop.NODE) == ["b", "d", "c", "a"]
    assert offered(Stop.ALL) == ["b"]


def test_reason_tells_the_values() -> None:
    arguments = {**MAX, "states": ["Error"], "exitCodes": [3], "conditions": [{"type": "Ready"}]}
    pod = make_pod("p", node="n1", created=ago(700), state=ended("Error", 3))

    assert run(NAME, arguments, *NODES, pod).candidates[0].reason == (
        "older than 600 s, created 2026-01-01T00:48:20Z; in state Error; "
        "a condition of it matches; a container ended with 3"
    )


@pytest.mark.parametrize(
    ("arguments", "since"),
    [
        pytest.param(MAX, ago(99), id="age-proves-itself"),
        pytest.param({"conditions": [IDLE]}, ago(100), id="so-does-a-timed-condition"),
        pytest.param({"conditions": [{"type": "Idle"}]}, None, id="not-a-condition-at-any-time"),
        pytest.param({**MAX, "states": ["Running"]}, None, id="not-a-state"),
        pytest.param({"exitCodes": [3]}, None, id="not-an-exit-code"),
    ],
)
def test_timestamps_prove_since_when_it_is_due(arguments: Manifest, since: datetime | None) -> None:
    pod = make_pod(
        "p", node="n1", created=ago(700), conditions=[condition(400)], state=ended("Error", 3)
    )

    assert run(NAME, arguments, *NODES, pod).candidates[0].cause.proven_since == since


def test_cause_breaks_when_the_pod_leaves_its_state() -> None:
    strategy = build(NAME, {"states": ["CrashLoopBackOff"]})
    crashing = make_pod("p", node="n1", state={"waiting": {"reason": "CrashLoopBackOff"}})
    running = make_pod("p", node="n1")
    said = evaluate(strategy, view_of(cluster(*NODES, crashing)), "uid-default-p")
    cause = said.candidates[0].cause

    assert strategy.breaks(cause, changed(crashing, running))
    assert not strategy.breaks(cause, changed(running, crashing))
    assert not strategy.breaks(cause, changed(make_pod("q"), make_pod("q", node="n1")))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "maxPodLifeTimeSeconds"),
        ({"ownerKinds": {"include": ["Job"]}}, "maxPodLifeTimeSeconds"),
        ({"labelSelector": {}}, "maxPodLifeTimeSeconds"),
        ({"maxPodLifeTimeSeconds": -1}, "maxPodLifeTimeSeconds"),
        ({"states": ["Sleeping"]}, "must be one of Completed, ContainerCannotRun"),
        ({"conditions": [{}]}, "conditions.0"),
        ({"conditions": [{"type": ""}]}, "must be set"),
        ({**MAX, "ownerKinds": {"include": ["a"], "exclude": ["b"]}}, "ownerKinds"),
    ],
)
def test_wrong_arguments_are_refused(arguments: Manifest, named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        PodLifeTimeArguments.read(arguments)


def test_every_state_of_upstream_is_allowed() -> None:
    assert len(STATES) == 24
    assert PodLifeTimeArguments.read({"states": sorted(STATES)}).states == tuple(sorted(STATES))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, aged(9), True, id="seen-bound"),
        pytest.param(aged(9), make_pod("p", node="n1", phase="Failed"), True, id="failed"),
        pytest.param(aged(9), make_pod("p", node="n1", phase="Succeeded"), True, id="succeeded"),
        pytest.param(aged(9), conditioned(condition(1)), True, id="condition"),
        pytest.param(aged(9), make_pod("p", node="n1", reason="NodeLost"), True, id="reason"),
        pytest.param(aged(9), make_pod("p", node="n1", owners=[]), True, id="owners"),
        pytest.param(aged(9), make_pod("p", node="n1", restarts=1), False, id="restarts"),
        pytest.param(aged(9), None, False, id="deleted"),
    ],
)
def test_changes_that_can_make_a_violation_are_subscribed(
    old: Manifest | None, new: Manifest | None, expected: bool
) -> None:
    lister = cluster(*NODES, *([new] if new else []))

    assert bool(hits(build(NAME, MAX), changed(old, new), lister)) is expected
