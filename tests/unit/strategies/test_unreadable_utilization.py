"""By requests, a node of which a Pod cannot be read may be fuller than it looks."""

from __future__ import annotations

import pytest

from reactive_descheduler.cache.usage import METRICS_SERVER, Sample, Usage
from reactive_descheduler.config.corrections import ALL, NONE, Corrections
from tests.builders import Manifest, make_node, make_pod
from tests.unit.strategies.driving import NOW, Said, changed, run, wakes_on

LOW, HIGH = "LowNodeUtilization", "HighNodeUtilization"
CPU: dict[str, object] = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}
COUNT: dict[str, object] = {"thresholds": {"pods": 2}, "targetThresholds": {"pods": 4}}
DEVIATION: dict[str, object] = {
    "thresholds": {"cpu": 10},
    "targetThresholds": {"cpu": 10},
    "useDeviationThresholds": True,
}
UNDER: dict[str, object] = {"thresholds": {"cpu": 30}}
WAYS = pytest.mark.parametrize("corrections", [ALL, NONE], ids=["all", "none"])


def pods(names: str, node: str) -> list[Manifest]:
    return [make_pod(name, node=node, requests={"cpu": "800m"}) for name in names]


def unreadable(name: str, node: str) -> Manifest:
    return make_pod(name, node=node) | {"status": 1}


def nodes(*names: str, **more: object) -> list[Manifest]:
    return [make_node(name, **more) for name in names]  # type: ignore[arg-type]


def told(said: Said) -> list[str]:
    return [each.reason for each in said.rejections if "unreadable" in each.reason]


@WAYS
@pytest.mark.parametrize(
    ("strategy", "arguments", "around", "where", "meanwhile", "reason"),
    [
        pytest.param(
            LOW,
            CPU,
            [*nodes("n1", "n2"), *pods("abc", "n1")],
            "n2",
            [],
            "what is used of node n2 is unknown, for Pod default/x is unreadable:"
            " it takes no Pods in",
            id="low-does-not-fill-it",
        ),
        pytest.param(
            LOW,
            CPU,
            [*nodes("n1", "n2"), *pods("abc", "n1")],
            "n1",
            ["a"],
            "what is used of node n1 is unknown, for Pod default/x is unreadable:"
            " it takes no Pods in",
            id="low-relieves-it-where-the-rest-is-too-much-already",
        ),
        pytest.param(
            LOW,
            COUNT,
            [*nodes("n1", "n2"), *pods("abcd", "n1")],
            "n1",
            [],
            "what is used of node n1 is unknown, for Pod default/x is unreadable:"
            " it takes no Pods in",
            id="low-does-not-count-one-that-may-have-finished",
        ),
        pytest.param(
            LOW,
            DEVIATION,
            [*nodes("n1", "n2", "n3"), *pods("abc", "n1")],
            "n3",
            [],
            "what is used of node n3 is unknown, for Pod default/x is unreadable:"
            " there is no mean of all nodes",
            id="low-has-no-mean",
        ),
        pytest.param(
            HIGH,
            UNDER,
            [*nodes("n1", "n2"), *pods("a", "n1"), *pods("bcd", "n2")],
            "n1",
            [],
            "what is used of node n1 is unknown, for Pod default/x is unreadable:"
            " it neither gives Pods away nor takes any in",
            id="high-does-not-empty-it",
        ),
        pytest.param(
            HIGH,
            UNDER,
            [*nodes("n1", "n2"), *pods("a", "n1"), *pods("bcd", "n2")],
            "n2",
            [],
            "what is used of node n2 is unknown, for Pod default/x is unreadable:"
            " it neither gives Pods away nor takes any in",
            id="high-does-not-fill-it",
        ),
    ],
)
def test_what_is_not_known_is_not_relied_on(
    strategy: str,
    arguments: dict[str, object],
    around: list[Manifest],
    where: str,
    meanwhile: list[str],
    reason: str,
    corrections: Corrections,
) -> None:
    one = unreadable("x", where)

    said = run(strategy, arguments, *around, one, corrections=corrections)

    assert (said.names, told(said)) == (meanwhile, [reason])
    assert wakes_on(said, changed(one, None))
    assert wakes_on(said, changed(one, make_pod("x", node=where)))
    readable = make_pod("x", node=where)
    assert run(strategy, arguments, *around, readable, corrections=corrections).names != []


def test_other_nodes_are_relieved_and_filled_all_the_same() -> None:
    around = [*nodes("n1", "n2", "n3"), *pods("abc", "n1"), unreadable("x", "n3")]
    assert run(LOW, CPU, *around).names == ["a"]


def test_many_nodes_are_told_of_in_one_line() -> None:
    around = [*nodes("n1", "n2", "n3"), *(unreadable(f"x{n}", f"n{n}") for n in (1, 2, 3))]
    assert told(run(LOW, CPU, *around)) == [
        "what is used of node n1 is unknown, for Pod default/x1 is unreadable:"
        " it takes no Pods in (so with 2 more nodes)"
    ]


def test_one_that_is_on_no_node_is_no_matter() -> None:
    around = [*nodes("n1", "n2"), *pods("abc", "n1"), unreadable("x", "")]
    assert run(LOW, CPU, *around).names == ["a"]


@pytest.mark.parametrize(
    ("resource", "where", "expected"),
    [
        pytest.param("cpu", "n1", ["a", "b"], id="what-was-measured-is-known"),
        pytest.param("cpu", "n2", [], id="but-not-whether-more-would-fit"),
        pytest.param("pods", "n2", [], id="how-many-there-are-is-not"),
    ],
)
def test_measured_usage_holds_whatever_can_be_read(
    resource: str, where: str, expected: list[str]
) -> None:
    usage = Usage([METRICS_SERVER])
    busy, idle, own = (
        Sample({"cpu": cpu * 10**6, "memory": 2**30 * 10**9}, NOW, NOW) for cpu in (3000, 200, 600)
    )
    usage.put_nodes({"n1": busy, "n2": idle}, NOW)
    usage.put_pods({("default", name): own for name in "abc"})
    arguments = {
        "thresholds": {resource: 20 if resource == "cpu" else 1},
        "targetThresholds": {resource: 50 if resource == "cpu" else 2},
        "metricsUtilization": {"source": METRICS_SERVER},
    }
    around = [*nodes("n1", "n2"), *pods("abc", "n1"), unreadable("x", where)]

    assert run(LOW, arguments, *around, usage=usage).names == expected
