"""What node fit remembers is what a search without any memory finds, whatever is asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive_descheduler.api.scheduling.fit import UPSTREAM, FitRules, misfit
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.config.corrections import ALL
from reactive_descheduler.framework.fitting import Fitting, fit_rules
from tests.builders import Manifest, cluster, make_node, make_pod, owner

NODES = ("n0", "n1", "n2", "n3")
HOST = "kubernetes.io/hostname"
WEB = {"matchLabels": {"app": "web"}}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
RULES = (fit_rules(ALL), fit_rules(ALL)._replace(anti_affinity=False), UPSTREAM)


def _anti(key: str, namespaces: Sequence[str] = ()) -> Manifest:
    term = {"topologyKey": key, "labelSelector": WEB, "namespaces": [*namespaces]}
    return {"affinity": {"podAntiAffinity": {_REQUIRED: [term]}}}


def _spread(key: str, skew: int = 1, **more: object) -> Manifest:
    constraint = {"topologyKey": key, "maxSkew": skew, "labelSelector": WEB, **more}
    return {"spread": [{**constraint, "whenUnsatisfiable": "DoNotSchedule"}]}


def _near(key: str, app: str = "web") -> Manifest:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {"podAffinity": {_REQUIRED: [term]}}}


KINDS: tuple[Manifest, ...] = (
    {},
    _anti(HOST),
    _anti("zone"),
    _anti("zone", ["default", "other"]),
    _spread("zone"),
    _spread(HOST, 2),
    _spread(HOST, nodeTaintsPolicy="Honor", minDomains=4),
    _near("zone"),
    _near(HOST),
    _near("zone", "db"),
    {**_near("zone"), **_spread(HOST)},
    {**_spread("zone"), **_anti(HOST)},
    {"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 1, "hostPort": 80}]}]}},
)


class Placed(NamedTuple):
    app: str
    second: bool
    """Of which of the cluster's two kinds."""
    node: str
    namespace: str
    terminating: bool


class Cluster(NamedTuple):
    kinds: tuple[Manifest, Manifest]
    nodes: list[tuple[str | None, str]]
    """Zone and room for Pods of each."""
    placed: list[Placed]


_placed = st.builds(
    Placed,
    st.sampled_from(("web", "web", "db")),
    st.booleans(),
    st.sampled_from(NODES),
    st.sampled_from(("default", "default", "other")),
    st.sampled_from((False, False, False, True)),
)
_zones = st.sampled_from((None, "a", "a", "b"))
_clusters = st.builds(
    Cluster,
    st.tuples(st.sampled_from(KINDS), st.sampled_from(KINDS)),
    st.lists(st.tuples(_zones, st.sampled_from(("2", "3", "4"))), min_size=4, max_size=4),
    st.lists(_placed, min_size=2, max_size=9),
)


def _objects(cluster: Cluster) -> list[Manifest]:
    names: dict[str, int] = {}
    found = [
        make_node(
            name,
            labels={HOST: name, **({"zone": zone} if zone else {})},
            allocatable={"cpu": "9", "pods": pods},
        )
        for name, (zone, pods) in zip(NODES, cluster.nodes, strict=True)
    ]
    for each in cluster.placed:
        number = names[each.namespace] = names.get(each.namespace, -1) + 1
        found.append(
            make_pod(
                f"p{number}",
                namespace=each.namespace,
                node=each.node,
                labels={"app": each.app},
                deleted="2026-01-01T00:00:00Z" if each.terminating else None,
                owners=[owner(f"k{each.second}")],
                **cluster.kinds[each.second],  # type: ignore[arg-type]
            )
        )
    return found


def _finds_what_a_search_finds(fitting: Fitting, lister: Lister, rules: FitRules) -> None:
    for _ in range(2):
        for pod in sorted(lister.pods(), key=lambda pod: (pod.namespace, pod.name)):
            fits = {
                node.name
                for node in lister.nodes()
                if node.name != pod.node_name and misfit(pod, node, lister, rules) is None
            }

            found = fitting.elsewhere(pod, lister.nodes(), lister)

            assert (found.name in fits) if found else not fits


@pytest.mark.parametrize("rules", RULES, ids=("all", "anti-affinity-as-upstream", "upstream"))
@given(found=_clusters, moves=st.lists(st.tuples(st.integers(0, 9), st.sampled_from(NODES))))
def test_memory_changes_no_answer_also_as_pods_go_and_are_promised_room(
    rules: FitRules,
    found: Cluster,
    moves: list[tuple[int, str]],
) -> None:
    lister = cluster(*_objects(found))
    fork, gone, promised = lister.fork()
    pods = sorted(lister.pods(), key=lambda pod: (pod.namespace, pod.name))
    fitting = Fitting(rules)
    _finds_what_a_search_finds(fitting, lister, rules)
    for number, (place, node) in enumerate(moves):
        pod = pods[place % len(pods)]
        if number % 2:
            promised.promise(pod, node)
        else:
            gone.add(pod)
        _finds_what_a_search_finds(fitting, fork, rules)
    _finds_what_a_search_finds(fitting, lister, rules)
