"""RemovePodsViolatingNodeAffinity."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from structlog.testing import capture_logs

from reactive_descheduler.api.changes import Action, On
from reactive_descheduler.api.eviction import Candidate, Stop, Verdict
from reactive_descheduler.api.scheduling.fit import shape_misfit
from reactive_descheduler.config.corrections import ALL, NONE, Correction, Corrections
from reactive_descheduler.strategies.remove_pods_violating_node_affinity import (
    PREFERRED,
    REQUIRED,
    NodeAffinityArguments,
)
from tests.builders import Manifest, cluster, make_node, make_pod, taint
from tests.unit.strategies.driving import (
    build,
    changed,
    evaluate,
    hits,
    run,
    sweep,
    view_of,
    wakes_on,
)

NAME = "RemovePodsViolatingNodeAffinity"
REQUIRE = {"nodeAffinityType": [REQUIRED]}
PREFER = {"nodeAffinityType": [PREFERRED]}
UID = "uid-default-p"


def node(name: str, zone: str = "", **more: object) -> Manifest:
    return make_node(name, labels={"zone": zone} if zone else {}, **more)  # type: ignore[arg-type]


def terms(key: str, *values: str) -> Manifest:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": [*values]}]}


def requires(*zones: str) -> Manifest:
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [terms("zone", *zones)]
        }
    }


def prefers(**weights: int) -> Manifest:
    return {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": weight, "preference": terms("zone", zone)}
            for zone, weight in weights.items()
        ]
    }


def pod(affinity: Manifest | None = None, name: str = "p", **more: object) -> Manifest:
    full = {"node": "n1", "affinity": {"nodeAffinity": affinity} if affinity else {}, **more}
    return make_pod(name, **full)  # type: ignore[arg-type]


WANTS_B = pod(requires("b"))
IN_A, IN_B = node("n1", "a"), node("n2", "b")


@pytest.mark.parametrize(
    ("wanting", "nodes", "expected"),
    [
        pytest.param(WANTS_B, [IN_A, IN_B], ["p"], id="refused-and-another-fits"),
        pytest.param(pod(requires("a")), [IN_A, IN_B], [], id="accepted"),
        pytest.param(WANTS_B, [IN_A, node("n2", "c")], [], id="no-other-matches"),
        pytest.param(WANTS_B, [IN_A, node("n2", "b", unschedulable=True)], [], id="cordoned"),
        pytest.param(WANTS_B, [IN_A, node("n2", "b", taints=[taint()])], [], id="tainted"),
        pytest.param(WANTS_B, [IN_A, node("n2", "b", allocatable={"pods": "0"})], [], id="no-slot"),
        pytest.param(
            WANTS_B,
            [IN_A, node("n2", "b", allocatable={"pods": "0"}), node("n3", "b")],
            ["p"],
            id="one-of-two-fits",
        ),
        pytest.param(
            WANTS_B,
            [IN_A, node("n2", "b", ready=False), node("n3", "c")],
            [],
            id="the-matching-node-is-not-ready",
        ),
        pytest.param(pod(node_selector={"zone": "b"}), [IN_A, IN_B], [], id="only-a-selector"),
        pytest.param(
            pod({**requires("a", "b")}, node_selector={"zone": "b"}),
            [IN_A, IN_B],
            ["p"],
            id="selector-beside-an-affinity",
        ),
        pytest.param(pod(requires(), name="p"), [IN_A, IN_B], [], id="malformed-fits-nowhere"),
        pytest.param(
            pod(requires("b"), deleted="2026-01-01T00:30:00Z"), [IN_A, IN_B], [], id="going"
        ),
        pytest.param(pod(requires("b"), phase="Failed"), [IN_A, IN_B], [], id="finished"),
    ],
)
def test_required(wanting: Manifest, nodes: list[Manifest], expected: list[str]) -> None:
    assert run(NAME, REQUIRE, *nodes, wanting).names == expected


@pytest.mark.parametrize(
    ("wanting", "nodes", "expected"),
    [
        pytest.param(pod(prefers(b=1)), [IN_A, IN_B], ["p"], id="better-elsewhere"),
        pytest.param(pod(prefers(a=2, b=1)), [IN_A, IN_B], [], id="best-already"),
        pytest.param(pod(prefers(a=1, b=1)), [IN_A, IN_B], [], id="as-good"),
        pytest.param(pod(prefers(c=1)), [IN_A, IN_B], [], id="nowhere"),
        pytest.param(
            pod(prefers(b=1)),
            [node("n1", "a", taints=[taint()]), node("n2", "b", allocatable={"pods": "0"})],
            [],
            id="fits-nowhere",
        ),
        pytest.param(
            pod(prefers(b=1)),
            [IN_A, node("n2", "b", ready=False), node("n3", "c")],
            [],
            id="better-is-not-ready",
        ),
    ],
)
def test_preferred(wanting: Manifest, nodes: list[Manifest], expected: list[str]) -> None:
    assert run(NAME, PREFER, *nodes, wanting).names == expected


@pytest.mark.parametrize(
    ("arguments", "corrections"),
    [pytest.param(REQUIRE, ALL, id="required"), pytest.param(PREFER, NONE, id="preferred")],
)
def test_node_fit_asks_for_another_node(arguments: Manifest, corrections: Corrections) -> None:
    both = pod({**requires("b"), **prefers(b=1)})
    cordoned = node("n2", "b", unschedulable=True)
    objects = (IN_A, cordoned, both)

    said = run(NAME, arguments, *objects, evictor={"nodeFit": True}, corrections=corrections)

    assert said.names == []
    assert said.refused == {"p": "nodeFit"}


FULL_B = node("n2", "b", allocatable={"pods": "0"})
NO_ROOM_ON_BETTER = [
    pytest.param([node("n2", "b", unschedulable=True)], id="cordoned"),
    pytest.param([node("n2", "b", taints=[taint()])], id="tainted"),
    pytest.param([FULL_B], id="full"),
    pytest.param([FULL_B, node("n3", "c")], id="another-as-good-as-its-own-has-room"),
]


@pytest.mark.parametrize("others", NO_ROOM_ON_BETTER)
@pytest.mark.parametrize(
    ("evictor", "corrections", "expected"),
    [
        pytest.param({}, ALL, [], id="corrected"),
        pytest.param({"nodeFit": True}, ALL, [], id="with-node-fit"),
        pytest.param({}, NONE, ["p"], id="as-upstream"),
        pytest.param({"nodeFit": False}, ALL, ["p"], id="node-fit-written-as-false"),
        pytest.param(
            {"nodeFit": False}, ALL - {Correction.NODE_FIT_FALSE}, [], id="without-that-correction"
        ),
    ],
)
def test_preferred_node_has_to_take_it(
    others: list[Manifest], evictor: Manifest, corrections: Corrections, expected: list[str]
) -> None:
    objects = (IN_A, *others, pod(prefers(b=1)))

    said = run(NAME, PREFER, *objects, evictor=evictor, corrections=corrections)

    assert said.names == expected
    if not expected:
        assert [each.reason for each in said.rejections] == [
            "it prefers n2 to n1, but fits no node that it prefers"
        ]


def test_heaviest_node_that_would_take_it_is_named() -> None:
    wanting = pod(prefers(b=5, c=3))

    said = run(NAME, PREFER, IN_A, FULL_B, node("n3", "c"), node("n4", "c"), wanting)

    assert [each.reason for each in said.candidates] == [
        "it prefers n3 (weight 3) to n1 (weight 0)"
    ]


@pytest.mark.parametrize(
    ("others", "old", "new"),
    [
        pytest.param([FULL_B], FULL_B, IN_B, id="it-got-room"),
        pytest.param([FULL_B], pod(name="q", node="n2"), None, id="a-pod-left-it"),
        pytest.param([FULL_B], FULL_B, None, id="it-went"),
        pytest.param([FULL_B, node("n3", "c")], FULL_B, IN_B, id="a-better-one-got-room"),
        pytest.param([FULL_B, node("n3", "c")], node("n3", "c"), None, id="the-taker-went"),
        pytest.param(
            [FULL_B, node("n3", "c")], None, pod(name="q", node="n3"), id="the-taker-filled"
        ),
    ],
)
def test_preferring_pod_is_looked_at_again_when_room_moves(
    others: list[Manifest], old: Manifest | None, new: Manifest | None
) -> None:
    lister = cluster(IN_A, *others, pod(prefers(b=5, c=3)))

    assert wakes_on(evaluate(build(NAME, PREFER), view_of(lister), UID), changed(old, new))


def test_pod_waits_only_for_nodes_that_it_prefers() -> None:
    wanting = pod({**requires("a", "b"), **prefers(b=1)}, requests={"cpu": "1"})

    said = run(NAME, PREFER, IN_A, FULL_B, wanting)

    shapes = {wake.shape for wake in said.rejections[0].wakes if isinstance(wake, On)} - {None}
    lister = cluster(IN_A, IN_B, node("n3", "c"), node("n4", "b", allocatable={"pods": "9"}))
    fitting = [
        each.name
        for each in lister.nodes()
        for shape in shapes
        if shape is not None and shape_misfit(shape, each, lister) is None
    ]
    assert fitting == ["n2"]


@pytest.mark.parametrize(
    ("evictor", "corrections", "expected"),
    [
        pytest.param({"nodeFit": False}, ALL, ["p"], id="written"),
        pytest.param({}, ALL, [], id="not-written"),
        pytest.param({"nodeFit": False}, NONE, [], id="as-upstream"),
        pytest.param({"nodeFit": True}, ALL, [], id="asked-for"),
    ],
)
def test_node_fit_written_as_false_looks_at_no_other_node(
    evictor: Manifest, corrections: Corrections, expected: list[str]
) -> None:
    said = run(
        NAME, REQUIRE, IN_A, node("n2", "c"), WANTS_B, evictor=evictor, corrections=corrections
    )

    assert said.names == expected


def test_unknown_type_is_passed_over_and_told() -> None:
    types = {"nodeAffinityType": ["requiredSometimes", REQUIRED]}

    with capture_logs() as logs:
        assert run(NAME, types, IN_A, IN_B, WANTS_B).names == ["p"]

    assert [(log["event"], log["type"]) for log in logs] == [
        ("unknown node affinity type", "requiredSometimes")
    ]


def test_each_type_is_a_pass_of_its_own() -> None:
    lister = cluster(
        IN_A,
        IN_B,
        pod(prefers(b=1), "p1"),
        pod(requires("b"), "p2"),
        pod({**requires("b"), **prefers(b=1)}, "p3"),
    )

    def offered(stop: Stop, *types: str) -> list[str]:
        def answer(_candidate: Candidate) -> Verdict:
            return Verdict(taken=False, stop=stop)

        strategy = build(NAME, {"nodeAffinityType": [*types]})
        return sweep(strategy, view_of(lister), answer).names

    assert offered(Stop.NO, REQUIRED, PREFERRED) == ["p2", "p3", "p1", "p3"]
    assert offered(Stop.NO, PREFERRED, REQUIRED) == ["p1", "p3", "p2", "p3"]
    assert offered(Stop.ALL, REQUIRED, PREFERRED) == ["p2", "p1"]


def test_key_offers_its_pod_once() -> None:
    both = pod({**requires("b"), **prefers(b=1)})
    strategy = build(NAME, {"nodeAffinityType": [PREFERRED, REQUIRED]})

    said = evaluate(strategy, view_of(cluster(IN_A, IN_B, both)), UID)

    assert [candidate.cause.kind for candidate in said.candidates] == ["preferred-affinity"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "nodeAffinityType"),
        ({"nodeAffinityType": []}, "nodeAffinityType"),
        ({"nodeAffinityType": REQUIRED}, "nodeAffinityType"),
    ],
)
def test_wrong_arguments_are_refused(arguments: Manifest, named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        NodeAffinityArguments.read(arguments)


def test_reasons_tell_the_values() -> None:
    required = run(NAME, REQUIRE, IN_A, IN_B, WANTS_B).candidates[0]
    preferred = run(NAME, PREFER, IN_A, IN_B, pod(prefers(a=1, b=5))).candidates[0]

    assert required.reason == "its selector or required affinity refuses node n1"
    assert preferred.reason == "it prefers n2 (weight 5) to n1 (weight 1)"


@pytest.mark.parametrize(
    ("arguments", "old", "new", "expected"),
    [
        pytest.param(REQUIRE, node("n1", "b"), IN_A, {"p"}, id="own-label-gone"),
        pytest.param(REQUIRE, node("n2"), IN_B, set(), id="another-node-relabelled"),
        pytest.param(REQUIRE, None, node("n3", "b"), set(), id="another-node-added"),
        pytest.param(REQUIRE, None, pod(requires("b")), {"p"}, id="pod-seen-bound"),
        pytest.param(PREFER, node("n2"), IN_B, {"q"}, id="another-node-became-better"),
        pytest.param(PREFER, None, node("n3", "b"), {"q"}, id="a-better-node-came"),
        pytest.param(PREFER, node("n3", "b", ready=False), node("n3", "b"), {"q"}, id="is-ready"),
        pytest.param(PREFER, None, node("n3", "c"), set(), id="no-better-node-came"),
        pytest.param(PREFER, IN_B, node("n2"), set(), id="a-better-node-went"),
        pytest.param(PREFER, node("n2"), node("n2", taints=[taint()]), set(), id="taint"),
    ],
)
def test_changes_that_can_make_a_violation_are_subscribed(
    arguments: Manifest, old: Manifest | None, new: Manifest, expected: set[str]
) -> None:
    preferring = pod(prefers(b=1), "q", node="n0")
    store = {"n0": node("n0"), "n1": IN_A, "n2": IN_B, "p": WANTS_B, "q": preferring}
    metadata = new["metadata"]
    assert isinstance(metadata, dict)
    store[str(metadata["name"])] = new

    found = hits(build(NAME, arguments), changed(old, new), cluster(*store.values()))

    assert found == {f"uid-default-{name}" for name in expected}


def test_pod_that_fits_nowhere_waits_for_room_for_its_shape() -> None:
    full = node("n2", "b", allocatable={"pods": "0"})

    said = run(NAME, REQUIRE, IN_A, full, WANTS_B)

    assert said.refused == {"p": NAME}
    shaped = [
        wake for wake in said.rejections[0].wakes if isinstance(wake, On) and wake.shape is not None
    ]
    assert Action.NODE_ALLOCATABLE | Action.NODE_ADDED in shaped[0].action
    assert Action.POD_GONE | Action.POD_RESOURCES in shaped[1].action


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(IN_A, node("n1", "b"), id="own-node-matches-again"),
        pytest.param(IN_B, node("n2", "b", taints=[taint()]), id="the-only-place-is-tainted"),
        pytest.param(IN_B, None, id="the-only-place-went"),
        pytest.param(None, pod(name="q", node="n2"), id="a-pod-took-the-place"),
        pytest.param(WANTS_B, None, id="pod-deleted"),
    ],
)
def test_candidate_is_looked_at_again_when_it_may_have_ended(
    old: Manifest | None, new: Manifest | None
) -> None:
    said = evaluate(build(NAME, REQUIRE), view_of(cluster(IN_A, IN_B, WANTS_B)), UID)

    assert said.names == ["p"]
    assert wakes_on(said, changed(old, new))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(IN_A, node("n1", "c"), True, id="its-label-moved"),
        pytest.param(IN_A, node("n1", "b"), True, id="matches-again"),
        pytest.param(
            IN_A, make_node("n1", labels={"zone": "a", "x": "y"}), False, id="another-label"
        ),
        pytest.param(IN_A, node("n1", "a", ready=False), True, id="unready"),
        pytest.param(IN_A, None, True, id="node-gone"),
        pytest.param(IN_B, node("n2", "c"), True, id="the-better-node-is-no-better"),
        pytest.param(node("n3", "a"), None, False, id="a-third-node"),
    ],
)
def test_cause_breaks_when_a_label_that_it_reads_changes(
    old: Manifest, new: Manifest | None, expected: bool
) -> None:
    strategy = build(NAME, PREFER)
    said = evaluate(strategy, view_of(cluster(IN_A, IN_B, pod(prefers(b=1)))), UID)

    assert strategy.breaks(said.candidates[0].cause, changed(old, new)) is expected
