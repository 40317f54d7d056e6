"""What the demo says that somebody changed, out of the old and the new object."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

import pytest

from reactive_descheduler.cli.demo_changes import (
    CORDON_TAINT,
    Describe,
    budget_changes,
    listener,
    node_changes,
    pod_changes,
    workload_changes,
)
from reactive_descheduler.cli.demo_timeline import Step, Timeline
from reactive_descheduler.kit.clock import ManualClock
from tests.builders import Manifest, make_budget, make_node, make_pod, taint

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def make_deployment(replicas: int, image: str = "web:1") -> Manifest:
    container = {"name": "web", "image": image}
    template = {"spec": {"containers": [container]}}
    return {
        "metadata": {"name": "web", "uid": "u1"},
        "spec": {"replicas": replicas, "template": template},
    }


def make_wanted(**spec: int | str) -> Manifest:
    return make_budget("store") | {"spec": dict[str, object](spec)}


class Case(NamedTuple):
    describe: Describe
    old: Manifest
    new: Manifest
    told: list[str]


NODE = make_node("n1")
POD = make_pod("p1", node="n1")
CASES = {
    "cordoned": Case(node_changes, NODE, make_node("n1", unschedulable=True), ["n1 is cordoned"]),
    "uncordoned": Case(
        node_changes, make_node("n1", unschedulable=True), NODE, ["n1 is uncordoned"]
    ),
    "the-taint-of-a-cordon": Case(
        node_changes, NODE, make_node("n1", taints=[taint(CORDON_TAINT)]), []
    ),
    "a-taint-comes-and-another-goes": Case(
        node_changes,
        make_node("n1", taints=[taint("a", "b")]),
        make_node("n1", taints=[taint("c", effect="NoExecute")]),
        ["n1 gets the taint c:NoExecute", "n1 loses the taint a=b:NoSchedule"],
    ),
    "labels": Case(
        node_changes,
        make_node("n1", labels={"disk": "ssd", "zone": "a"}),
        make_node("n1", labels={"disk": "hdd", "rack": ""}),
        [
            "n1 gets the label disk=hdd instead of ssd",
            "n1 gets the label rack=",
            "n1 loses the label zone=a",
        ],
    ),
    "no-longer-ready": Case(
        node_changes, NODE, make_node("n1", ready=False), ["n1 is no longer Ready"]
    ),
    "a-heartbeat": Case(node_changes, NODE, make_node("n1", version="2"), []),
    "scaled": Case(
        workload_changes, make_deployment(4), make_deployment(12), ["web is scaled from 4 to 12"]
    ),
    "rolled-out": Case(
        workload_changes,
        make_deployment(4),
        make_deployment(4, "web:2"),
        ["web gets another Pod template"],
    ),
    "a-budget-of-available": Case(
        budget_changes,
        make_wanted(minAvailable=1),
        make_wanted(minAvailable=2),
        ["the budget store wants 2 available"],
    ),
    "a-budget-turned-round": Case(
        budget_changes,
        make_wanted(minAvailable=1),
        make_wanted(maxUnavailable="50%"),
        ["the budget store wants 50% unavailable at most"],
    ),
    "a-budget-recounted": Case(
        budget_changes, make_budget("web", allowed=1), make_budget("web", allowed=0), []
    ),
    "a-label-of-a-pod": Case(
        pod_changes,
        POD,
        make_pod("p1", node="n1", labels={"app": "web", "renew": "soon"}),
        ["p1 gets the label renew=soon"],
    ),
    "restarts": Case(
        pod_changes, POD, make_pod("p1", node="n1", restarts=10), ["p1 has restarted 10 times"]
    ),
    "labels-copied-at-binding": Case(
        pod_changes, make_pod("p1"), make_pod("p1", node="n1", labels={"zone": "a"}), []
    ),
    "a-pod-that-goes": Case(
        pod_changes, POD, make_pod("p1", node="n1", restarts=10, deleted=NOON), []
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_change_is_told_in_words(case: Case) -> None:
    assert list(case.describe(case.old, case.new)) == case.told


@pytest.mark.parametrize(
    ("old", "new", "kind", "told"),
    [
        pytest.param(None, make_node("n1"), "node", ["node n1 is created"], id="created"),
        pytest.param(make_node("n1"), None, "node", ["node n1 is deleted"], id="deleted"),
        pytest.param(
            make_node("n1", uid="a"),
            make_node("n1", uid="b"),
            "node",
            ["node n1 is created"],
            id="made-anew",
        ),
        pytest.param(None, make_pod("p1"), "", [], id="told-otherwise"),
        pytest.param(
            make_node("n1"),
            make_node("n1", unschedulable=True),
            "node",
            ["n1 is cordoned"],
            id="changed",
        ),
    ],
)
def test_what_comes_and_goes_is_told_too(
    old: Manifest | None, new: Manifest | None, kind: str, told: list[str]
) -> None:
    timeline = Timeline(ManualClock(NOON))
    steps: list[Step] = []
    timeline.listeners.append(steps.append)
    listener(timeline, kind, node_changes)(old, new)
    assert [(step.time, step.kind, step.text) for step in steps] == [
        (NOON, "change", text) for text in told
    ]
