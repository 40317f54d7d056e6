"""The nodes of a cycle follow the changes of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from reactive_descheduler.api.changes import Change
from reactive_descheduler.api.node import Node
from reactive_descheduler.framework.cycle import CycleNodes
from tests.builders import make_node, make_pod, node_view, pod_view


def node(name: str, *, ready: bool = True, zone: str = "a", version: str = "1") -> Node:
    return node_view(make_node(name, ready=ready, labels={"zone": zone}, version=version))


def cycle(*names: str, selector: str | None = None) -> CycleNodes:
    return CycleNodes(selector, {name: node(name) for name in names})


def test_ready_and_selected_nodes_in_order_of_names() -> None:
    found = cycle("n3", "n1", selector="zone=a")
    found.on_change(Change("Node", None, node("n2")))
    found.on_change(Change("Node", None, node("n0", ready=False)))
    found.on_change(Change("Node", None, node("n4", zone="b")))

    assert list(found) == ["n1", "n2", "n3"]
    assert [each.name for each in found.values()] == ["n1", "n2", "n3"]
    assert len(found) == 3
    assert "n0" not in found


@pytest.mark.parametrize("names", [(), ("n1",)])
def test_fewer_than_two_nodes_are_none_at_all(names: Sequence[str]) -> None:
    found = cycle(*names)

    assert (list(found), len(found), found.alive) == ([], 0, False)
    assert found.get("n1") is None
    with pytest.raises(KeyError):
        found["n1"]


LEAVES = {
    "deleted": None,
    "not ready": node("n2", ready=False),
    "relabelled": node("n2", zone="b"),
}


@pytest.mark.parametrize("after", LEAVES.values(), ids=LEAVES)
def test_a_node_that_leaves_lets_the_cycle_rest_and_one_that_comes_back_wakes_it(
    after: Node | None,
) -> None:
    found = cycle("n1", "n2", selector="zone=a")
    assert found.on_change(Change("Node", node("n2"), after))
    assert not found.alive
    assert found.on_change(Change("Node", after, node("n2")))

    assert list(found) == ["n1", "n2"]


def test_a_change_that_leaves_two_says_nothing_and_holds_the_node_as_it_is_now() -> None:
    found = cycle("n1", "n2", "n3")
    renewed = node("n2", zone="b", version="2")

    assert not found.on_change(Change("Node", node("n2"), renewed))
    assert found["n2"] is renewed
    assert not found.on_change(Change("Node", node("n3"), None))
    assert list(found) == ["n1", "n2"]


def test_other_kinds_say_nothing() -> None:
    found = cycle("n1", "n2")

    assert not found.on_change(Change("Pod", None, pod_view(make_pod())))
    assert len(found) == 2


def test_after_many_changes_it_equals_a_recount() -> None:
    random = Random(7)
    found = CycleNodes("zone=a")
    known: dict[str, Node] = {}
    for _ in range(2000):
        name = f"n{random.randrange(6)}"
        new = None
        if random.random() > 0.3:
            new = node(name, ready=random.random() > 0.3, zone=random.choice("ab"))
        old = known.pop(name, None)
        if old is None and new is None:
            continue
        found.on_change(Change("Node", old, new))
        if new is not None:
            known[name] = new
        wanted = sorted(n for n, each in known.items() if each.ready and each.labels["zone"] == "a")
        assert list(found) == (wanted if len(wanted) >= 2 else [])
