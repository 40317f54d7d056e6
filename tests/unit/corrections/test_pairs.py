"""Corrections of which two touch one verdict: whom a pass evicts with neither, either and both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from reactive_descheduler.app.snapshot import Manifest
from reactive_descheduler.config.corrections import ALL, Correction
from tests.builders import (
    make_budget,
    make_claim,
    make_namespace,
    make_node,
    make_pod,
    make_volume,
    owner,
    taint,
)
from tests.unit.corrections.one_pass import (
    AFFINITY,
    ANTI_AFFINITY,
    DUPLICATES,
    EVICT,
    HARD_SPREAD,
    LISTENING,
    LOW,
    OTHER,
    OVER_ZONES,
    PLACE,
    PREFERRED_B,
    SPREAD,
    TAINTED,
    TAINTS,
    ZONED,
    ZONES,
    asked,
    kept_away,
    kept_near,
    policy,
)

TAINTED_TOO = make_node("n3", taints=[taint("gone")])
NODE_FIT = policy({TAINTS: {}}, evictor={"nodeFit": True})
NO_NODE_FIT: dict[str, object] = {"nodeFit": False}
PREFERRED: dict[str, object] = {
    "nodeAffinityType": ["preferredDuringSchedulingIgnoredDuringExecution"]
}
CPU: dict[str, object] = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}
MEMORY: dict[str, object] = {"thresholds": {"memory": 30}, "targetThresholds": {"memory": 60}}
PROTECTED = 2_000_000_000
CLAIMED = taint("ToBeDeletedByClusterAutoscaler")


class Pair(NamedTuple):
    first: Correction
    second: Correction
    policy: dict[str, object]
    objects: Sequence[Manifest]
    neither: Sequence[str]
    first_alone: Sequence[str]
    second_alone: Sequence[str]
    both: Sequence[str]


def replicas(
    zone: str, number: int, *, priority: int | None = None, min_domains: int = 1
) -> list[Manifest]:
    """Return Pods on the node of a zone."""
    spread = OVER_ZONES | {"minDomains": min_domains}
    return [
        make_pod(f"{zone}-{at}", node=f"{zone}1", spread=[spread], priority=priority)
        for at in range(number)
    ]


PAIRS = (
    Pair(
        Correction.NODE_FIT_FALSE,
        Correction.DUPLICATES_ROOM,
        policy({DUPLICATES: {}}, evictor=NO_NODE_FIT),
        [
            make_node("n1"),
            make_node("n2", allocatable={"cpu": "1", "memory": "8Gi", "pods": "110"}),
            *(make_pod(name, node="n1", requests={"cpu": "2"}) for name in "ab"),
        ],
        neither=["b"],
        first_alone=["b"],
        second_alone=[],
        both=["b"],
    ),
    Pair(
        Correction.NODE_FIT_FALSE,
        Correction.UTILIZATION_PLACEMENT,
        policy({LOW: CPU}, evictor=NO_NODE_FIT),
        [
            make_node("n1"),
            OTHER,
            make_pod("a", node="n1", requests={"cpu": "1800m"}, affinity=ZONED),
            make_pod("b", node="n1", requests={"cpu": "1800m"}, affinity=ZONED),
        ],
        neither=["a"],
        first_alone=["a"],
        second_alone=[],
        both=["a"],
    ),
    Pair(
        Correction.NODE_FIT_FALSE,
        Correction.PREFERRED_AFFINITY_FITS,
        policy({AFFINITY: PREFERRED}, evictor=NO_NODE_FIT),
        [
            make_node("n1"),
            make_node("n2", allocatable={"cpu": "4", "pods": "0"}),
            make_node("n3"),
            make_pod("a", node="n1", affinity=PREFERRED_B),
        ],
        neither=["a"],
        first_alone=["a"],
        second_alone=[],
        both=["a"],
    ),
    # Topology spread has a switch of its own, so what is written for the evictor is no matter.
    Pair(
        Correction.NODE_FIT_FALSE,
        Correction.SPREAD_FEWEST_MOVES,
        policy({SPREAD: {}}, evictor=NO_NODE_FIT),
        [
            ZONES[0],
            make_node("b1", labels={"zone": "b"}, allocatable={"cpu": "4", "pods": "0"}),
            *replicas("a", 3),
        ],
        neither=[],
        first_alone=[],
        second_alone=[],
        both=[],
    ),
    Pair(
        Correction.SPREAD_ALL_PODS,
        Correction.SPREAD_MIN_DOMAINS,
        policy({SPREAD: {"topologyBalanceNodeFit": False}}),
        [
            *ZONES[:2],
            *replicas("a", 3, min_domains=3),
            *replicas("b", 1, priority=PROTECTED, min_domains=3),
        ],
        neither=["a-0"],
        first_alone=["a-0"],
        second_alone=["a-0"],
        both=[],
    ),
    Pair(
        Correction.SPREAD_ALL_PODS,
        Correction.SPREAD_FEWEST_MOVES,
        policy({SPREAD: {}}),
        [*ZONES, *replicas("a", 3), *replicas("c", 1, priority=PROTECTED)],
        neither=["a-0", "a-1"],
        first_alone=["a-0"],
        second_alone=["a-0", "a-1"],
        both=["a-0"],
    ),
    Pair(
        Correction.SPREAD_MIN_DOMAINS,
        Correction.SPREAD_FEWEST_MOVES,
        policy({SPREAD: {}}),
        [*ZONES[:2], *replicas("a", 4, min_domains=3)],
        neither=["a-1", "a-0"],
        first_alone=["a-0"],
        second_alone=["a-0", "a-1"],
        both=["a-0"],
    ),
    Pair(
        Correction.DUPLICATES_COUNTING,
        Correction.DUPLICATES_ROOM,
        policy({DUPLICATES: {}}),
        [
            make_node("n1"),
            OTHER,
            make_node("n3", unschedulable=True),
            *(make_pod(name, node="n1") for name in "ab"),
            *(make_pod(name, node="n2", priority=PROTECTED) for name in "cd"),
        ],
        neither=["b"],
        first_alone=[],
        second_alone=["b"],
        both=[],
    ),
    Pair(
        Correction.ANTI_AFFINITY_SCOPE,
        Correction.ANTI_AFFINITY_FEWEST,
        policy({ANTI_AFFINITY: {}}),
        [
            make_node("n1"),
            OTHER,
            make_namespace("default"),
            make_namespace("loud", labels={"loud": "yes"}),
            *(
                make_pod(
                    name,
                    node="n1",
                    labels={"app": "spoke"},
                    affinity=kept_away("hub", namespaceSelector={"matchLabels": {"loud": "yes"}}),
                )
                for name in "ab"
            ),
            make_pod(
                "hub",
                namespace="loud",
                node="n1",
                labels={"app": "hub"},
                affinity=kept_away("spoke", namespaces=["default"]),
            ),
        ],
        neither=["hub"],
        first_alone=["a", "b"],
        second_alone=["hub"],
        both=["hub"],
    ),
    Pair(
        Correction.EVICT_ANNOTATION,
        Correction.PODS_WITHOUT_PDB,
        policy({TAINTS: {}}, evictor={"podProtections": {"extraEnabled": ["PodsWithoutPDB"]}}),
        [
            TAINTED,
            OTHER,
            make_budget("b"),
            make_pod("covered", node="n1"),
            make_pod("lifted", node="n1", labels={}, annotations={EVICT: "true"}),
            make_pod("not-lifted", node="n1", labels={}, annotations={EVICT: "false"}),
        ],
        neither=["lifted", "not-lifted"],
        first_alone=["lifted"],
        second_alone=["covered", "lifted", "not-lifted"],
        both=["covered", "lifted"],
    ),
    Pair(
        Correction.EVICT_ANNOTATION,
        Correction.CLAIMED_NODES,
        policy({TAINTS: {}}),
        [
            make_node("n1", taints=[CLAIMED]),
            OTHER,
            make_pod("a", node="n1", annotations={EVICT: "true"}),
        ],
        neither=["a"],
        first_alone=["a"],
        second_alone=["a"],
        both=[],
    ),
    Pair(
        Correction.CORDON_ALONE,
        Correction.CLAIMED_NODES,
        policy({TAINTS: {}}),
        [
            make_node(
                "n1",
                taints=[taint("node.kubernetes.io/unschedulable"), CLAIMED],
                unschedulable=True,
            ),
            make_node("n2", taints=[taint("node.kubernetes.io/unschedulable")], unschedulable=True),
            make_pod("claimed", node="n1"),
            make_pod("cordoned", node="n2"),
        ],
        neither=["claimed", "cordoned"],
        first_alone=["claimed"],
        second_alone=["cordoned"],
        both=[],
    ),
    Pair(
        Correction.UTILIZATION_PLACEMENT,
        Correction.UTILIZATION_TOLERATIONS,
        policy({LOW: CPU}),
        [
            make_node("n1"),
            make_node("n2", taints=[taint("spare", effect="PreferNoSchedule")]),
            make_pod("big", node="n1", requests={"cpu": "2400m"}),
            make_pod("small", node="n1", requests={"cpu": "600m"}),
        ],
        neither=[],
        first_alone=[],
        second_alone=["big"],
        both=["small"],
    ),
    Pair(
        Correction.UTILIZATION_PLACEMENT,
        Correction.UTILIZATION_RESOURCES,
        policy({LOW: MEMORY}),
        [
            make_node("n1"),
            OTHER,
            make_pod("big", node="n1", requests={"memory": "5Gi"}),
            make_pod("small", node="n1", requests={"memory": "1Gi"}),
            make_pod("busy", node="n2", requests={"cpu": "4"}),
        ],
        neither=[],
        first_alone=[],
        second_alone=["big"],
        both=["small"],
    ),
    Pair(
        Correction.PREFERRED_AFFINITY_FITS,
        Correction.NODE_FIT_HOST_PORTS,
        policy({AFFINITY: PREFERRED}),
        [
            make_node("n1"),
            OTHER,
            make_node("n3"),
            make_pod("a", node="n1", affinity=PREFERRED_B, spec=LISTENING),
            make_pod("b", node="n2", spec=LISTENING),
        ],
        neither=["a"],
        first_alone=["a"],
        second_alone=["a"],
        both=[],
    ),
    Pair(
        Correction.DUPLICATES_ROOM,
        Correction.NODE_FIT_HOST_PORTS,
        policy({DUPLICATES: {}}),
        [
            make_node("n1"),
            OTHER,
            *(make_pod(name, node="n1", spec=LISTENING) for name in "ab"),
            make_pod("other", node="n2", owners=[owner("other")], spec=LISTENING),
        ],
        neither=["b"],
        first_alone=["b"],
        second_alone=["b"],
        both=[],
    ),
    Pair(
        Correction.UTILIZATION_PLACEMENT,
        Correction.NODE_FIT_ANTI_AFFINITY,
        policy({LOW: CPU}),
        [
            make_node("n1"),
            OTHER,
            make_pod("a", node="n1", requests={"cpu": "1200m"}),
            make_pod("b", node="n1", labels={"app": "b"}, requests={"cpu": "1200m"}),
            make_pod("db", node="n2", labels={"app": "db"}, affinity=kept_away("web")),
        ],
        neither=["a"],
        first_alone=["a"],
        second_alone=["a"],
        both=["b"],
    ),
    Pair(
        Correction.BOOKING,
        Correction.NODE_FIT_ANTI_AFFINITY,
        NODE_FIT,
        [
            TAINTED,
            TAINTED_TOO,
            OTHER,
            *(make_pod(f"p{n}", node=f"n{n}", affinity=kept_away("web")) for n in (1, 3)),
        ],
        neither=["p1", "p3"],
        first_alone=["p1", "p3"],
        second_alone=["p1", "p3"],
        both=["p1"],
    ),
    Pair(
        Correction.BOOKING,
        Correction.NODE_FIT_SPREAD,
        NODE_FIT,
        [
            TAINTED,
            TAINTED_TOO,
            OTHER,
            *(make_pod(f"p{n}", node=f"n{n}", spread=[HARD_SPREAD]) for n in (1, 3)),
        ],
        neither=["p1", "p3"],
        first_alone=["p1", "p3"],
        second_alone=["p1", "p3"],
        both=["p1"],
    ),
    Pair(
        Correction.BOOKING,
        Correction.NODE_FIT_HOST_PORTS,
        NODE_FIT,
        [
            TAINTED,
            TAINTED_TOO,
            OTHER,
            *(make_pod(f"p{n}", node=f"n{n}", spec=LISTENING) for n in (1, 3)),
        ],
        neither=["p1", "p3"],
        first_alone=["p1", "p3"],
        second_alone=["p1", "p3"],
        both=["p1"],
    ),
    Pair(
        Correction.BOOKING,
        Correction.NODE_FIT_VOLUMES,
        NODE_FIT,
        [
            TAINTED,
            make_node("n2", labels={PLACE: "a"}),
            make_node("n3", labels={PLACE: "b"}),
            *(
                make_pod(
                    name,
                    node="n1",
                    requests={"cpu": "3"},
                    volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}],
                )
                for name in "pq"
            ),
            *(make_claim(name, volume=name) for name in "pq"),
            *(make_volume(name, labels={PLACE: "a"}) for name in "pq"),
        ],
        neither=["p", "q"],
        first_alone=["p", "q"],
        second_alone=["p", "q"],
        both=["p"],
    ),
    Pair(
        Correction.BOOKING,
        Correction.DUPLICATES_ROOM,
        policy({DUPLICATES: {}}),
        [
            make_node("n1"),
            OTHER,
            *(
                make_pod(f"{app}-{n}", node="n1", owners=[owner(app)], requests={"cpu": "900m"})
                for app in ("api", "web")
                for n in (1, 2)
            ),
            make_pod("full", node="n2", owners=[owner("db")], requests={"cpu": "3"}),
        ],
        neither=["api-2", "web-2"],
        first_alone=["api-2", "web-2"],
        second_alone=["api-2", "web-2"],
        both=["api-2"],
    ),
    Pair(
        Correction.BOOKING,
        Correction.UTILIZATION_PLACEMENT,
        policy({TAINTS: {}, LOW: CPU}),
        [
            TAINTED,
            OTHER,
            make_node("n3"),
            make_pod("from-tainted", node="n1", requests={"cpu": "1200m"}),
            *(make_pod(name, node="n3", requests={"cpu": "1800m"}) for name in "ab"),
        ],
        neither=["from-tainted", "a"],
        first_alone=["from-tainted", "a"],
        second_alone=["from-tainted", "a"],
        both=["from-tainted"],
    ),
    Pair(
        Correction.NODE_FIT_POD_AFFINITY,
        Correction.NODE_FIT_ANTI_AFFINITY,
        NODE_FIT,
        [
            TAINTED,
            OTHER,
            make_node("n3"),
            make_pod("a", node="n1", labels={"app": "web"}, affinity=kept_near("db")),
            make_pod("db", node="n2", labels={"app": "db"}),
            make_pod("alone", node="n2", affinity=kept_away("web")),
        ],
        neither=["a"],
        first_alone=["a"],
        second_alone=["a"],
        both=[],
    ),
    Pair(
        Correction.NODE_FIT_POD_AFFINITY,
        Correction.BOOKING,
        NODE_FIT,
        [
            TAINTED,
            make_node("n2", labels={"zone": "b"}),
            make_node("n3", labels={"zone": "b"}, taints=[taint("gone")]),
            make_pod("a", node="n1", affinity=kept_near("db", topologyKey="zone")),
            make_pod("db", node="n3", labels={"app": "db"}),
        ],
        neither=["a", "db"],
        first_alone=["a", "db"],
        second_alone=["a", "db"],
        both=["a"],
    ),
)
WHO_GOES_ONCE = frozenset({Correction.ONE_OFFER_PER_PASS})
"""Always in force here, so that who goes is gone, and not terminating."""


@pytest.mark.parametrize("pair", PAIRS, ids=[f"{each.first}-{each.second}" for each in PAIRS])
def test_with_neither_either_and_both(pair: Pair) -> None:
    for corrections, expected in (
        (frozenset[Correction](), pair.neither),
        (frozenset({pair.first}), pair.first_alone),
        (frozenset({pair.second}), pair.second_alone),
        (frozenset({pair.first, pair.second}), pair.both),
        (ALL, pair.both),
    ):
        going = asked(pair.policy, pair.objects, corrections | WHO_GOES_ONCE, granted=True)
        assert going == expected, sorted(corrections) if corrections != ALL else "all"
