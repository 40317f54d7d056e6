"""Every change comes to the flags of what differs, and to no others."""

from __future__ import annotations

import pytest

from reactive_descheduler.api.changes import Action, Change
from reactive_descheduler.triggers import cluster_events, touched
from tests.builders import (
    Manifest,
    make_budget,
    make_claim,
    make_namespace,
    make_node,
    make_pod,
    make_priority_class,
    owner,
    taint,
    view,
)

NOW = "2026-01-01T01:00:00Z"
CRASHING = {"waiting": {"reason": "CrashLoopBackOff"}}


def change(old: Manifest | None, new: Manifest | None) -> Change:
    kind = str((new or old or {})["kind"])
    return Change(kind, view(old) if old else None, view(new) if new else None)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, make_node(), Action.NODE_ADDED, id="added"),
        pytest.param(make_node(), None, Action.NODE_REMOVED, id="removed"),
        pytest.param(make_node(), make_node(version="2"), Action(0), id="heartbeat"),
        pytest.param(make_node(), make_node(taints=[taint()]), Action.NODE_TAINTS, id="taint"),
        pytest.param(
            make_node(taints=[taint(effect="NoExecute")]),
            make_node(taints=[taint()]),
            Action.NODE_TAINTS,
            id="effect",
        ),
        pytest.param(make_node(), make_node(labels={"a": "b"}), Action.NODE_LABELS, id="label"),
        pytest.param(
            make_node(), make_node(unschedulable=True), Action.NODE_SCHEDULABLE, id="cordon"
        ),
        pytest.param(make_node(), make_node(ready=False), Action.NODE_READY, id="not-ready"),
        pytest.param(make_node(ready=False), make_node(), Action.NODE_READY, id="ready"),
        pytest.param(
            make_node(),
            make_node(allocatable={"cpu": "1"}, capacity={"cpu": "4"}),
            Action.NODE_ALLOCATABLE,
            id="allocatable",
        ),
        pytest.param(
            make_node(),
            make_node(taints=[taint()], unschedulable=True),
            Action.NODE_TAINTS | Action.NODE_SCHEDULABLE,
            id="two-at-once",
        ),
    ],
)
def test_node_change(old: Manifest | None, new: Manifest | None, expected: Action) -> None:
    assert cluster_events(change(old, new)) == expected


BOUND = make_pod(node="n1")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, make_pod(), Action.POD_ADDED, id="created"),
        pytest.param(None, BOUND, Action.POD_ADDED | Action.POD_BOUND, id="first-seen-bound"),
        pytest.param(make_pod(), BOUND, Action.POD_BOUND, id="bound"),
        pytest.param(BOUND, make_pod(node="n1", version="2"), Action(0), id="nothing"),
        pytest.param(BOUND, None, Action.POD_DELETED | Action.POD_GONE, id="deleted"),
        pytest.param(BOUND, make_pod(node="n1", labels={"a": "b"}), Action.POD_LABELS, id="labels"),
        pytest.param(
            BOUND,
            make_pod(node="n1", annotations={"descheduler.alpha.kubernetes.io/evict": "true"}),
            Action.POD_ANNOTATIONS,
            id="evict-annotation",
        ),
        pytest.param(
            BOUND, make_pod(node="n1", annotations={"a": "b"}), Action(0), id="other-annotation"
        ),
        pytest.param(BOUND, make_pod(node="n1", owners=[]), Action.POD_OWNERS, id="orphaned"),
        pytest.param(
            BOUND,
            make_pod(node="n1", phase="Failed"),
            Action.POD_PHASE | Action.POD_GONE,
            id="failed",
        ),
        pytest.param(
            BOUND,
            make_pod(node="n1", phase="Succeeded"),
            Action.POD_PHASE | Action.POD_GONE,
            id="succeeded",
        ),
        pytest.param(
            make_pod(node="n1", phase="Pending"), BOUND, Action.POD_PHASE, id="other-phase"
        ),
        pytest.param(BOUND, make_pod(node="n1", state=CRASHING), Action.POD_STATES, id="waiting"),
        pytest.param(
            BOUND, make_pod(node="n1", reason="Shutdown"), Action.POD_STATES, id="status-reason"
        ),
        pytest.param(
            BOUND,
            make_pod(node="n1", state={"terminated": {"exitCode": 3}}),
            Action.POD_STATES,
            id="exit-code",
        ),
        pytest.param(BOUND, make_pod(node="n1", restarts=1), Action.POD_RESTARTS, id="restart"),
        pytest.param(
            BOUND,
            make_pod(node="n1", conditions=[{"type": "X", "status": "True"}]),
            Action.POD_CONDITIONS,
            id="condition",
        ),
        pytest.param(make_pod(node="n1", started=None), BOUND, Action.POD_STARTED, id="start-time"),
        pytest.param(
            BOUND,
            make_pod(node="n1", tolerations=[{"operator": "Exists"}]),
            Action.POD_TOLERATIONS,
            id="toleration",
        ),
        pytest.param(BOUND, make_pod(node="n1", images=["app:2"]), Action.POD_SPEC, id="image"),
        pytest.param(
            BOUND, make_pod(node="n1", deleted=NOW), Action.POD_TERMINATING, id="terminating"
        ),
    ],
)
def test_pod_change(old: Manifest | None, new: Manifest | None, expected: Action) -> None:
    assert cluster_events(change(old, new)) == expected


