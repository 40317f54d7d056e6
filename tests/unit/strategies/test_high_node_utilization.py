"""HighNodeUtilization."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from reactive_descheduler.config.corrections import ALL, NONE, Correction, Corrections
from reactive_descheduler.strategies.node_utilization import HighNodeUtilizationArguments
from tests.builders import Manifest, make_node, make_pod, taint
from tests.unit.strategies.driving import run

NAME = "HighNodeUtilization"
CPU = {"thresholds": {"cpu": 20}}
GPU = "example.com/gpu"
ROOMY = {"cpu": "4", "memory": "8Gi", "pods": "110"}
WITH_FIT = {"nodeFit": True}


def pods(names: str, node: str = "n1", **more: object) -> list[Manifest]:
    """Return Pods named by letters; by default of 200m cpu."""
    requests = more.pop("requests", {"cpu": "200m"})
    return [make_pod(name, node=node, requests=requests, **more) for name in names]  # type: ignore[arg-type]


BUSY = make_pod("busy", node="n2", requests={"cpu": "2"}, priority=2_000_000_000)
NODES = [make_node("n1"), make_node("n2")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({}, "thresholds", id="nothing"),
        pytest.param({"thresholds": {}}, "at least one resource", id="empty"),
        pytest.param({"thresholds": {"cpu": 150}}, "thresholds.cpu", id="above-100"),
        pytest.param({**CPU, "targetThresholds": {"cpu": 50}}, "targetThresholds", id="targets"),
        pytest.param({**CPU, "evictionModes": ["All"]}, "'All'", id="unknown-mode"),
        pytest.param({**CPU, "evictableNamespaces": {"include": ["a"]}}, "include", id="include"),
    ],
)
def test_refuses_bad_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError) as refused:
        HighNodeUtilizationArguments.read(arguments)
    told = [f"{'.'.join(map(str, each['loc']))} {each['msg']}" for each in refused.value.errors()]
    assert any(message in each for each in told), told


BOTH = pytest.mark.parametrize("corrections", [ALL, NONE], ids=["all", "none"])


@BOTH
@pytest.mark.parametrize(
    ("arguments", "manifests", "expected"),
    [
        pytest.param(CPU, [*NODES, BUSY, *pods("ab")], "ab", id="empties-a-node"),
        pytest.param(CPU, [*NODES, BUSY, *pods("abcd")], "abcd", id="at-the-threshold"),
        pytest.param(CPU, [*NODES, BUSY, *pods("abcde")], "", id="above-the-threshold"),
        pytest.param(CPU, [*NODES, *pods("ab")], "", id="all-are-underutilized"),
        pytest.param({**CPU, "numberOfNodes": 1}, [*NODES, BUSY, *pods("ab")], "", id="too-few"),
        pytest.param(
            CPU,
            [make_node("n1"), make_node("n2", unschedulable=True), BUSY, *pods("ab")],
            "",
            id="a-cordoned-node-takes-nobody",
        ),
        pytest.param(
            CPU,
            [make_node("n1", unschedulable=True), make_node("n2"), BUSY, *pods("ab")],
            "ab",
            id="a-cordoned-node-is-emptied",
        ),
        pytest.param(
            CPU,
            [make_node("n1"), make_node("n2", taints=[taint()]), BUSY, *pods("ab")],
            "",
            id="a-taint-that-nobody-tolerates",
        ),
        pytest.param(
            CPU,
            [*NODES, BUSY, *pods("ab", node_selector={"disk": "ssd"})],
            "",
            id="nowhere-to-go",
        ),
        pytest.param(
            CPU,
            [
                make_node("n1"),
                make_node("n2", allocatable={**ROOMY, "pods": "2"}),
                BUSY,
                *pods("ab"),
            ],
            "a",
            id="one-slot",
        ),
        pytest.param(
            CPU,
            [*NODES, BUSY, *pods("a", priority=10), *pods("b"), *pods("c", requests={})],
            "cba",
            id="least-important-first",
        ),
        pytest.param(
            {**CPU, "evictableNamespaces": {"exclude": ["v"]}},
            [*NODES, BUSY, *pods("a", namespace="v"), *pods("b")],
            "b",
            id="excluded-namespaces-stay",
        ),
        pytest.param(
            {"thresholds": {GPU: 20}, "evictionModes": ["OnlyThresholdingResources"]},
            [
                make_node("n1", allocatable={**ROOMY, GPU: "8"}),
                make_node("n2", allocatable={**ROOMY, GPU: "8"}),
                make_pod("busy", node="n2", requests={GPU: "6"}),
                *pods("a"),
                *pods("b", requests={GPU: "1"}),
            ],
            "b",
            id="only-who-asks-for-what-has-a-threshold",
        ),
        pytest.param(
            {**CPU, "evictionModes": ["OnlyThresholdingResources"]},
            [
                *NODES,
                BUSY,
                *pods("a", requests={"cpu": "0"}),
                *pods("b", requests={}, spec={"resources": {"requests": {"cpu": "100m"}}}),
            ],
            "a",
            id="asked-for-by-a-container-be-it-nothing",
        ),
        pytest.param(
            {"thresholds": {GPU: 20}},
            [
                make_node("n1", allocatable={**ROOMY, GPU: "8"}),
                make_node("n2", allocatable={**ROOMY, GPU: "8"}),
                make_pod("busy", node="n2", requests={GPU: "6"}),
                *pods("a"),
                *pods("b", requests={GPU: "1"}),
            ],
            "ba",
            id="without-the-mode-everybody",
        ),
    ],
)
def test_packs(
    arguments: dict[str, object],
    manifests: list[Manifest],
    expected: str,
    corrections: Corrections,
) -> None:
    said = run(NAME, arguments, *manifests, evictor=WITH_FIT, corrections=corrections)
    assert "".join(said.names) == expected


@BOTH
def test_the_emptiest_node_is_emptied_first(corrections: Corrections) -> None:
    said = run(
        NAME,
        CPU,
        *NODES,
        make_node("n3"),
        BUSY,
        *pods("ab"),
        *pods("x", "n3"),
        evictor=WITH_FIT,
        corrections=corrections,
    )
    assert said.names == ["x", "a", "b"]


@pytest.mark.parametrize(
    ("corrections", "expected"),
    [
        pytest.param(ALL, [], id="all"),
        pytest.param(NONE, ["a"], id="none"),
        pytest.param(ALL - {Correction.UTILIZATION_PLACEMENT}, ["a"], id="without-placement"),
    ],
)
def test_only_the_destinations_make_room(corrections: Corrections, expected: list[str]) -> None:
    """The Pod would fit the emptier node, which is no destination."""
    said = run(
        NAME,
        {"thresholds": {"cpu": 50}},
        *NODES,
        make_node("n3"),
        make_pod("full", node="n2", requests={"cpu": "3200m"}),
        make_pod("a", node="n1", requests={"cpu": "1600m"}),
        evictor=WITH_FIT,
        corrections=corrections,
    )
    assert said.names == expected


@pytest.mark.parametrize(
    ("corrections", "expected"),
    [
        pytest.param(ALL, [], id="all"),
        pytest.param(NONE, ["a", "b"], id="none"),
        pytest.param(ALL - {Correction.UTILIZATION_RESOURCES}, ["a", "b"], id="without-resources"),
    ],
)
def test_a_node_without_the_resource_is_not_underutilized(
    corrections: Corrections, expected: list[str]
) -> None:
    said = run(
        NAME,
        {"thresholds": {GPU: 20}},
        make_node("n1"),
        make_node("n2", allocatable={**ROOMY, GPU: "4"}),
        *pods("ab"),
        make_pod("learns", node="n2", requests={GPU: "3"}),
        corrections=corrections,
    )
    assert said.names == expected


@pytest.mark.parametrize(
    ("manifests", "arguments", "expected"),
    [
        pytest.param([*NODES, BUSY, *pods("abcde")], {}, [], id="nothing-to-tell"),
        pytest.param(
            [*NODES, BUSY, *pods("ab")],
            {"numberOfNodes": 1},
            ["1 underutilized are not more than numberOfNodes, which is 1"],
            id="too-few",
        ),
        pytest.param(
            [*NODES, *pods("ab")], {}, ["no node is used enough to take Pods in"], id="nowhere"
        ),
    ],
)
def test_says_why_nothing_moves(
    manifests: list[Manifest], arguments: dict[str, object], expected: list[str]
) -> None:
    said = run(NAME, {**CPU, **arguments}, *manifests)
    assert said.names == []
    assert [each.reason for each in said.rejections] == expected


def test_says_why_a_pod_goes() -> None:
    (candidate, *_) = run(NAME, CPU, *NODES, BUSY, *pods("ab")).candidates
    assert candidate.reason == "node n1 is underutilized: cpu 10% of 20%"
