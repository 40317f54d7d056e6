"""RemoveFailedPods."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import ValidationError

from reactive_descheduler.api.changes import At
from reactive_descheduler.strategies.remove_failed_pods import FailedPodsArguments
from tests.builders import Manifest, cluster, make_node, make_pod, owner
from tests.unit.strategies.driving import (
    NOW,
    build,
    changed,
    evaluate,
    hits,
    run,
    view_of,
    wakes_on,
)

NAME = "RemoveFailedPods"
NODES = (make_node("n1"), make_node("n2"))
UID = "uid-default-p"
AT_ONCE = {"minPodLifetimeSeconds": 0}
BROKEN = {"terminated": {"reason": "Error", "exitCode": 1}}
WAITS = {"waiting": {"reason": "CreateContainerConfigError"}}


def pod(name: str = "p", **more: object) -> Manifest:
    full = {"node": "n1", "phase": "Failed", **more}
    return make_pod(name, **full)  # type: ignore[arg-type]


def init_ended(reason: str, code: int) -> Manifest:
    ended = {"terminated": {"reason": reason, "exitCode": code}}
    return {"initContainerStatuses": [{"name": "i", "restartCount": 0, "state": ended}]}


@pytest.mark.parametrize(
    ("failed", "arguments", "expected"),
    [
        pytest.param(pod(), {}, ["p"], id="no-criteria"),
        pytest.param(pod(phase="Running", state=BROKEN), {}, [], id="running"),
        pytest.param(pod(phase="Succeeded"), {}, [], id="succeeded"),
        pytest.param(pod(reason="Shutdown"), {"reasons": ["Shutdown"]}, ["p"], id="pod-reason"),
        pytest.param(pod(reason="Shutdown"), {"reasons": ["shutdown"]}, [], id="in-small-letters"),
        pytest.param(pod(state=BROKEN), {"reasons": ["X", "Error"]}, ["p"], id="terminated-reason"),
        pytest.param(
            pod(state=WAITS), {"reasons": ["CreateContainerConfigError"]}, ["p"], id="waiting"
        ),
        pytest.param(pod(), {"reasons": ["Error"]}, [], id="no-reason"),
        pytest.param(
            pod(status=init_ended("Error", 1)), {"reasons": ["Error"]}, [], id="init-left-out"
        ),
        pytest.param(
            pod(status=init_ended("Error", 1)),
            {"reasons": ["Error"], "exitCodes": [1], "includingInitContainers": True},
            ["p"],
            id="init-counted",
        ),
        pytest.param(pod(state=BROKEN), {"exitCodes": [1, 137]}, ["p"], id="exit-code"),
        pytest.param(pod(state=BROKEN), {"exitCodes": [137]}, [], id="another-exit-code"),
        pytest.param(
            pod(state={"terminated": {"reason": "Completed", "exitCode": 0}}),
            {"exitCodes": [0]},
            ["p"],
            id="exit-code-0",
        ),
        pytest.param(
            pod(state=BROKEN), {"reasons": ["Error"], "exitCodes": [2]}, [], id="only-one-of-both"
        ),
        pytest.param(
            pod(owners=[owner("j", kind="Job")]), {"excludeOwnerKinds": ["Job"]}, [], id="of-a-job"
        ),
        pytest.param(
            pod(owners=[owner("j", kind="Job")]), {"excludeOwnerKinds": ["job"]}, ["p"], id="exact"
        ),
        pytest.param(pod(owners=[]), {"excludeOwnerKinds": ["Job"]}, [], id="bare-is-protected"),
        pytest.param(pod(deleted="2026-01-01T00:59:00Z"), {}, [], id="going"),
        pytest.param(pod(), {"namespaces": {"exclude": ["default"]}}, [], id="left-out-namespace"),
        pytest.param(pod(), {"labelSelector": {"matchLabels": {"app": "db"}}}, [], id="labels"),
    ],
)
def test_who_is_evicted(failed: Manifest, arguments: Manifest, expected: list[str]) -> None:
    assert run(NAME, {**AT_ONCE, **arguments}, *NODES, failed).names == expected


@pytest.mark.parametrize(
    ("age", "arguments", "expected"),
    [
        pytest.param(3600.0, {}, ["p"], id="default"),
        pytest.param(3599.9, {}, [], id="default-too-young"),
        pytest.param(3599.9, {"minPodLifetimeSeconds": None}, [], id="null-is-the-default"),
        pytest.param(60.0, {"minPodLifetimeSeconds": 60}, ["p"], id="inclusive"),
        pytest.param(0.0, AT_ONCE, ["p"], id="at-once"),
        pytest.param(-5.0, AT_ONCE, ["p"], id="created-in-the-future"),
        pytest.param(None, AT_ONCE, ["p"], id="no-creation-time"),
        pytest.param(None, {}, [], id="no-creation-time-to-reckon-with"),
        pytest.param(1e6, {"minPodLifetimeSeconds": 2**63}, [], id="never"),
    ],
)
def test_age_counts_from_creation(
    age: float | None, arguments: Manifest, expected: list[str]
) -> None:
    created = None if age is None else NOW - timedelta(seconds=age)

    assert run(NAME, arguments, *NODES, pod(created=created)).names == expected


def test_one_that_is_too_young_is_looked_at_when_it_is_due() -> None:
    created = NOW - timedelta(seconds=10)
    strategy = build(NAME, {"minPodLifetimeSeconds": 60})

    said = evaluate(strategy, view_of(cluster(*NODES, pod(created=created))), UID)

    due = created + timedelta(seconds=60)
    assert [(each.by, each.wakes) for each in said.rejections] == [(NAME, (At(due),))]
    assert said.rejections[0].not_yet(NAME)


def test_protection_of_bare_pods_is_told_by_its_name_and_can_be_switched_off() -> None:
    objects = (*NODES, pod("bare", owners=[]), pod("owned"))
    off = {"podProtections": {"defaultDisabled": ["FailedBarePods"]}}

    said = run(NAME, {"minPodLifetimeSeconds": 60}, *objects)
    assert (said.names, said.refused) == (["owned"], {"bare": "FailedBarePods"})
    assert run(NAME, AT_ONCE, *objects, evictor=off).names == ["bare", "owned"]


def test_reason_tells_the_values_and_the_failure_proves_its_time() -> None:
    arguments = {"minPodLifetimeSeconds": 60, "reasons": ["Error", "X"], "exitCodes": [1, 2]}

    found = run(NAME, arguments, *NODES, pod(state=BROKEN)).candidates[0]

    assert found.reason == (
        "it has failed; Error; exit code 1; created 2026-01-01T00:00:00Z, at least 60 s ago"
    )
    assert found.cause.proven_since == found.pod.created


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(pod(phase="Running"), pod(), True, id="failed"),
        pytest.param(None, pod(), True, id="first-seen"),
        pytest.param(pod(), pod(reason="Evicted"), True, id="a-reason-came"),
        pytest.param(pod(owners=[owner("j", kind="Job")]), pod(), True, id="owners"),
        pytest.param(pod(phase="Pending"), pod(phase="Succeeded"), False, id="succeeded"),
        pytest.param(
            pod(phase="Running"), pod(phase="Running", state=WAITS), False, id="state-of-a-live-one"
        ),
    ],
)
def test_changes_that_can_make_a_violation_are_subscribed(
    old: Manifest | None, new: Manifest, expected: bool
) -> None:
    found = hits(build(NAME, {}), changed(old, new), cluster(*NODES, new))

    assert found == ({UID} if expected else set())


def test_candidate_is_looked_at_again_when_its_reason_goes() -> None:
    strategy = build(NAME, {**AT_ONCE, "reasons": ["Error"]})
    said = evaluate(strategy, view_of(cluster(*NODES, pod(state=BROKEN))), UID)

    assert said.names == ["p"]
    assert wakes_on(said, changed(pod(state=BROKEN), pod()))
    assert strategy.breaks(said.candidates[0].cause, changed(pod(state=BROKEN), pod()))
    assert not strategy.breaks(said.candidates[0].cause, changed(pod(), pod(state=BROKEN)))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"minPodLifetimeSeconds": -1}, "minPodLifetimeSeconds"),
        ({"exitCodes": ["1"]}, "exitCodes"),
        ({"reasons": "Error"}, "reasons"),
        ({"states": ["Failed"]}, "states"),
    ],
)
def test_wrong_arguments_are_refused(arguments: Manifest, named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        FailedPodsArguments.read(arguments)
