"""After any promises, whatever is asked of them equals a look at all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reactive_descheduler.api.pod import Kin, Pod, kin
from reactive_descheduler.cache.apart import ApartIndex
from reactive_descheduler.cache.promised import PromisedOver, PromisedPods
from tests.builders import make_pod, pod_view

NODES = ("n1", "n2")
NAMESPACES = ("x", "y")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TERM = {"topologyKey": "zone", "labelSelector": {}, "namespaces": ["y"]}
_AFFINITY = {
    2: {"podAntiAffinity": {_REQUIRED: [_TERM]}},
    3: {"podAffinity": {_REQUIRED: [_TERM]}},
}
PODS = [
    pod_view(
        make_pod(
            f"p{number}",
            namespace=namespace,
            requests={"cpu": cpu} if cpu else {},
            affinity=_AFFINITY.get(number, {}),
        )
    )
    for namespace in NAMESPACES
    for number, cpu in enumerate(("", "1", "1", "500m"))
]
# To no node: the promise ends.
moves = st.lists(st.tuples(st.sampled_from(PODS), st.sampled_from((*NODES, None))), max_size=20)


def follow(promised: PromisedPods, moves: list[tuple[Pod, str | None]]) -> dict[str, Pod]:
    """Promise, and end promises; return what stands then, kept plainly."""
    plain: dict[str, Pod] = {}
    for pod, node in moves:
        before, version = plain.pop(pod.uid, None), promised.version
        if node is None:
            assert promised.end(pod.uid) == before
        else:
            promised.promise(pod, node)
            plain[pod.uid] = replace(pod, node_name=node)
        assert (promised.version != version) == (node is not None or before is not None)
    return plain


def by_uid(pods: Iterable[Pod]) -> dict[str, Pod]:
    return {pod.uid: pod for pod in pods}


def hold(promised: PromisedPods, plain: dict[str, Pod]) -> None:
    pods = list(plain.values())
    assert len(promised) == len(pods)
    assert by_uid(promised.all()) == plain
    near = [pod for pod in pods if pod.template.pod_affinity]
    assert by_uid(promised.with_affinity()) == by_uid(near)
    assert {pod.uid for pod in PODS if pod.uid in promised} == plain.keys()
    for node in NODES:
        there = [pod for pod in pods if pod.node_name == node]
        assert by_uid(promised.on(node)) == by_uid(there)
        requests: Counter[str] = Counter()
        for pod in there:
            requests.update(pod.template.requests)
        assert dict(promised.requests(node)) == dict(requests)
    for namespace in NAMESPACES:
        inside = [pod for pod in pods if pod.namespace == namespace]
        assert set(promised.kins(namespace)) == set(map(kin, inside))
        for each in map(kin, PODS):
            assert by_uid(promised.of(each)) == by_uid(pod for pod in pods if kin(pod) == each)
        assert set(promised.apart(namespace)) == set(looking_into(namespace, pods))


def looking_into(namespace: str, pods: list[Pod]) -> Iterable[Kin]:
    fresh = ApartIndex()
    for pod in pods:
        fresh.update(None, pod)
    return fresh.looking_into(namespace)


@given(moves)
def test_promises_equal_a_recount(moves: list[tuple[Pod, str | None]]) -> None:
    promised = PromisedPods()
    hold(promised, follow(promised, moves))


@given(moves, moves)
def test_promises_on_top_of_others_equal_a_recount_of_both(
    below: list[tuple[Pod, str | None]], moves: list[tuple[Pod, str | None]]
) -> None:
    lower = PromisedPods()
    there = follow(lower, below)
    upper = PromisedOver(lower)
    mine = follow(upper, [(pod, node) for pod, node in moves if pod.uid not in there])
    hold(upper, there | mine)
    hold(lower, there)
