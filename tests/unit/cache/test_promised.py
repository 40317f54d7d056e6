"""Promises are found by Pod, node, namespace and template, and leave nothing behind."""

from __future__ import annotations

from reactive_descheduler.api.pod import kin
from reactive_descheduler.cache.promised import PromisedOver, PromisedPods
from tests.builders import make_pod, pod_view

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TERM = {"topologyKey": "zone", "labelSelector": {}}
APART = {"podAntiAffinity": {_REQUIRED: [_TERM]}}


def test_a_promise_is_found_until_it_ends() -> None:
    promised = PromisedPods()
    plain = pod_view(make_pod("a", node="n1", requests={"cpu": "1"}))
    apart = pod_view(make_pod("b", namespace="x", node="n1", affinity=APART))

    promised.promise(plain, "n2")
    promised.promise(apart, "n2")

    assert [each.name for each in promised.all()] == ["a", "b"]
    assert [(each.name, each.node_name) for each in promised.on("n2")] == [("a", "n2"), ("b", "n2")]
    assert promised.requests("n2") == {"cpu": 10**9}
    assert [each.name for each in promised.of(kin(plain))] == ["a"]
    assert list(promised.kins("default")) == [kin(plain)]
    assert (promised.apart("default"), promised.apart("x")) == ((), (kin(apart),))
    assert plain.uid in promised

    for pod in (plain, apart):
        promised.end(pod.uid)
        assert pod.uid not in promised

    assert not promised
    assert (promised.on("n2"), dict(promised.requests("n2"))) == ((), {})
    assert (list(promised.kins("x")), list(promised.kins("default"))) == ([], [])
    assert promised.apart("x") == ()
    assert promised.end("nobody") is None


def test_a_second_promise_takes_the_place_of_the_first_and_both_move_the_version() -> None:
    promised = PromisedPods()
    pod = pod_view(make_pod("a", node="n1"))
    promised.promise(pod, "n2")
    before = promised.version

    promised.promise(pod, "n3")

    assert (promised.on("n2"), len(promised.on("n3"))) == ((), 1)
    assert promised.version > before


def test_promises_on_top_of_others_stand_beside_them_and_leave_them_alone() -> None:
    below = PromisedPods()
    over = PromisedOver(below)
    first = pod_view(make_pod("a", node="n1", requests={"cpu": "1"}, affinity=APART))
    second = pod_view(make_pod("b", node="n1", requests={"cpu": "2"}))
    version = over.version
    below.promise(first, "n2")
    assert over.version > version

    over.promise(second, "n2")

    assert [each.name for each in below.all()] == ["a"]
    assert sorted(each.name for each in over.all()) == ["a", "b"]
    assert sorted(each.name for each in over.on("n2")) == ["a", "b"]
    assert over.requests("n2") == {"cpu": 3 * 10**9}
    assert set(over.kins("default")) == {kin(first), kin(second)}
    assert [each.name for each in over.of(kin(first))] == ["a"]
    assert over.apart("default") == (kin(first),)
    assert (first.uid in over, second.uid in over, second.uid in below) == (True, True, False)
    assert (len(over), len(below)) == (2, 1)
