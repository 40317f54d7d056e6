"""The informer: lists and watch events become changes, told once the store agrees with them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import pytest

from reactive_descheduler.api.changes import Change, WatchEvent, WatchEventType
from reactive_descheduler.api.meta import KubeObject
from reactive_descheduler.cache.informer import Informer
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.store import Store
from tests.builders import Manifest, make_node, make_pod, view


class Told:
    """What the informer told, each with the Pods on `n1` that the store showed at that moment."""

    def __init__(self) -> None:
        self.store = Store()
        self.lister = Lister(self.store)
        self.informer = Informer(self.store, self)
        self.changes: list[Change] = []
        self.seen: list[list[str]] = []

    def __call__(self, change: Change) -> None:
        self.changes.append(change)
        self.seen.append([pod.name for pod in self.lister.pods_on("n1")])

    def kinds(self) -> list[tuple[str, str]]:
        sides = {(False, True): "added", (True, True): "modified", (True, False): "deleted"}
        return [
            (sides[each.old is not None, each.new is not None], each.object.name)
            for each in self.changes
        ]

    def event(self, kind: WatchEventType, manifest: Manifest) -> list[Change]:
        found = view(manifest)
        return self.informer.apply(WatchEvent(kind, found, found.resource_version))

    def replace(self, listed: Iterable[KubeObject], version: str) -> list[Change]:
        return list(chain.from_iterable(self.informer.replace("Pod", listed, version)))


@pytest.fixture
def told() -> Told:
    return Told()


def test_events_become_changes(told: Told) -> None:
    told.event(WatchEventType.ADDED, make_pod("a", node="n1"))
    told.event(WatchEventType.MODIFIED, make_pod("a", node="n1", version="2"))
    returned = told.event(WatchEventType.DELETED, make_pod("a", node="n1", version="3"))
    assert told.kinds() == [("added", "a"), ("modified", "a"), ("deleted", "a")]
    assert told.seen == [["a"], ["a"], []]
    assert returned == told.changes[2:]


def test_bookmark_changes_nothing(told: Told) -> None:
    assert told.informer.apply(WatchEvent(WatchEventType.BOOKMARK, None, "9")) == []
    assert told.changes == []


def test_modification_of_an_unknown_object_adds_it(told: Told) -> None:
    told.event(WatchEventType.MODIFIED, make_pod("a"))
    assert told.kinds() == [("added", "a")]


def test_name_reuse_is_told_as_an_end_and_a_start(told: Told) -> None:
    told.event(WatchEventType.ADDED, make_pod("a", uid="old"))
    told.event(WatchEventType.MODIFIED, make_pod("a", uid="new"))
    assert told.kinds()[1:] == [("deleted", "a"), ("added", "a")]


def test_list_is_compared_with_what_is_known(told: Told) -> None:
    told.event(WatchEventType.ADDED, make_pod("same", node="n1"))
    told.event(WatchEventType.ADDED, make_pod("moved", node="n1"))
    told.event(WatchEventType.ADDED, make_pod("gone", node="n1"))
    told.event(WatchEventType.ADDED, make_pod("reused", uid="old"))
    told.event(WatchEventType.ADDED, make_node("n1"))
    told.changes.clear()
    told.seen.clear()
    listed = [
        make_pod("new", node="n1"),
        make_pod("reused", uid="new"),
        make_pod("moved", node="n1", version="2"),
        make_pod("same", node="n1"),
    ]
    returned = told.replace([view(each) for each in listed], "42")
    assert told.kinds() == [
        ("deleted", "gone"),
        ("added", "new"),
        ("deleted", "reused"),
        ("added", "reused"),
        ("modified", "moved"),
    ]
    assert told.seen[0] == ["moved", "same"]
    assert returned == told.changes
    assert told.informer.listed_version("Pod") == "42"
    assert told.informer.listed_version("Node") == ""
    assert [node.name for node in told.lister.nodes()] == ["n1"]


def test_same_list_again_tells_nothing(told: Told) -> None:
    listed = [view(make_pod("a")), view(make_pod("b"))]
    told.replace(listed, "1")
    told.changes.clear()
    assert told.replace(iter(listed), "2") == []
    assert told.changes == []