def test_resize_of_a_pod_is_a_change_of_resources() -> None:
    found = cluster_events(
        change(
            make_pod(requests={"cpu": "1"}, qos="Burstable"),
            make_pod(requests={"cpu": "2"}, qos="Burstable"),
        )
    )

    assert found == Action.POD_RESOURCES


def test_readiness_of_a_pod_is_seen() -> None:
    found = cluster_events(change(make_pod(), make_pod(ready=False)))

    assert Action.POD_READY in found
    assert Action.POD_STATES not in found


@pytest.mark.parametrize(
    ("kind_of", "broken", "expected"),
    [
        pytest.param(make_pod(node="n1"), {"tolerations": 7}, Action.POD_OPAQUE, id="pod"),
        pytest.param(make_node(), {"taints": 7}, Action.NODE_OPAQUE, id="node"),
        pytest.param(make_budget(), {"selector": 7}, Action.BUDGET_SELECTION, id="budget"),
    ],
)
def test_object_that_becomes_unreadable_is_seen(
    kind_of: Manifest, broken: Manifest, expected: Action
) -> None:
    unreadable = {**kind_of, "spec": broken}

    assert expected in cluster_events(change(kind_of, unreadable))
    assert expected in cluster_events(change(unreadable, kind_of))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, make_namespace(), Action.NAMESPACE_LABELS, id="namespace-created"),
        pytest.param(make_namespace(), None, Action.NAMESPACE_LABELS, id="namespace-deleted"),
        pytest.param(
            make_namespace(),
            make_namespace(labels={"a": "b"}),
            Action.NAMESPACE_LABELS,
            id="namespace-relabelled",
        ),
        pytest.param(make_namespace(), make_namespace(version="2"), Action(0), id="namespace"),
        pytest.param(None, make_budget(), Action.BUDGET_SELECTION, id="budget-created"),
        pytest.param(
            make_budget(),
            None,
            Action.BUDGET_SELECTION | Action.BUDGET_ROSE,
            id="budget-deleted",
        ),
        pytest.param(
            make_budget(),
            make_budget(selector={}),
            Action.BUDGET_SELECTION,
            id="budget-selects-others",
        ),
        pytest.param(
            make_budget(allowed=0),
            make_budget(allowed=1),
            Action.BUDGET_STATUS | Action.BUDGET_ROSE,
            id="budget-rose",
        ),
        pytest.param(
            make_budget(allowed=1), make_budget(allowed=0), Action.BUDGET_STATUS, id="budget-fell"
        ),
        pytest.param(
            make_budget(),
            make_budget(policy="AlwaysAllow"),
            Action.BUDGET_STATUS,
            id="budget-policy",
        ),
        pytest.param(
            make_budget(), make_budget(disrupted=["p"]), Action.BUDGET_STATUS, id="budget-disrupted"
        ),
        pytest.param(None, make_claim(), Action.CLAIM, id="claim-created"),
        pytest.param(
            make_claim(storage_class=None), make_claim(), Action.CLAIM, id="claim-got-its-class"
        ),
        pytest.param(
            make_claim(),
            make_claim(deleted="2026-01-01T00:00:00Z"),
            Action.CLAIM,
            id="claim-is-being-deleted",
        ),
        pytest.param(make_claim(), make_claim(version="2"), Action(0), id="claim"),
        pytest.param(None, make_priority_class(), Action(0), id="priority-class"),
    ],
)
def test_change_of_surroundings(
    old: Manifest | None, new: Manifest | None, expected: Action
) -> None:
    assert cluster_events(change(old, new)) == expected


def test_change_of_a_pod_touches_its_nodes_and_owners() -> None:
    adopted = make_pod("p", node="n1", owners=[owner("web", uid="u1"), owner("x", uid="u2")])

    assert set(touched(change(make_pod("p", owners=[owner("web", uid="u1")]), adopted))) == {
        ("Pod", "default", "p"),
        ("Node", "", "n1"),
        ("Owner", "", "u1"),
        ("Owner", "", "u2"),
        ("Namespace", "", "default"),
    }


def test_change_of_a_pod_with_anti_affinity_touches_whom_it_keeps_away() -> None:
    terms = [
        {"topologyKey": "zone", "namespaces": ["a", "b"]},
        {"topologyKey": "zone"},
        {"topologyKey": "zone", "namespaceSelector": {}},
    ]
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}

    found = touched(change(None, make_pod("p", affinity=affinity)))

    assert {ref[2] for ref in found if ref[0] == "AntiAffinity"} == {"a", "b", "default", ""}


def test_change_of_a_budget_touches_its_namespace() -> None:
    assert set(touched(change(None, make_budget("b", namespace="x")))) == {
        ("PodDisruptionBudget", "x", "b"),
        ("Namespace", "", "x"),
    }


def test_change_of_a_node_touches_it_alone() -> None:
    assert touched(change(make_node("n1"), None)) == (("Node", "", "n1"),)
