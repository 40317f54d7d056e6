"""Which unreadable objects are counted, and of which it is told."""

from __future__ import annotations

from structlog.testing import capture_logs

from reactive_descheduler.api.changes import WatchEvent, WatchEventType
from reactive_descheduler.api.node import Node
from reactive_descheduler.cache.opaque import TOLD_OF_A_LIST, OpaqueObjects
from tests.builders import make_node, node_view


def node(name: str, *, opaque: str = "cpu: what?") -> Node:
    taints = {"taints": 17} if opaque else {}
    return node_view({**make_node(name), "spec": taints})


def event(kind: WatchEventType, found: Node) -> WatchEvent:
    return WatchEvent(kind, found, "2")


def test_an_object_is_told_when_it_becomes_unreadable_and_not_while_it_stays_so() -> None:
    objects = OpaqueObjects("Node")
    with capture_logs() as logs:
        objects.listed([node("a"), node("b", opaque="")])
        objects.changed(event(WatchEventType.MODIFIED, node("a")))
        objects.changed(event(WatchEventType.MODIFIED, node("b")))
        objects.listed([node("a"), node("b")])
        assert [line["name"] for line in logs] == ["a", "b"]
        assert len(objects) == 2

        objects.changed(event(WatchEventType.MODIFIED, node("a", opaque="")))
        objects.changed(event(WatchEventType.DELETED, node("b")))
        assert len(objects) == 0
        objects.changed(event(WatchEventType.MODIFIED, node("a")))
    assert [line["name"] for line in logs] == ["a", "b", "a"]


def test_of_a_whole_cluster_that_cannot_be_read_the_rest_is_a_number() -> None:
    objects = OpaqueObjects("Node")
    with capture_logs() as logs:
        objects.listed([node(f"n{number}") for number in range(TOLD_OF_A_LIST + 5)])
    assert len(logs) == TOLD_OF_A_LIST + 1
    assert logs[-1]["count"] == 5
    assert len(objects) == TOLD_OF_A_LIST + 5
