"""Each correction, both ways: what upstream does on a small cluster, and what we do instead."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from reactive_descheduler.app.corrections_in_play import in_play
from reactive_descheduler.app.snapshot import Manifest, snapshot_of
from reactive_descheduler.config.corrections import ALL, NONE, Correction, Corrections
from reactive_descheduler.config.load import load_policy
from reactive_descheduler.strategies import PLUGINS
from tests.builders import (
    make_budget,
    make_claim,
    make_namespace,
    make_node,
    make_pod,
    make_volume,
    taint,
)
from tests.unit.corrections.one_pass import (
    AFFINITY,
    ANTI_AFFINITY,
    CLAIMING,
    CORDONED,
    DUPLICATES,
    EVICT,
    HARD_SPREAD,
    HIGH,
    LISTENING,
    LOW,
    NOW,
    OTHER,
    OVER_ZONES,
    PLACE,
    PREFERRED_B,
    REFUSED,
    RESTARTS,
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

TESTED_ELSEWHERE = {Correction.EXIT_CODES}
"""What is no matter of a pass: the exit code of the command, in `unit/cli` and `daemon`."""


class Case(NamedTuple):
    id: str
    correction: Correction
    policy: dict[str, object]
    objects: Sequence[Manifest]
    upstream: Sequence[str] | str
    """The Pods that are asked for, in order; or that the policy is refused."""
    ours: Sequence[str] | str
    granted: bool = False
    """Whether the API server grants what is asked for; else it refuses every request."""


CASES = (
    Case(
        "unknown-key-beside-args",
        Correction.STRICT_DOCUMENTS,
        policy({TAINTS: {}}, maxNoOfPodsToEvictTOTAL=0),
        [TAINTED, OTHER, make_pod("a", node="n1")],
        upstream=["a"],
        ours=REFUSED,
    ),
    Case(
        "enabled-without-configuration",
        Correction.MISSING_PLUGIN_CONFIG,
        policy({TAINTS: None}),
        [TAINTED, OTHER, make_pod("a", node="n1")],
        upstream=REFUSED,
        ours=["a"],
    ),
    Case(
        "evict-annotation-false-lifts-nothing",
        Correction.EVICT_ANNOTATION,
        policy({TAINTS: {}}),
        [TAINTED, OTHER, make_pod("bare", node="n1", owners=[], annotations={EVICT: "false"})],
        upstream=["bare"],
        ours=[],
    ),
    Case(
        "evict-annotation-true-lifts-a-protection",
        Correction.EVICT_ANNOTATION,
        policy({TAINTS: {}}),
        [TAINTED, OTHER, make_pod("bare", node="n1", owners=[], annotations={EVICT: "true"})],
        upstream=["bare"],
        ours=["bare"],
    ),
    Case(
        "evict-annotation-true-lifts-no-fact",
        Correction.EVICT_ANNOTATION,
        policy({TAINTS: {}}),
        [
            TAINTED,
            OTHER,
            make_pod(
                "mirror",
                node="n1",
                annotations={EVICT: "true", "kubernetes.io/config.mirror": "x"},
            ),
        ],
        upstream=["mirror"],
        ours=[],
    ),
    Case(
        "asked-for-once-in-a-pass",
        Correction.ONE_OFFER_PER_PASS,
        policy({TAINTS: {}, RESTARTS: {"podRestartThreshold": 1}}),
        [TAINTED, OTHER, make_pod("held-by-budget", node="n1", restarts=5)],
        upstream=["held-by-budget", "held-by-budget"],
        ours=["held-by-budget"],
    ),
    Case(
        "cordon-alone-is-no-drain",
        Correction.CORDON_ALONE,
        policy({TAINTS: {}}),
        [CORDONED, OTHER, make_pod("a", node="n1")],
        upstream=["a"],
        ours=[],
    ),
    Case(
        "node-fit-false-looks-at-no-other-node",
        Correction.NODE_FIT_FALSE,
        policy(
            {AFFINITY: {"nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]}},
            evictor={"nodeFit": False},
        ),
        [make_node("n1"), OTHER, make_pod("a", node="n1", affinity=ZONED)],
        upstream=[],
        ours=["a"],
    ),
    Case(
        "node-fit-not-written-looks-as-upstream",
        Correction.NODE_FIT_FALSE,
        policy(
            {AFFINITY: {"nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]}}
        ),
        [make_node("n1"), OTHER, make_pod("a", node="n1", affinity=ZONED)],
        upstream=[],
        ours=[],
    ),
    Case(
        "pods-with-a-budget-are-not-protected",
        Correction.PODS_WITHOUT_PDB,
        policy({TAINTS: {}}, evictor={"podProtections": {"extraEnabled": ["PodsWithoutPDB"]}}),
        [
            TAINTED,
            OTHER,
            make_pod("covered", node="n1"),
            make_pod("uncovered", node="n1", labels={"app": "other"}),
            make_budget("b"),
        ],
        upstream=[],
        ours=["covered"],
    ),
    Case(
        "protected-duplicates-count",
        Correction.DUPLICATES_COUNTING,
        policy({DUPLICATES: {}}),
        [
            make_node("n1"),
            OTHER,
            *(make_pod(name, node="n1") for name in "ab"),
            *(make_pod(name, node="n2", priority=2_000_000_000) for name in "cd"),
        ],
        upstream=["b"],
        ours=[],
    ),
    Case(
        "others-go-for-protected-duplicates",
        Correction.DUPLICATES_COUNTING,
        policy({DUPLICATES: {}}),
        [
            make_node("n1"),
            OTHER,
            make_pod("a", node="n1"),
            *(make_pod(name, node="n1", priority=2_000_000_000) for name in "bcd"),
        ],
        upstream=[],
        ours=["a"],
    ),
    Case(
        "duplicates-stay-where-the-emptier-node-is-full",
        Correction.DUPLICATES_ROOM,
        policy({DUPLICATES: {}}),
        [
            make_node("n1"),
            make_node("n2", allocatable={"cpu": "1", "memory": "8Gi", "pods": "110"}),
            *(make_pod(name, node="n1", requests={"cpu": "2"}) for name in "ab"),
        ],
        upstream=["b"],
        ours=[],
    ),
    Case(
        "duplicates-are-not-spread-over-cordoned-nodes",
        Correction.DUPLICATES_ROOM,
        policy({DUPLICATES: {}}),
        [
            make_node("n1"),
            OTHER,
            make_node("n3", unschedulable=True),
            *(make_pod(name, node="n1") for name in "abc"),
        ],
        upstream=["b", "c"],
        ours=["c"],
    ),
    Case(
        "a-soft-taint-keeps-nobody-away",
        Correction.UTILIZATION_TOLERATIONS,
        policy({LOW: {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}}),
        [
            make_node("n1"),
            make_node("n2", taints=[taint("spare", effect="PreferNoSchedule")]),
            *(make_pod(name, node="n1", requests={"cpu": "1200m"}) for name in "ab"),
        ],
        upstream=[],
        ours=["a", "b"],
    ),
    Case(
        "one-toleration-for-two-taints",
        Correction.UTILIZATION_TOLERATIONS,
        policy({HIGH: {"thresholds": {"cpu": 20}}}),
        [
            make_node("n1"),
            make_node("n2", taints=[taint("a"), taint("b")]),
            make_pod("x", node="n1", tolerations=[{"operator": "Exists"}]),
            make_pod("y", node="n2", requests={"cpu": "1"}),
        ],
        upstream=[],
        ours=["x"],
    ),
    Case(
        "too-big-for-any-node-under-the-target",
        Correction.UTILIZATION_PLACEMENT,
        policy({LOW: {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}}),
        [make_node("n1"), OTHER, make_pod("big", node="n1", requests={"cpu": "2400m"})],
        upstream=["big"],
        ours=[],
    ),
    Case(
        "what-is-left-is-left-in-pieces",
        Correction.UTILIZATION_PLACEMENT,
        policy({HIGH: {"thresholds": {"cpu": 20}}}),
        [
            make_node("n1"),
            OTHER,
            make_node("n3"),
            make_pod("a", node="n1", requests={"cpu": "600m"}),
            *(
                make_pod(f"on-{name}", node=name, requests={"cpu": "3500m"})
                for name in ("n2", "n3")
            ),
        ],
        upstream=["a"],
        ours=[],
    ),
    Case(
        "cpu-has-no-threshold-and-is-used-up",
        Correction.UTILIZATION_RESOURCES,
        policy({LOW: {"thresholds": {"memory": 30}, "targetThresholds": {"memory": 60}}}),
        [
            make_node("n1"),
            OTHER,
            *(make_pod(name, node="n1", requests={"memory": "3Gi"}) for name in "ab"),
            make_pod("c", node="n2", requests={"cpu": "4"}),
        ],
        upstream=[],
        ours=["a", "b"],
    ),
    Case(
        "anti-affinity-to-namespaces-by-their-labels",
        Correction.ANTI_AFFINITY_SCOPE,
        policy({ANTI_AFFINITY: {}}),
        [
            make_node("n1"),
            OTHER,
            make_namespace("default"),
            make_namespace("loud", labels={"loud": "yes"}),
            make_pod(
                "a",
                node="n1",
                affinity=kept_away("web", namespaceSelector={"matchLabels": {"loud": "yes"}}),
            ),
            make_pod("b", namespace="loud", node="n1"),
        ],
        upstream=[],
        ours=["a"],
    ),
    Case(
        "pods-of-one-name-in-two-namespaces",
        Correction.ANTI_AFFINITY_SCOPE,
        policy({ANTI_AFFINITY: {}}),
        [
            make_node("n1"),
            OTHER,
            make_pod("db-0", node="n1", affinity=kept_away("web", namespaces=["other"])),
            make_pod("db-0", namespace="other", node="n1"),
        ],
        upstream=[],
        ours=["db-0"],
    ),
    Case(
        "whose-leaving-ends-most-conflicts-goes-first",
        Correction.ANTI_AFFINITY_FEWEST,
        policy({ANTI_AFFINITY: {}}),
        [
            make_node("n1"),
            OTHER,
            make_pod("a", node="n1", labels={"app": "spoke"}, affinity=kept_away("hub")),
            make_pod("b", node="n1", labels={"app": "spoke"}, affinity=kept_away("hub")),
            make_pod("z", node="n1", labels={"app": "hub"}, affinity=kept_away("spoke")),
        ],
        # All are asked for, since each request is refused here.
        upstream=["a", "b", "z"],
        ours=["z", "a", "b"],
    ),
    Case(
        "pods-that-terminate-are-no-longer-in-the-way",
        Correction.ANTI_AFFINITY_FEWEST,
        policy({ANTI_AFFINITY: {}}),
        [
            make_node("n1"),
            OTHER,
            make_pod("a", node="n1", affinity=kept_away("web")),
            make_pod("b", node="n1", deleted=NOW),
        ],
        upstream=["a"],
        ours=[],
    ),
    Case(
        "protected-pods-count-for-spread",
        Correction.SPREAD_ALL_PODS,
        policy({SPREAD: {"topologyBalanceNodeFit": False}}),
        [
            *ZONES[:2],
            *(make_pod(f"free-{at}", node="a1", spread=[OVER_ZONES]) for at in range(2)),
            *(
                make_pod(f"safe-{at}", node="b1", spread=[OVER_ZONES], priority=2_000_000_000)
                for at in range(2)
            ),
        ],
        upstream=["free-0"],
        ours=[],
    ),
    Case(
        "too-few-domains-for-spread",
        Correction.SPREAD_MIN_DOMAINS,
        policy({SPREAD: {"topologyBalanceNodeFit": False}}),
        [
            *ZONES[:2],
            *(
                make_pod(f"a-{at}", node="a1", spread=[OVER_ZONES | {"minDomains": 3}])
                for at in "012"
            ),
            make_pod("b", node="b1", spread=[OVER_ZONES | {"minDomains": 3}]),
        ],
        upstream=["a-0"],
        ours=[],
    ),
    Case(
        "no-more-moves-than-it-takes",
        Correction.SPREAD_FEWEST_MOVES,
        policy({SPREAD: {}}),
        [*ZONES, *(make_pod(f"a-{at}", node="a1", spread=[OVER_ZONES]) for at in "0123")],
        upstream=["a-1", "a-0", "a-2"],
        ours=["a-0", "a-1"],
    ),
    Case(
        "who-fits-nowhere-counts-for-nobody",
        Correction.SPREAD_FEWEST_MOVES,
        policy({SPREAD: {}}),
        [
            *ZONES[:2],
            make_pod("big", node="a1", spread=[OVER_ZONES], requests={"cpu": "9"}),
            make_pod("small", node="a1", spread=[OVER_ZONES]),
            make_pod("huge", node="a1", spread=[OVER_ZONES], requests={"cpu": "9"}),
            make_pod("vast", node="a1", spread=[OVER_ZONES], requests={"cpu": "9"}),
        ],
        upstream=["small"],
        ours=["small"],
    ),
    Case(
        "preferred-node-is-full",
        Correction.PREFERRED_AFFINITY_FITS,
        policy(
            {AFFINITY: {"nodeAffinityType": ["preferredDuringSchedulingIgnoredDuringExecution"]}}
        ),
        [
            make_node("n1"),
            make_node("n2", allocatable={"cpu": "4", "pods": "0"}),
            make_pod("a", node="n1", affinity=PREFERRED_B),
        ],
        upstream=["a"],
        ours=[],
    ),
    Case(
        "keeps-away-who-is-there",
        Correction.NODE_FIT_ANTI_AFFINITY,
        policy({TAINTS: {}}, evictor={"nodeFit": True}),
        [
            TAINTED,
            OTHER,
            make_pod("a", node="n1"),
            make_pod("db", node="n2", labels={"app": "db"}, affinity=kept_away("web")),
        ],
        upstream=["a"],
        ours=[],
    ),
    Case(
        "kept-away-by-who-is-elsewhere-in-the-zone",
        Correction.NODE_FIT_ANTI_AFFINITY,
        policy({TAINTS: {}}, evictor={"nodeFit": True}),
        [
            TAINTED,
            make_node("n2", labels={"zone": "b"}, unschedulable=True),
            make_node("n3", labels={"zone": "b"}),
            make_pod("a", node="n1", affinity=kept_away("db", topologyKey="zone")),
            make_pod("db", node="n2", labels={"app": "db"}),
        ],
        upstream=["a"],
        ours=[],
    ),
    Case(
        "has-to-be-near-who-is-not-there",
        Correction.NODE_FIT_POD_AFFINITY,
        policy({TAINTS: {}}, evictor={"nodeFit": True}),
        [
            TAINTED,
            make_node("n2", labels={"zone": "b"}),
            make_node("n3", labels={"zone": "c"}, unschedulable=True),
            make_pod("a", node="n1", affinity=kept_near("db", topologyKey="zone")),
            make_pod("db", node="n3", labels={"app": "db"}),
        ],
        upstream=["a"],
        ours=[],
    ),
    Case(
        "is-near-who-is-elsewhere-in-the-zone",
        Correction.NODE_FIT_POD_AFFINITY,
        policy({TAINTS: {}}, evictor={"nodeFit": True}),
        [
            TAINTED,
            make_node("n2", labels={"zone": "b"}),
            make_node("n3", labels={"zone": "b"}, unschedulable=True),
            make_pod("a", node="n1", affinity=kept_near("db", topologyKey="zone")),
            make_pod("db", node="n3", labels={"app": "db"}),
        ],
        upstream=["a"],
        ours=["a"],
    ),
    Case(
        "would-break-its-own-hard-spread",
        Correction.NODE_FIT_SPREAD,
        policy({TAINTS: {}}, evictor={"nodeFit": True}),
        [
            TAINTED,
            OTHER,
            make_pod("a", node="n1", spread=[HARD_SPREAD]),
            make_pod("b", node="n2"),
        ],
        upstream=["a"],
        ours=[],
    ),
    Case(
        "volume-is-in-another-zone",
        Correction.NODE_FIT_VOLUMES,
        policy({TAINTS: {}}, evictor={"nodeFit": True}),
        [
            TAINTED,
            make_node("n2", labels={PLACE: "b"}),
            make_pod("a", node="n1", volumes=CLAIMING),
            make_claim(volume="disk"),
            make_volume("disk", labels={PLACE: "a"}),
        ],
        upstream=["a"],
        ours=[],
    ),
    Case(
        "claim-that-is-not-bound-restricts-nothing",
        Correction.NODE_FIT_VOLUMES,
        policy({TAINTS: {}}, evictor={"nodeFit": True}),
        [TAINTED, OTHER, make_pod("a", node="n1", volumes=CLAIMING), make_claim()],
        upstream=["a"],
        ours=["a"],
    ),
    Case(
        "host-port-is-taken",
        Correction.NODE_FIT_HOST_PORTS,
        policy({TAINTS: {}}, evictor={"nodeFit": True}),
        [
            TAINTED,
            OTHER,
            make_pod("a", node="n1", spec=LISTENING),
            make_pod("b", node="n2", spec=LISTENING),
        ],
        upstream=["a"],
        ours=[],
    ),
    Case(
        "room-for-one-of-two",
        Correction.BOOKING,
        policy({TAINTS: {}}, evictor={"nodeFit": True}),
        [TAINTED, OTHER, *(make_pod(name, node="n1", requests={"cpu": "3"}) for name in "ab")],
        upstream=["a", "b"],
        ours=["a"],
        granted=True,
    ),
    Case(
        "what-another-drainer-empties-is-left-to-it",
        Correction.CLAIMED_NODES,
        policy({TAINTS: {}}),
        [
            make_node("n1", taints=[taint("ToBeDeletedByClusterAutoscaler")]),
            OTHER,
            make_pod("a", node="n1"),
        ],
        upstream=["a"],
        ours=[],
    ),
    Case(
        "what-it-may-empty-later-is-not",
        Correction.CLAIMED_NODES,
        policy({TAINTS: {"includePreferNoSchedule": True}}),
        [
            make_node(
                "n1",
                taints=[taint("DeletionCandidateOfClusterAutoscaler", effect="PreferNoSchedule")],
            ),
            OTHER,
            make_pod("a", node="n1"),
        ],
        upstream=["a"],
        ours=["a"],
    ),
)


def who(case: Case, corrections: Corrections) -> list[str] | str:
    return asked(case.policy, case.objects, corrections, granted=case.granted)


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_without_the_correction_it_is_as_upstream(case: Case) -> None:
    assert who(case, ALL - {case.correction}) == case.upstream
    assert who(case, NONE) == case.upstream


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_with_the_correction_it_is_ours(case: Case) -> None:
    assert who(case, ALL) == case.ours
    assert who(case, frozenset({case.correction})) == case.ours


OF_A_PASS = [
    case
    for case in CASES
    if case.upstream != case.ours and REFUSED not in (case.upstream, case.ours)
]


@pytest.mark.parametrize("case", OF_A_PASS, ids=[case.id for case in OF_A_PASS])
def test_what_decides_is_taken_for_what_may_decide(case: Case) -> None:
    """`plan --corrections diff` tries no others."""
    loaded = load_policy(json.dumps(case.policy), source="p.yaml", plugins=PLUGINS)
    assert case.correction in in_play(loaded, snapshot_of(case.objects, source="objects"))


def test_every_correction_is_tested_and_documented() -> None:
    assert {case.correction for case in CASES} | TESTED_ELSEWHERE == set(Correction)
    page = Path(__file__).parents[3].joinpath("docs/corrections.md").read_text(encoding="utf-8")
    for correction in Correction:
        assert f"## `{correction}`" in page
