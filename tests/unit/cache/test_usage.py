"""Measured usage: samples, their age, and what has moved since they were taken."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reactive_descheduler.api.changes import Change
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.cache.usage import Sample, Usage, Vector, summed
from tests.builders import Manifest, make_node, make_pod, node_view, owner, pod_view

START = datetime(2026, 1, 1, tzinfo=UTC)
SOURCE = "KubernetesMetrics"


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def sample(cpu: int, taken: float = 0, *, window: float = 0) -> Sample:
    return Sample({"cpu": cpu}, at(taken), at(taken), timedelta(seconds=window))


def cpu(usage: Usage, node: str, gone: tuple[Pod, ...] = ()) -> int:
    return usage.amounts(node, usage.node(node)[-1], gone)["cpu"]


def told(usage: Usage, old: Manifest | None, new: Manifest | None, seconds: float) -> None:
    change = Change("Pod", pod_view(old) if old else None, pod_view(new) if new else None)
    usage.on_change(change, at(seconds))


POD = make_pod("a", node="n1")
GOING = make_pod("a", node="n1", version="2", deleted=at(10))
NEXT = make_pod("b", node="n2")


@pytest.fixture
def measured() -> Usage:
    """A node of 100, of which Pod `a` uses 30, and one of 5, both sampled at 0."""
    usage = Usage([SOURCE])
    usage.put_nodes({"n1": sample(100), "n2": sample(5)}, at(0))
    usage.put_pods({("default", "a"): sample(30)})
    return usage


def test_a_sample_that_is_no_newer_changes_nothing() -> None:
    usage = Usage([SOURCE])
    usage.put_nodes({"n1": sample(1, 10)}, at(11))
    usage.put_nodes({"n1": sample(2, 5)}, at(12))
    usage.put_nodes({"n1": sample(3, 10)}, at(13))
    assert usage.node("n1") == (sample(1, 10),)


def test_a_node_that_is_missing_in_a_list_keeps_its_sample_for_a_while() -> None:
    usage = Usage([SOURCE], max_age=timedelta(seconds=60))
    usage.put_nodes({"n1": sample(1), "n2": sample(2)}, at(0))
    usage.put_nodes({"n2": sample(3, 15)}, at(15))
    assert usage.node("n1") == (sample(1),)
    usage.put_nodes({"n2": sample(4, 200)}, at(200))
    assert usage.node("n1") == ()


def test_a_node_that_is_removed_takes_its_samples_with_it(measured: Usage) -> None:
    measured.on_change(Change("Node", node_view(make_node("n1")), None), at(1))
    assert measured.node("n1") == ()


def test_a_pod_that_is_missing_in_a_list_is_not_measured_any_more(measured: Usage) -> None:
    assert measured.pod(pod_view(POD)) == sample(30)
    measured.put_pods({})
    assert measured.pod(pod_view(POD)) is None


def test_keeps_as_many_samples_as_are_asked_for() -> None:
    usage = Usage([SOURCE], samples=2)
    for taken in range(4):
        usage.put_nodes({"n1": sample(taken, taken)}, at(taken))
    assert usage.node("n1") == (sample(2, 2), sample(3, 3))
    usage.configure([SOURCE], samples=1, max_age=timedelta(minutes=1))
    assert usage.node("n1") == (sample(3, 3),)


def test_answers_are_kept_by_query() -> None:
    usage = Usage(["Prometheus"])
    one = Vector({"n1": 0.5}, at(1), at(1))
    usage.put_vector("q", one, at(1))
    usage.put_vector("q", Vector({"n1": 0.9}, at(0), at(2)), at(2))
    assert usage.vectors("q") == (one,)
    assert usage.vectors("other") == ()


def test_every_sample_and_every_move_is_another_version(measured: Usage) -> None:
    seen = {measured.version}
    measured.put_nodes({"n1": sample(1, 1)}, at(1))
    seen.add(measured.version)
    measured.put_pods({})
    seen.add(measured.version)
    told(measured, POD, GOING, 10)
    seen.add(measured.version)
    told(measured, GOING, None, 40)
    seen.add(measured.version)
    assert len(seen) == 5


def test_a_pod_that_counts_as_gone_is_taken_off(measured: Usage) -> None:
    assert cpu(measured, "n1", (pod_view(POD),)) == 70
    assert cpu(measured, "n1") == 100


def test_a_pod_that_goes_is_taken_off_once(measured: Usage) -> None:
    told(measured, POD, GOING, 10)
    assert cpu(measured, "n1") == 70
    assert cpu(measured, "n1", (pod_view(GOING),)) == 70


def test_a_pod_that_goes_is_taken_off_samples_that_still_show_it(measured: Usage) -> None:
    told(measured, POD, GOING, 10)
    measured.put_nodes({"n1": sample(90, 20)}, at(20))
    measured.put_pods({("default", "a"): sample(20, 20)})
    assert cpu(measured, "n1") == 70


def test_what_has_gone_is_taken_off_until_a_sample_has_begun_after_it(measured: Usage) -> None:
    told(measured, POD, GOING, 10)
    told(measured, GOING, None, 40)
    measured.put_pods({})
    measured.put_nodes({"n1": sample(95, 45, window=15)}, at(45))
    assert cpu(measured, "n1") == 65
    measured.put_nodes({"n1": sample(70, 60, window=15)}, at(60))
    assert cpu(measured, "n1") == 70


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(POD, None, id="deleted-at-once"),
        pytest.param(POD, make_pod("a", node="n1", version="2", phase="Failed"), id="finished"),
    ],
)
def test_what_goes_without_terminating_is_taken_off_too(
    measured: Usage, old: Manifest, new: Manifest | None
) -> None:
    told(measured, old, new, 10)
    assert cpu(measured, "n1") == 70


def test_the_replacement_is_put_on_its_node_until_a_sample_shows_it(measured: Usage) -> None:
    told(measured, POD, GOING, 10)
    told(measured, None, NEXT, 20)
    assert cpu(measured, "n2") == 35
    measured.put_nodes({"n2": sample(33, 30)}, at(30))
    assert cpu(measured, "n2") == 33


def test_each_that_went_has_one_replacement(measured: Usage) -> None:
    told(measured, POD, GOING, 10)
    told(measured, None, NEXT, 20)
    told(measured, None, make_pod("c", node="n2"), 21)
    told(measured, None, make_pod("x", node="n2", owners=[owner("other")]), 22)
    assert cpu(measured, "n2") == 35


def test_nothing_is_noted_where_no_source_is_configured() -> None:
    usage = Usage()
    version = usage.version
    told(usage, POD, None, 10)
    assert usage.version == version


def test_moves_are_forgotten_once_no_sample_needs_them(measured: Usage) -> None:
    told(measured, POD, None, 10)
    old = sample(100)
    measured.put_nodes({"n1": sample(70, 400)}, at(400))
    assert measured.amounts("n1", old)["cpu"] == 100


def test_usage_is_never_less_than_nothing(measured: Usage) -> None:
    measured.put_nodes({"n1": sample(10, 5)}, at(5))
    told(measured, POD, GOING, 10)
    assert cpu(measured, "n1") == 0


def test_counts_what_leaves_a_node(measured: Usage) -> None:
    assert measured.leaving("n1", at(0)) == 0
    assert measured.leaving("n1", at(0), (pod_view(POD),)) == 1
    told(measured, POD, GOING, 10)
    assert measured.leaving("n1", at(0), (pod_view(POD),)) == 1
    told(measured, GOING, None, 40)
    assert measured.leaving("n1", at(39)) == 1
    assert measured.leaving("n1", at(40)) == 0


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        pytest.param([], {}, id="none"),
        pytest.param(
            [{"cpu": 1, "memory": 2}, {"cpu": 3, "memory": 4}], {"cpu": 4, "memory": 6}, id="all"
        ),
        pytest.param([{"cpu": 1, "memory": 2}, {"cpu": 3}], {"cpu": 4}, id="what-all-report"),
    ],
)
def test_a_pod_uses_what_all_its_containers_report(
    containers: list[dict[str, int]], expected: dict[str, int]
) -> None:
    assert summed(containers) == expected
