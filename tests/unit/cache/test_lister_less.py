"""A lister that takes some Pods as gone."""

from __future__ import annotations

from reactive_descheduler.api.quantity import NANOS
from reactive_descheduler.cache.gone import GonePods
from reactive_descheduler.cache.lister import Lister
from tests.builders import cluster_store, make_pod, pod_view, view

HERE = make_pod("here", node="n1", requests={"cpu": 1, "memory": "1Gi"})
GOING = make_pod("going", node="n1", requests={"cpu": 2, "gpu": 1})


def test_gone_pods_are_in_no_list_count_or_sum() -> None:
    whole = Lister(cluster_store(HERE, GOING))
    going = pod_view(GOING)
    lister = whole.less(GonePods([going]))
    for pods in (
        lister.pods(),
        lister.pods_on("n1"),
        lister.pods_in("default"),
        lister.owned_pods("uid-replicaset-web"),
    ):
        assert [pod.name for pod in pods] == ["here"]
    assert lister.pod(going.uid) is None
    assert lister.pod_named("default", "going") is None
    assert lister.owned_by("uid-replicaset-web") == 1
    assert lister.active_pods_on("n1") == 1
    assert lister.requests_on("n1") == {"cpu": NANOS, "memory": 2**30 * NANOS}


def test_whole_lister_is_left_as_it_is() -> None:
    whole = Lister(cluster_store(HERE, GOING))
    going = pod_view(GOING)
    whole.less(GonePods([going]))
    assert whole.active_pods_on("n1") == 2
    assert whole.requests_on("n1")["cpu"] == 3 * NANOS


def test_takings_add_up() -> None:
    whole = Lister(cluster_store(HERE, GOING))
    here, going = pod_view(HERE), pod_view(GOING)
    lister = whole.less(GonePods([going, here]))
    assert (list(lister.pods()), lister.active_pods_on("n1")) == ([], 0)
    assert lister.requests_on("n1") == {}


def test_finished_pod_that_goes_frees_nothing_twice() -> None:
    done = make_pod("done", node="n1", requests={"cpu": 1}, phase="Failed")
    found = pod_view(done)
    lister = Lister(cluster_store(HERE, done)).less(GonePods([found]))
    assert lister.active_pods_on("n1") == 1
    assert lister.requests_on("n1")["cpu"] == NANOS


def test_counts_follow_the_store_while_a_pod_is_gone() -> None:
    store = cluster_store(HERE, make_pod("going", node="n1"))
    going = pod_view(make_pod("going", node="n1"))
    lister = Lister(store).less(GonePods([going]))
    assert lister.active_pods_on("n1") == 1
    store.put(view(make_pod("going", version="2", node="n1", requests={"cpu": 5})))
    assert lister.active_pods_on("n1") == 1
    assert lister.requests_on("n1")["cpu"] == NANOS
    store.remove(going)
    assert lister.active_pods_on("n1") == 1


def test_pod_of_the_same_name_and_another_uid_is_there() -> None:
    going = pod_view(make_pod(uid="old"))
    lister = Lister(cluster_store(make_pod(uid="new"))).less(GonePods([going]))
    assert lister.pod_named("default", "web-1") is not None
