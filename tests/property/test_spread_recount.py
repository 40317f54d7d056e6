"""After any sequence of Pods that come, move, change and go, what is kept for topology spread
equals a recount from scratch; and a change is known to concern every group that it does."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from reactive_descheduler.api.pod import Pod, PodTemplate
from reactive_descheduler.api.scheduling.spread import (
    HARD,
    Spread,
    is_counted,
    recounted_domains,
    selects,
    spreads,
)
from reactive_descheduler.cache.counts import takes_room
from reactive_descheduler.cache.gone import GonePods
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.placements import Placements
from reactive_descheduler.cache.spread_groups import SpreadGroups
from reactive_descheduler.cache.store import Store
from tests.builders import Manifest, make_node, make_pod, node_view, pod_view, taint

SELECTORS: tuple[Manifest, ...] = (
    {"matchLabels": {"app": "web"}},
    {"matchLabels": {"app": "db"}},
    {"matchLabels": {"app": "web", "tier": "front"}},
    {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
    {"matchExpressions": [{"key": "app", "operator": "In", "values": ["db", "cache"]}]},
    {},
)


def _rule(selector: Manifest, key: str, more: Manifest) -> Manifest:
    return {
        "topologyKey": key,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
        **more,
    }


rules = st.builds(
    _rule,
    st.sampled_from(SELECTORS),
    st.sampled_from(("zone", "kubernetes.io/hostname")),
    st.sampled_from(({}, {"nodeTaintsPolicy": "Honor"}, {"matchLabelKeys": ["tier"]})),
)
pods = st.builds(
    make_pod,
    st.sampled_from([f"p{number}" for number in range(6)]),
    namespace=st.sampled_from(("x", "y")),
    node=st.sampled_from(("", "n1", "n2", "n3")),
    phase=st.sampled_from(("Running", "Running", "Succeeded")),
    labels=st.fixed_dictionaries(
        {"app": st.sampled_from(("web", "db", "cache"))},
        optional={"tier": st.sampled_from(("front", "back"))},
    ),
    node_selector=st.sampled_from(({}, {}, {"zone": "a"})),
    spread=st.lists(rules, max_size=2),
    deleted=st.sampled_from((None, None, "2026-01-01T00:00:00Z")),
)
nodes = st.builds(
    make_node,
    st.sampled_from(("n1", "n2", "n3")),
    labels=st.sampled_from(({}, {"zone": "a"}, {"zone": "b"})),
    taints=st.sampled_from(([], [taint()])),
)


class Clusters(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.store = Store()
        self.versions = 0

    @rule(drawn=pods)
    def put_pod(self, drawn: Manifest) -> None:
        pod = pod_view(self._versioned(drawn))
        old = self.store.pods().get(pod.uid)
        before = self._groups()
        self.store.put(pod)
        self._compare(before, old, pod)

    @rule(drawn=pods)
    def remove_pod(self, drawn: Manifest) -> None:
        old = self.store.pods().get(pod_view(drawn).uid)
        before = self._groups()
        self.store.remove(pod_view(drawn))
        self._compare(before, old, None)

    @rule(drawn=nodes)
    def put_node(self, drawn: Manifest) -> None:
        self.store.put(node_view(self._versioned(drawn)))

    @rule(asked=pods)
    def ask(self, asked: Manifest) -> None:
        """Groups that were asked for are remembered."""
        pod = pod_view(asked)
        self.store.placements.groups.of_template(pod.namespace, pod.template)

    def _versioned(self, drawn: Manifest) -> Manifest:
        self.versions += 1
        metadata = drawn["metadata"]
        assert isinstance(metadata, dict)
        return drawn | {"metadata": metadata | {"resourceVersion": str(self.versions)}}

    def _groups(self) -> dict[tuple[str, str], frozenset[PodTemplate]]:
        there = [
            (pod.namespace, pod.template) for pod in self.store.pods().values() if takes_room(pod)
        ]
        found = SpreadGroups.recount(there)
        return {(place, name): who for place, by in found.items() for name, who in by.items()}

    def _compare(
        self,
        before: dict[tuple[str, str], frozenset[PodTemplate]],
        old: Pod | None,
        new: Pod | None,
    ) -> None:
        placements = self.store.placements
        sides = [pod for pod in (old, new) if pod is not None]
        told = {
            (pod.namespace, name)
            for pod in sides
            for name in placements.groups.touched(
                pod.namespace, [each.template for each in sides if takes_room(each)]
            )
        }
        after = self._groups()
        moved = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        concerned = {
            key
            for groups in (before, after)
            for key, members in groups.items()
            for pod in sides
            if takes_room(pod) and pod.namespace == key[0] and pod.template in members
        }
        assert moved | concerned <= told
        assert placements.snapshot() == Placements.recount(self.store.pods().values())
        known = placements.groups.snapshot()
        assert {(place, name): who for place, by in known.items() for name, who in by.items()} == (
            after
        )
        self._compare_counts(sides)

    def _compare_counts(self, changed: Iterable[Pod]) -> None:
        everyone = list(self.store.pods().values())
        for less in ([], everyone[:2]):
            lister = Lister(self.store, GonePods(less))
            left = [pod for pod in everyone if pod not in less]
            for pod in (*everyone, *changed):
                for spread in spreads(pod.template, HARD):
                    counted = lister.spread_counts(pod.namespace, spread)
                    assert counted.counts == self._recounted(pod.namespace, spread, left)

    def _recounted(self, namespace: str, spread: Spread, left: list[Pod]) -> dict[str, int]:
        domains = recounted_domains(spread.shape, self.store.nodes())
        found: dict[str, int] = {}
        for pod in left:
            value = domains.of_node.get(pod.node_name)
            counts = is_counted(pod) and pod.namespace == namespace
            if counts and value is not None and selects(spread, pod.template):
                found[value] = found.get(value, 0) + 1
        return found


@pytest.mark.timeout(90)
def test_what_is_kept_equals_a_recount() -> None:
    run_state_machine_as_test(
        Clusters, settings=settings(max_examples=50, stateful_step_count=30, deadline=None)
    )
