"""LowNodeUtilization by measured usage: from metrics-server, and from Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import pytest

from reactive_descheduler.api.changes import Action, At, Change, On
from reactive_descheduler.api.errors import UsageError
from reactive_descheduler.api.quantity import parse_quantity
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.usage import METRICS_SERVER, PROMETHEUS, Sample, Usage, Vector
from reactive_descheduler.config.corrections import ALL, NONE, Corrections
from tests.builders import Manifest, cluster, make_node, make_pod, pod_view
from tests.unit.strategies.driving import NOW, Said, build, evaluate, run, sweep, view_of

NAME = "LowNodeUtilization"
CPU: dict[str, object] = {
    "thresholds": {"cpu": 20},
    "targetThresholds": {"cpu": 50},
    "metricsUtilization": {"source": METRICS_SERVER},
}
LOAD: dict[str, object] = {
    "thresholds": {"MetricResource": 20},
    "targetThresholds": {"MetricResource": 50},
    "metricsUtilization": {"source": PROMETHEUS, "prometheus": {"query": "load"}},
}
PODS = [make_pod(name, node="n1") for name in "abc"]
OBJECTS: list[Manifest] = [make_node("n1"), make_node("n2"), *PODS]


def sample(cpu: str, *, age: float = 0, memory: str = "1Gi") -> Sample:
    taken = NOW - timedelta(seconds=age)
    usage = {"cpu": parse_quantity(cpu), "memory": parse_quantity(memory)}
    return Sample(usage, taken, taken)


def measured(
    nodes: Mapping[str, Sample] | None = None, pods: Mapping[str, Sample] | None = None
) -> Usage:
    """Return what metrics-server says; by default 75 % of n1, 5 % of n2, 600m of each Pod."""
    usage = Usage([METRICS_SERVER])
    usage.put_nodes(nodes or {"n1": sample("3"), "n2": sample("200m")}, NOW)
    found = {name: sample("600m", memory="64Mi") for name in "abc"} if pods is None else pods
    usage.put_pods({("default", name): each for name, each in found.items()})
    return usage


def answered(values: Mapping[str, float], *, age: float = 0, error: str = "") -> Usage:
    taken = NOW - timedelta(seconds=age)
    usage = Usage([PROMETHEUS])
    usage.put_vector("load", Vector(values, taken, taken, error), NOW)
    return usage


def looked(arguments: dict[str, object], usage: Usage | None, *objects: Manifest) -> Said:
    """Look at the key as the daemon does."""
    lister = cluster(*(objects or OBJECTS))
    return evaluate(build(NAME, arguments), view_of(lister, usage=usage))


BOTH = pytest.mark.parametrize("corrections", [ALL, NONE], ids=["all", "none"])


@BOTH
def test_pods_leave_with_what_they_use(corrections: Corrections) -> None:
    """3 cpus of 4; the target allows 2: two Pods of 600m, whatever they request."""
    said = run(NAME, CPU, *OBJECTS, corrections=corrections, usage=measured())
    assert said.names == ["a", "b"]


@BOTH
def test_the_old_flag_means_the_same(corrections: Corrections) -> None:
    arguments = {**CPU, "metricsUtilization": {"metricsServer": True}}
    said = run(NAME, arguments, *OBJECTS, corrections=corrections, usage=measured())
    assert said.names == ["a", "b"]


@BOTH
def test_pods_are_counted_and_not_measured(corrections: Corrections) -> None:
    arguments = {**CPU, "thresholds": {"pods": 20}, "targetThresholds": {"pods": 50}}
    small = {"cpu": "4", "memory": "8Gi", "pods": "4"}
    nodes = [make_node(name, allocatable=small) for name in ("n1", "n2")]
    said = run(NAME, arguments, *nodes, *PODS, corrections=corrections, usage=measured())
    assert said.names == ["a"]


NO_PODS_SAMPLE = {"b": sample("600m"), "c": sample("600m")}


@pytest.mark.parametrize(
    ("pods", "reason"),
    [
        pytest.param({}, "metrics-server has not measured it", id="missing"),
        pytest.param(
            {"a": sample("600m", age=120)},
            "what metrics-server measured of it is too old",
            id="old",
        ),
        pytest.param(
            {"a": sample("600m", age=7200)}, "metrics-server has not measured it", id="of-another"
        ),
        pytest.param(
            {"a": Sample({"cpu": 600}, NOW, NOW)},
            "metrics-server measured only a part of it",
            id="partial",
        ),
        pytest.param(
            {"a": Sample({}, NOW, NOW)},
            "metrics-server measured only a part of it",
            id="no-containers",
        ),
    ],
)
def test_a_pod_that_is_not_measured_is_passed_over(pods: dict[str, Sample], reason: str) -> None:
    said = looked(CPU, measured(pods={**pods, **NO_PODS_SAMPLE}))
    assert said.names == ["b", "c"]
    assert [(each.reason, each.wakes) for each in said.rejections] == [
        (reason, (On(Action.USAGE, None),))
    ]


NODES = {"n1": sample("3"), "n2": sample("200m")}


@pytest.mark.parametrize(
    ("arguments", "usage", "reason"),
    [
        pytest.param(
            CPU,
            measured({"n1": sample("3")}),
            "metrics-server has not measured node n2",
            id="node-missing",
        ),
        pytest.param(
            CPU,
            measured({**NODES, "n2": Sample({"cpu": 1}, NOW, NOW)}),
            "metrics-server measured only a part of node n2",
            id="node-partial",
        ),
        pytest.param(
            CPU,
            measured({**NODES, "n2": sample("200m", age=120)}),
            "the usage of node n2 was measured 120 s ago",
            id="node-old",
        ),
        pytest.param(LOAD, Usage([PROMETHEUS]), "Prometheus has not answered the query", id="none"),
        pytest.param(
            LOAD,
            answered({"n1": 0.9}),
            "Prometheus tells nothing of node n2",
            id="instance-missing",
        ),
        pytest.param(
            LOAD,
            answered({"n1": 0.9, "n2": 1.5}),
            "Prometheus tells 1.5 of n2, which is no share of 1",
            id="out-of-range",
        ),
        pytest.param(
            LOAD,
            answered({"n1": 0.9, "n2": float("nan")}),
            "Prometheus tells nan of n2, which is no share of 1",
            id="no-number",
        ),
        pytest.param(
            LOAD,
            answered({}, error="a scalar"),
            "Prometheus' answer cannot be used: a scalar",
            id="no-vector",
        ),
        pytest.param(
            LOAD,
            answered({"n1": 0.9, "n2": 0.1}, age=300),
            "the usage of all nodes was measured 300 s ago",
            id="answer-old",
        ),
    ],
)
def test_nothing_is_evicted_by_guess(
    arguments: dict[str, object], usage: Usage, reason: str
) -> None:
    """The pass fails; the key waits for the next sample."""
    said = looked(arguments, usage)
    assert said.names == []
    assert [(each.reason, each.pod, each.wakes) for each in said.rejections] == [
        (reason, None, (On(Action.USAGE, None),))
    ]
    with pytest.raises(UsageError, match=reason):
        sweep(build(NAME, arguments), view_of(cluster(*OBJECTS), usage=usage))


@pytest.mark.parametrize(
    ("arguments", "usage", "reason"),
    [
        pytest.param(CPU, None, "does not configure KubernetesMetrics", id="no-provider"),
        pytest.param(CPU, Usage([PROMETHEUS]), "configure KubernetesMetrics", id="another"),
        pytest.param(LOAD, measured(), "does not configure Prometheus", id="no-prometheus"),
        pytest.param(
            {**CPU, "metricsUtilization": {}}, measured(), "source '' is not known", id="no-source"
        ),
        pytest.param(
            {**CPU, "metricsUtilization": {"source": "Guess"}}, None, "'Guess'", id="unknown"
        ),
        pytest.param(
            {
                **CPU,
                "thresholds": {"cpu": 1, "example.com/gpu": 1},
                "targetThresholds": {"cpu": 2, "example.com/gpu": 2},
            },
            measured(),
            "metrics-server does not measure example.com/gpu",
            id="not-measurable",
        ),
    ],
)
def test_fails_where_the_policy_has_to_change(
    arguments: dict[str, object], usage: Usage | None, reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        looked(arguments, usage)


def test_a_policy_without_nodes_to_look_at_fails_nowhere() -> None:
    assert looked(CPU, None, make_node("n1"), *PODS).rejections == []


def test_is_looked_at_again_when_a_sample_comes_and_when_one_grows_old() -> None:
    said = looked(CPU, measured({**NODES, "n2": sample("200m", age=30)}))
    assert On(Action.USAGE, None) in said.wakes
    assert [wake.time for wake in said.wakes if isinstance(wake, At)] == [
        NOW + timedelta(seconds=90)
    ]


def test_a_node_counts_as_overused_after_so_many_samples_in_a_row() -> None:
    usage = measured({**NODES, "n1": sample("3", age=30)})
    usage.configure([METRICS_SERVER], samples=2, max_age=timedelta(minutes=2))
    assert looked(CPU, usage).names == []
    usage.put_nodes(NODES, NOW)
    assert looked(CPU, usage).names == ["a", "b"]
    usage.put_nodes({"n1": sample("1", age=-5)}, NOW)
    usage.put_nodes({"n1": sample("3", age=-10)}, NOW)
    assert looked(CPU, usage).names == []


def test_what_was_evicted_since_the_sample_leads_to_no_further_eviction() -> None:
    usage = measured({**NODES, "n1": sample("2500m")}, {name: sample("600m") for name in "abc"})
    assert looked(CPU, usage).names == ["a"]
    going = make_pod("a", node="n1", version="2", deleted=NOW)
    usage.on_change(Change("Pod", pod_view(PODS[0]), pod_view(going)), NOW)
    assert looked(CPU, usage, *OBJECTS[:2], going, *PODS[1:]).names == []
    usage.on_change(Change("Pod", pod_view(going), None), NOW + timedelta(seconds=30))
    assert looked(CPU, usage, *OBJECTS[:2], *PODS[1:]).names == []


def load(value: float) -> Usage:
    return answered({"n1": value, "n2": 0.1, "elsewhere:9100": 1.0})


@BOTH
@pytest.mark.parametrize(
    ("value", "limit", "expected"),
    [
        pytest.param(0.9, {}, ["a"], id="one-by-one-without-a-limit"),
        pytest.param(0.9, {"evictionLimits": {"node": 2}}, ["a", "b"], id="so-many-with-a-limit"),
        pytest.param(0.5099, {}, [], id="cut-to-whole-percents"),
        pytest.param(0.51, {}, ["a"], id="a-percent-over"),
    ],
)
def test_by_prometheus(
    value: float, limit: dict[str, object], expected: list[str], corrections: Corrections
) -> None:
    said = run(NAME, {**LOAD, **limit}, *OBJECTS, corrections=corrections, usage=load(value))
    assert said.names == expected


def gone(usage: Usage, at: datetime) -> Lister:
    """Let Pod `a` go after the answer."""
    usage.on_change(Change("Pod", pod_view(PODS[0]), None), at)
    return cluster(*OBJECTS[:2], *PODS[1:])


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        pytest.param({}, [], id="without-a-limit"),
        pytest.param({"evictionLimits": {"node": 2}}, ["b"], id="with-a-limit"),
    ],
)
def test_what_left_since_the_answer_counts_for_its_run(
    limit: dict[str, object], expected: list[str]
) -> None:
    usage = load(0.9)
    lister = gone(usage, NOW + timedelta(seconds=1))
    strategy = build(NAME, {**LOAD, **limit})
    assert evaluate(strategy, view_of(lister, usage=usage)).names == expected
    later = NOW + timedelta(seconds=15)
    usage.put_vector("load", Vector({"n1": 0.9, "n2": 0.1}, later, later), later)
    assert evaluate(strategy, view_of(lister, usage=usage, now=later)).names[:1] == ["b"]
