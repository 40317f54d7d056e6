"""The store: what counts as a change, and that indexes and counts follow."""

from __future__ import annotations

import pytest

from reactive_descheduler.api.changes import Change
from reactive_descheduler.api.quantity import NANOS
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.store import Store
from tests.builders import (
    Manifest,
    budget_view,
    cluster,
    cluster_store,
    make_budget,
    make_claim,
    make_namespace,
    make_node,
    make_pod,
    make_priority_class,
    node_view,
    owner,
    pod_view,
    view,
)


def sides(changes: list[Change]) -> list[tuple[str | None, str | None]]:
    return [
        (each.old.uid if each.old else None, each.new.uid if each.new else None) for each in changes
    ]


def names(lister: Lister, node: str = "n1") -> list[str]:
    return [pod.name for pod in lister.pods_on(node)]


def test_new_object_is_added_and_a_newer_version_modifies_it() -> None:
    store = Store()
    first, second = view(make_pod(version="1")), view(make_pod(version="2", phase="Failed"))
    assert store.put(first) == [Change("Pod", None, first)]
    assert store.put(second) == [Change("Pod", first, second)]
    assert store.version == 2


def test_replay_changes_nothing() -> None:
    store = cluster_store(make_pod(node="n1", requests={"cpu": 1}))
    assert store.put(view(make_pod(node="n1", requests={"cpu": 1}))) == []
    assert store.version == 1


def test_object_without_a_version_is_never_taken_for_a_replay() -> None:
    store = cluster_store(make_pod(version=""))
    assert len(store.put(view(make_pod(version="", phase="Failed")))) == 1


def test_known_name_with_another_uid_is_an_end_and_a_start() -> None:
    store = cluster_store(make_pod(uid="old", node="n1", requests={"cpu": 1}))
    changes = store.put(view(make_pod(uid="new", node="n2", requests={"cpu": 2})))
    assert sides(changes) == [("old", None), (None, "new")]
    lister = Lister(store)
    assert (names(lister, "n1"), names(lister, "n2")) == ([], ["web-1"])
    assert lister.pod("old") is None
    assert (lister.active_pods_on("n1"), lister.active_pods_on("n2")) == (0, 1)


def test_deletion_takes_only_the_very_object() -> None:
    store = cluster_store(make_pod(uid="new"))
    assert store.remove(view(make_pod(uid="old"))) == []
    assert store.remove(view(make_pod("other"))) == []
    assert sides(store.remove(view(make_pod(uid="new", version="9")))) == [("new", None)]
    assert list(store.all("Pod")) == []


def test_deletion_that_cannot_be_read_still_deletes() -> None:
    store = cluster_store(make_pod(uid="u", node="n1"))
    unreadable = {
        "kind": "Pod",
        "metadata": {"name": "web-1", "namespace": "default", "uid": 5},
    }
    assert len(store.remove(view(unreadable))) == 1
    assert names(Lister(store)) == []


def test_pods_on_a_node_come_by_namespace_and_name() -> None:
    lister = cluster(
        make_pod("b", namespace="x", node="n1"),
        make_pod("a", namespace="y", node="n1"),
        make_pod("c", namespace="x", node="n1", phase="Succeeded"),
        make_pod("a", namespace="x", node="n2"),
        make_pod("waiting", namespace="x"),
    )
    assert [(pod.namespace, pod.name) for pod in lister.pods_on("n1")] == [
        ("x", "b"),
        ("x", "c"),
        ("y", "a"),
    ]
    assert [pod.name for pod in lister.pods_in("x")] == ["a", "b", "c", "waiting"]
    assert lister.pods_on("nowhere") == []
    assert lister.pods_on("") == []


def test_binding_moves_a_pod_onto_its_node() -> None:
    store = cluster_store(make_pod(version="1", requests={"cpu": 1}))
    lister = Lister(store)
    assert names(lister) == []
    store.put(view(make_pod(version="2", node="n1", requests={"cpu": 1})))
    assert names(lister) == ["web-1"]
    assert lister.requests_on("n1") == {"cpu": NANOS}


def test_finished_pod_frees_its_room_and_stays_listed() -> None:
    store = cluster_store(make_pod(version="1", node="n1", requests={"cpu": 1}))
    lister = Lister(store)
    store.put(view(make_pod(version="2", node="n1", requests={"cpu": 1}, phase="Succeeded")))
    assert (lister.requests_on("n1"), lister.active_pods_on("n1")) == ({}, 0)
    assert names(lister) == ["web-1"]


def test_resize_in_place_moves_the_sums() -> None:
    store = cluster_store(make_pod(version="1", node="n1", requests={"cpu": 1, "gpu": 1}))
    store.put(view(make_pod(version="2", node="n1", requests={"cpu": 3})))
    assert Lister(store).requests_on("n1") == {"cpu": 3 * NANOS}


