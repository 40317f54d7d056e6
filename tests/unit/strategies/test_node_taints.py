"""RemovePodsViolatingNodeTaints."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from reactive_descheduler.api.eviction import Candidate, Stop, Verdict
from reactive_descheduler.config.corrections import ALL, NONE, Corrections
from reactive_descheduler.strategies.remove_pods_violating_node_taints import NodeTaintsArguments
from tests.builders import Manifest, cluster, make_node, make_pod, taint
from tests.unit.strategies.driving import (
    build,
    changed,
    evaluate,
    hits,
    run,
    sweep,
    view_of,
    wakes_on,
)

NAME = "RemovePodsViolatingNodeTaints"
OTHER = make_node("n2")


def tainted(*taints: Manifest, unschedulable: bool = False) -> Manifest:
    return make_node("n1", taints=taints, unschedulable=unschedulable)


def pod(*tolerations: Manifest, **more: str) -> Manifest:
    return make_pod("p", node="n1", tolerations=tolerations, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tolerations", "node", "arguments", "expected"),
    [
        pytest.param([], tainted(taint("a")), {}, ["p"], id="untolerated"),
        pytest.param([], tainted(), {}, [], id="no-taint"),
        pytest.param(
            [{"key": "a", "operator": "Exists"}], tainted(taint("a")), {}, [], id="tolerated"
        ),
        pytest.param(
            [{"key": "a", "value": "1"}], tainted(taint("a", "2")), {}, ["p"], id="other-value"
        ),
        pytest.param(
            [{"key": "a", "operator": "Exists"}],
            tainted(taint("a"), taint("b")),
            {},
            ["p"],
            id="one-of-two-tolerated",
        ),
        pytest.param([], tainted(taint("a", effect="NoExecute")), {}, [], id="no-execute"),
        pytest.param([], tainted(taint("a", effect="PreferNoSchedule")), {}, [], id="soft"),
        pytest.param(
            [],
            tainted(taint("a", effect="PreferNoSchedule")),
            {"includePreferNoSchedule": True},
            ["p"],
            id="soft-if-asked",
        ),
        pytest.param([], tainted(taint("a", "1")), {"excludedTaints": ["a"]}, [], id="key-out"),
        pytest.param([], tainted(taint("a", "1")), {"excludedTaints": ["a=1"]}, [], id="value-out"),
        pytest.param(
            [], tainted(taint("a", "1")), {"excludedTaints": ["a=2"]}, ["p"], id="other-value-out"
        ),
        pytest.param([], tainted(taint("a")), {"excludedTaints": ["a="]}, ["p"], id="empty-value"),
        pytest.param([], tainted(taint("a", "1")), {"includedTaints": ["a"]}, ["p"], id="key-in"),
        pytest.param(
            [], tainted(taint("a", "1")), {"includedTaints": ["a=1"]}, ["p"], id="value-in"
        ),
        pytest.param([], tainted(taint("a", "1")), {"includedTaints": ["b"]}, [], id="not-in"),
        pytest.param([], tainted(taint("a")), {"includedTaints": []}, [], id="none-in"),
        pytest.param(
            [], tainted(taint("a")), {"namespaces": {"include": ["other"]}}, [], id="namespace"
        ),
        pytest.param(
            [], tainted(taint("a")), {"namespaces": {"exclude": ["default"]}}, [], id="excluded"
        ),
        pytest.param(
            [],
            tainted(taint("a")),
            {"labelSelector": {"matchLabels": {"app": "db"}}},
            [],
            id="label",
        ),
        pytest.param([], tainted(taint("a")), {"labelSelector": {}}, ["p"], id="empty-selector"),
    ],
)
def test_pod_that_does_not_tolerate_a_counting_taint_is_offered(
    tolerations: list[Manifest], node: Manifest, arguments: Manifest, expected: list[str]
) -> None:
    assert run(NAME, arguments, node, OTHER, pod(*tolerations)).names == expected


@pytest.mark.parametrize(
    ("unschedulable", "corrections", "arguments", "expected"),
    [
        pytest.param(True, ALL, {}, [], id="a-cordon-alone-is-no-drain"),
        pytest.param(True, NONE, {}, ["p"], id="upstream-drains"),
        pytest.param(False, ALL, {}, [], id="an-uncordon-takes-the-taint-away-last"),
        pytest.param(
            True,
            ALL,
            {"includedTaints": ["node.kubernetes.io/unschedulable"]},
            ["p"],
            id="asked-for-by-name",
        ),
    ],
)
def test_taint_of_a_cordon(
    unschedulable: bool, corrections: Corrections, arguments: Manifest, expected: list[str]
) -> None:
    node = tainted(taint("node.kubernetes.io/unschedulable"), unschedulable=unschedulable)

    said = run(NAME, arguments, node, OTHER, pod(), corrections=corrections)

    assert said.names == expected


def test_cordon_without_its_taint_is_no_violation() -> None:
    said = run(NAME, {}, tainted(unschedulable=True), OTHER, pod(), corrections=NONE)

    assert said.names == []


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_finished_pods_are_not_looked_at(phase: str) -> None:
    assert run(NAME, {}, tainted(taint("a")), OTHER, pod(phase=phase)).names == []


def test_one_ready_node_is_left_alone() -> None:
    said = run(NAME, {}, tainted(taint("a")), make_node("n2", ready=False), pod())

    assert said.names == []


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(make_node("n2", taints=[taint("b")]), id="tainted"),
        pytest.param(make_node("n2", unschedulable=True), id="cordoned"),
        pytest.param(make_node("n2", allocatable={"pods": "0"}), id="full"),
    ],
)
def test_pod_without_a_place_goes_unless_node_fit_is_asked(other: Manifest) -> None:
    objects = (tainted(taint("a")), other, pod())

    assert run(NAME, {}, *objects).names == ["p"]
    said = run(NAME, {}, *objects, evictor={"nodeFit": True})
    assert said.names == []
    assert said.refused == {"p": "nodeFit"}


def test_candidate_names_taint_and_node() -> None:
    said = run(NAME, {}, tainted(taint("a", "1")), OTHER, pod())

    candidate = said.candidates[0]
    assert candidate.reason == "it does not tolerate taint a=1:NoSchedule of n1"
    assert candidate.cause.kind == "taint"
    assert candidate.cause.ident == ("n1", "a", "1", "NoSchedule")
    assert candidate.cause.proven_since is None


def test_node_limit_ends_the_node_and_total_limit_the_pass() -> None:
    lister = cluster(
        *(make_node(name, taints=[taint("a")]) for name in ("n1", "n2")),
        *(make_pod(f"{node}-{n}", node=node) for node in ("n1", "n2") for n in (1, 2)),
    )

    def stop(kind: Stop) -> list[str]:
        def answer(_candidate: Candidate) -> Verdict:
            return Verdict(taken=False, stop=kind)

        return sweep(build(NAME), view_of(lister), answer).names

    assert stop(Stop.NODE) == ["n1-1", "n2-1"]
    assert stop(Stop.ALL) == ["n1-1"]
    assert stop(Stop.NO) == ["n1-1", "n1-2", "n2-1", "n2-2"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"excludedTaints": ["a"], "includedTaints": ["b"]}, "includedTaints"),
        ({"namespaces": {"include": ["a"], "exclude": ["b"]}}, "namespaces"),
        ({"includePreferNoSchedule": "yes"}, "includePreferNoSchedule"),
        ({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "X"}]}}, "operator"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_wrong_arguments_are_refused(arguments: Manifest, named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        NodeTaintsArguments.read(arguments)


def test_empty_lists_of_both_kinds_are_accepted() -> None:
    found = NodeTaintsArguments.read({"excludedTaints": ["a"], "includedTaints": []})

    assert found.included_taints == ()


PLAIN, TAINTED = make_node("n1"), tainted(taint("a"))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(PLAIN, TAINTED, True, id="taint-added"),
        pytest.param(
            tainted(taint("a", effect="NoExecute")), TAINTED, True, id="no-execute-to-no-schedule"
        ),
        pytest.param(TAINTED, tainted(taint("a", "1")), True, id="value-changed"),
        pytest.param(TAINTED, PLAIN, False, id="taint-removed"),
        pytest.param(PLAIN, make_node("n1", version="2"), False, id="heartbeat"),
        pytest.param(None, TAINTED, True, id="node-added"),
        pytest.param(make_node("n1", ready=False), PLAIN, True, id="became-ready"),
        pytest.param(PLAIN, make_node("n1", ready=False), False, id="became-unready"),
        pytest.param(PLAIN, None, False, id="node-removed"),
        pytest.param(
            PLAIN, make_node("n1", allocatable={"cpu": "1"}), False, id="allocatable-changed"
        ),
        pytest.param(None, pod(), True, id="pod-seen-bound"),
        pytest.param(make_pod("p"), pod(), True, id="pod-bound"),
        pytest.param(None, make_pod("p"), False, id="pod-created-unbound"),
        pytest.param(pod(), make_pod("p", node="n1", labels={"a": "b"}), True, id="pod-labels"),
        pytest.param(pod(), make_pod("p", node="n1", restarts=9), False, id="pod-restarts"),
        pytest.param(pod(), pod(phase="Failed"), False, id="pod-failed"),
        pytest.param(pod(), None, False, id="pod-deleted"),
    ],
)
def test_changes_that_can_make_a_violation_are_subscribed(
    old: Manifest | None, new: Manifest | None, expected: bool
) -> None:
    change = changed(old, new)
    others = [OTHER, make_pod("q", node="n2")]
    own = [each for each in (TAINTED, pod()) if change.kind != each["kind"]]
    lister = cluster(*others, *own, *([new] if new else []))

    assert hits(build(NAME), change, lister) == ({"uid-default-p"} if expected else set())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(TAINTED, PLAIN, id="taint-removed"),
        pytest.param(TAINTED, None, id="node-removed"),
        pytest.param(TAINTED, make_node("n1", ready=False), id="node-unready"),
        pytest.param(pod(), None, id="pod-deleted"),
        pytest.param(pod(), pod(phase="Failed"), id="pod-failed"),
        pytest.param(pod(), pod({"operator": "Exists"}), id="toleration-added"),
        pytest.param(
            pod(),
            make_pod("p", node="n1", annotations={"kubernetes.io/config.mirror": ""}),
            id="annotation",
        ),
    ],
)
def test_candidate_is_looked_at_again_when_it_may_have_ended(
    old: Manifest, new: Manifest | None
) -> None:
    said = evaluate(build(NAME), view_of(cluster(TAINTED, OTHER, pod())), "uid-default-p")

    assert said.names == ["p"]
    assert wakes_on(said, changed(old, new))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(TAINTED, PLAIN, True, id="taint-gone"),
        pytest.param(TAINTED, tainted(taint("a", "1")), True, id="taint-changed"),
        pytest.param(TAINTED, None, True, id="node-gone"),
        pytest.param(PLAIN, TAINTED, False, id="taint-back"),
        pytest.param(TAINTED, tainted(taint("b"), taint("a")), False, id="another-taint"),
        pytest.param(make_node("n2"), None, False, id="another-node"),
        pytest.param(pod(), None, False, id="a-pod-of-it-went"),
    ],
)
def test_cause_breaks_when_the_taint_goes(
    old: Manifest | None, new: Manifest | None, expected: bool
) -> None:
    strategy = build(NAME)
    cause = (
        evaluate(strategy, view_of(cluster(TAINTED, OTHER, pod())), "uid-default-p")
        .candidates[0]
        .cause
    )

    assert strategy.breaks(cause, changed(old, new)) is expected
