"""Strategies that compare numbers take no Pod that cannot be read for one that is missing."""

from __future__ import annotations

import pytest

from reactive_descheduler.config.corrections import ALL, NONE, Corrections
from tests.builders import Manifest, make_node, make_pod, owner
from tests.unit.strategies.driving import changed, run, wakes_on

DUPLICATES = "RemoveDuplicates"
SPREAD = "RemovePodsViolatingTopologySpreadConstraint"
RULE: Manifest = {
    "topologyKey": "zone",
    "maxSkew": 1,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
STRATEGIES = pytest.mark.parametrize("name", [DUPLICATES, SPREAD])
WAYS = pytest.mark.parametrize("corrections", [ALL, NONE], ids=["all", "none"])


def pod(name: str, node: str, *, namespace: str = "default", readable: bool = True) -> Manifest:
    made = make_pod(
        name, namespace=namespace, node=node, spread=[RULE], owners=[owner("ReplicaSet/web")]
    )
    return made if readable else made | {"status": 1}


def two_and(*others: Manifest) -> list[Manifest]:
    nodes = [make_node(name, labels={"zone": name}) for name in ("n1", "n2")]
    return [*nodes, pod("a", "n1"), pod("b", "n1"), *others]


def unreadable(namespace: str, node: str = "n2") -> list[Manifest]:
    return [pod(name, node, namespace=namespace, readable=False) for name in ("c", "d")]


@WAYS
@STRATEGIES
def test_nobody_goes_where_a_pod_cannot_be_read(name: str, corrections: Corrections) -> None:
    objects = two_and(*unreadable("default"))
    reason = "Pods of namespace default cannot be counted: c is unreadable"

    assert run(name, {}, *two_and(), corrections=corrections).names != []
    said = run(name, {}, *objects, corrections=corrections)
    assert said.names == []
    assert [each.reason for each in said.rejections] == [reason]


@STRATEGIES
def test_one_of_another_namespace_is_no_matter_but_on_the_node_to_go_to(name: str) -> None:
    assert run(name, {}, *two_and(*unreadable("other", "n1"))).names != []
    assert run(name, {}, *two_and(*unreadable("other", "n2"))).names == []


@STRATEGIES
def test_one_that_comes_wakes_who_would_go(name: str) -> None:
    said = run(name, {}, *two_and())
    assert wakes_on(said, changed(None, *unreadable("default")[:1]))


@STRATEGIES
def test_nobody_goes_until_the_last_of_them_can_be_read_or_is_gone(name: str) -> None:
    gone = unreadable("default")[0]
    assert wakes_on(run(name, {}, *two_and(gone)), changed(gone, None))