def test_owned_pods_are_counted_by_any_owner_in_any_phase() -> None:
    two = [owner("a"), owner("b", controller=False)]
    lister = cluster(
        make_pod("1", owners=two),
        make_pod("2", owners=[owner("a")], phase="Failed"),
        make_pod("3", owners=[]),
    )
    assert lister.owned_by("uid-replicaset-a") == 2
    assert lister.owned_by("uid-replicaset-b") == 1
    assert lister.owned_by("uid-replicaset-c") == 0
    assert [pod.name for pod in lister.owned_pods("uid-replicaset-a")] == ["1", "2"]


def test_nodes_come_by_name_and_follow_their_changes() -> None:
    store = cluster_store(make_node("b"), make_node("a"))
    lister = Lister(store)
    assert [node.name for node in lister.nodes()] == ["a", "b"]
    store.put(view(make_node("a", version="2", unschedulable=True)))
    assert [node.unschedulable for node in lister.nodes()] == [True, False]
    store.remove(node_view(make_node("b")))
    assert [node.name for node in lister.nodes()] == ["a"]
    assert lister.node("b") is None


def test_surroundings_are_found_by_name() -> None:
    lister = cluster(
        make_node("n"),
        make_namespace("ns"),
        make_claim("data", namespace="ns"),
        make_priority_class("high"),
        make_pod("p", namespace="ns"),
    )
    found = (lister.node("n"), lister.namespace("ns"), lister.claim("ns", "data"))
    assert [each.name for each in found if each] == ["n", "ns", "data"]
    assert lister.priority_class("high") is not None
    assert lister.pod_named("ns", "p") is not None
    assert lister.pod_named("ns", "q") is None
    assert lister.claim("default", "data") is None


INVALID = {"matchExpressions": [{"key": "app", "operator": "Sometimes"}]}


@pytest.mark.parametrize(
    ("budgets", "selecting"),
    [
        pytest.param([], [], id="none"),
        pytest.param([make_budget("b"), make_budget("a")], ["a", "b"], id="two by name"),
        pytest.param([make_budget(selector={})], ["web"], id="empty selects all"),
        pytest.param([make_budget(namespace="other")], [], id="other namespace"),
        pytest.param([make_budget(selector={"matchLabels": {"app": "db"}})], [], id="other labels"),
        pytest.param([make_budget(selector=INVALID)], [], id="invalid selects none"),
        pytest.param(
            [{"kind": "PodDisruptionBudget", "metadata": {"name": "b"}}], [], id="no selector"
        ),
    ],
)
def test_budgets_that_select_a_pod(budgets: list[Manifest], selecting: list[str]) -> None:
    pod = make_pod(labels={"app": "web"})
    lister = cluster(pod, *budgets)
    assert [budget.name for budget in lister.budgets_of(pod_view(pod))] == selecting


def test_budgets_of_a_pod_follow_changes_of_the_budgets() -> None:
    pod = make_pod(labels={"app": "web"})
    store = cluster_store(pod)
    lister, asked = Lister(store), pod_view(pod)
    assert list(lister.budgets_of(asked)) == []
    store.put(view(make_budget(version="1", allowed=0)))
    assert [each.disruptions_allowed for each in lister.budgets_of(asked)] == [0]
    store.put(view(make_budget(version="2", allowed=2)))
    assert [each.disruptions_allowed for each in lister.budgets_of(asked)] == [2]
    store.put(view(make_budget(version="3", selector={"matchLabels": {"app": "db"}})))
    assert list(lister.budgets_of(asked)) == []
    assert [each.name for each in lister.budgets("default")] == ["web"]
    store.remove(budget_view(make_budget(version="3")))
    assert list(lister.budgets("default")) == []


def test_budgets_of_a_pod_follow_a_change_of_its_labels() -> None:
    store = cluster_store(make_budget())
    lister = Lister(store)
    assert len(lister.budgets_of(pod_view(make_pod()))) == 1
    assert len(lister.budgets_of(pod_view(make_pod(labels={"app": "db"})))) == 0


def test_lister_version_moves_with_each_change() -> None:
    store = cluster_store(make_node("a"))
    lister = Lister(store)
    before = lister.version
    store.put(view(make_node("a", version="2")))
    assert lister.version > before


def test_budgets_of_a_pod_stay_right_while_workloads_come_and_go() -> None:
    store = cluster_store(make_budget())
    lister = Lister(store)
    for turn in range(200):
        labels = {"app": "web" if turn % 2 else "db", "turn": str(turn)}
        pod = pod_view(make_pod(uid=str(turn), labels=labels))
        store.put(pod)
        assert len(lister.budgets_of(pod)) == turn % 2
        store.remove(pod)
