"""Conflicts, found by counting, are those that comparing each Pod with each other finds."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from reactive_descheduler.api.eviction import TAKEN, Candidate, Cause
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod, kin
from reactive_descheduler.api.scheduling.pod_terms import chooses
from reactive_descheduler.api.selectors import matches
from reactive_descheduler.api.terms import PodAffinityTerm
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.config.corrections import ALL, Correction
from reactive_descheduler.framework.conflicts import Conflicts
from reactive_descheduler.strategies.remove_pods_violating_inter_pod_anti_affinity import (
    AntiAffinityArguments,
    RemovePodsViolatingInterPodAntiAffinity,
)
from tests.builders import Manifest, cluster, make_namespace, make_node, make_pod
from tests.unit.strategies.driving import drive, evaluate, view_of

RED, BLUE = {"team": "red"}, {"team": "blue"}
APPS = ("web", "db")


def _term(selector: Manifest | None, key: str, **more: object) -> Manifest:
    return {"topologyKey": key, **({} if selector is None else {"labelSelector": selector}), **more}


TERMS: tuple[Manifest, ...] = (
    _term({"matchLabels": {"app": "web"}}, "zone"),
    _term({"matchLabels": {"app": "db"}}, "host"),
    _term({"matchExpressions": [{"key": "app", "operator": "In", "values": [*APPS]}]}, "zone"),
    _term({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]}, "host"),
    _term({}, "zone", namespaces=["y"]),
    _term({}, "host", namespaceSelector={"matchLabels": RED}),
    _term({"matchLabels": {"app": "web"}}, "host", namespaces=["x"], namespaceSelector={}),
    _term({}, "zone", matchLabelKeys=["app"]),
    _term(None, "zone"),
)
pods = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from(("a", "b", "c", "d", "e")),
            "namespace": st.sampled_from(("x", "y")),
            "node": st.sampled_from(("n1", "n2", "n3", "n4", "")),
            "phase": st.sampled_from(("Running", "Running", "Running", "Failed")),
            "app": st.sampled_from(APPS),
            "going": st.sampled_from((False, False, False, True)),
            "terms": st.lists(st.sampled_from(TERMS), max_size=2),
        }
    ),
    max_size=8,
    unique_by=lambda pod: (pod["namespace"], pod["name"]),
)


class Rules(NamedTuple):
    corrected: bool
    terminating: bool


def _pod(drawn: dict[str, object]) -> Manifest:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": drawn["terms"]}
    return make_pod(
        str(drawn["name"]),
        namespace=str(drawn["namespace"]),
        node=str(drawn["node"]),
        phase=str(drawn["phase"]),
        labels={"app": str(drawn["app"])},
        deleted="2026-01-01T00:00:00Z" if drawn["going"] else None,
        affinity={"podAntiAffinity": required} if drawn["terms"] else {},
    )


def _keeps(term: PodAffinityTerm, owner: Pod, other: Pod, lister: Lister, rules: Rules) -> bool:
    if rules.corrected:

        def labels_of(name: str) -> dict[str, str] | None:
            namespace = lister.namespace(name)
            return namespace.labels if namespace is not None else None

        return other.uid != owner.uid and chooses(term, kin(owner), kin(other), labels_of)
    return (
        other.name != owner.name
        and other.namespace in (term.namespaces or (owner.namespace,))
        and matches(term.label_selector, other.template.labels)
    )


def _near(term: PodAffinityTerm, one: Node, other: Node, rules: Rules) -> bool:
    value = one.labels.get(term.topology_key)
    if value is None:
        return one.name == other.name and not rules.corrected
    return value == other.labels.get(term.topology_key)


def _broken(lister: Lister, nodes: dict[str, Node], rules: Rules) -> dict[tuple[str, str], int]:
    """Return for each two Pods how many terms of the first the second breaks, if any."""
    there = [
        pod
        for pod in lister.pods()
        if pod.active and pod.node_name in nodes and (rules.terminating or pod.deleted is None)
    ]
    found = {}
    for owner in there:
        for other in there:
            terms = sum(
                _keeps(term, owner, other, lister, rules)
                and _near(term, nodes[owner.node_name], nodes[other.node_name], rules)
                for term in owner.template.anti_affinity
            )
            if terms:
                found[owner.uid, other.uid] = terms
    return found


def standing(drawn: Iterable[dict[str, object]]) -> Lister:
    """Return the Pods on three nodes in two zones, of which one has no host label."""
    return cluster(
        make_node("n1", labels={"zone": "1", "host": "n1"}),
        make_node("n2", labels={"zone": "1", "host": "n2"}),
        make_node("n3", labels={"zone": "2"}),
        make_namespace("x", labels=RED),
        make_namespace("y", labels=BLUE),
        *map(_pod, drawn),
    )


@given(
    drawn=pods,
    rules=st.builds(Rules, st.booleans(), st.booleans()),
    order=st.randoms(use_true_random=False),
)
@settings(max_examples=200)
def test_conflicts_are_those_of_each_pod_with_each_other(
    drawn: list[dict[str, object]], rules: Rules, order: Random
) -> None:
    lister = standing(drawn)
    nodes = {node.name: node for node in lister.nodes()}
    conflicts = Conflicts(
        lister,
        nodes,
        counts=lambda _kin: True,
        corrected=rules.corrected,
        terminating=rules.terminating,
    )
    for _ in conflicts.read(lister.apart_namespaces()):
        pass
    broken = _broken(lister, nodes, rules)
    while True:
        found = [each for each in map(conflicts.of, tuple(conflicts.holders())) if each is not None]
        assert {each.pod.uid for each in found} == {owner for owner, _ in broken}
        for each in found:
            uid = each.pod.uid
            assert (uid, each.other.uid) in broken
            assert conflicts.ended_by(each.pod) == sum(
                terms for pair, terms in broken.items() if uid in pair
            )
        if not found:
            return
        gone = order.choice(found).pod
        conflicts.take_out(gone)
        broken = {pair: terms for pair, terms in broken.items() if gone.uid not in pair}


@given(drawn=pods, scope=st.booleans(), fewest=st.booleans())
@settings(max_examples=300)
def test_part_of_a_key_says_of_a_pod_what_the_whole_says(
    drawn: list[dict[str, object]], scope: bool, fewest: bool
) -> None:
    lister = standing(drawn)
    without = {
        *(() if scope else (Correction.ANTI_AFFINITY_SCOPE,)),
        *(() if fewest else (Correction.ANTI_AFFINITY_FEWEST,)),
    }
    strategy = RemovePodsViolatingInterPodAntiAffinity(
        AntiAffinityArguments(), profile=0, corrections=ALL - without
    )
    key_of, said = {}, {}
    for key in strategy.keys_of(lister):
        for name in lister.joined_namespaces(key.unit[0], by_labels=scope):
            key_of[name] = key
        for candidate in evaluate(strategy, view_of(lister), *key.unit).candidates:
            said[candidate.pod.uid] = candidate

    for pod in lister.pods():
        if not pod.node_name or pod.namespace not in key_of:
            continue
        of_old = Candidate(key_of[pod.namespace], pod, Cause("anti-affinity", (), ()), "")
        seen = view_of(lister)
        offered = drive(strategy.reevaluate(seen, of_old), seen, lambda _: TAKEN).candidates
        found = [each for each in offered if each.pod.uid == pod.uid]
        assert found == ([said[pod.uid]] if pod.uid in said else [])
