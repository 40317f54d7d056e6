"""Promises are found by Pod, node, namespace and template, and leave nothing behind."""

from __future__ import annotations

from reactive_descheduler.api.pod import kin
from reactive_descheduler.cache.promised import PromisedPods
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
    assert [each.name for each in promised.within("x")] == ["b"]
    assert [each.name for each in promised.of(kin(plain))] == ["a"]
    assert list(promised.kins("default")) == [kin(plain)]
    assert (promised.apart("default"), promised.apart("x")) == ((), (kin(apart),))
    assert plain.uid in promised

    for pod in (plain, apart):
        promised.end(pod.uid)
        assert pod.uid not in promised

    assert not promised
    assert (promised.on("n2"), dict(promised.requests("n2"))) == ((), {})
    assert (promised.within("x"), list(promised.kins("default"))) == ([], [])
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
