"""LowNodeUtilization, by requests."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from reactive_descheduler.api.changes import Change, Key
from reactive_descheduler.api.eviction import TAKEN, Candidate, Stop, Verdict
from reactive_descheduler.cache.gone import GonePods
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.promised import PromisedPods
from reactive_descheduler.config.corrections import ALL, NONE, Correction, Corrections
from reactive_descheduler.framework.strategy import Holds
from reactive_descheduler.strategies.node_utilization import (
    LowNodeUtilizationArguments,
    utilization,
)
from reactive_descheduler.triggers import cluster_events
from tests.builders import (
    Manifest,
    cluster,
    cluster_store,
    make_node,
    make_pod,
    owner,
    pod_view,
    taint,
)
from tests.unit.strategies.driving import Said, build, changed, run, sweep, view_of, wakes_on

NAME = "LowNodeUtilization"
EVICT = "descheduler.alpha.kubernetes.io/evict"
CPU = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}
ROOMY = {"cpu": "4", "memory": "8Gi", "pods": "110"}


def pods(names: str, node: str = "n1", **more: object) -> list[Manifest]:
    """Return Pods named by letters; by default of 800m cpu."""
    requests = more.pop("requests", {"cpu": "800m"})
    return [make_pod(name, node=node, requests=requests, **more) for name in names]  # type: ignore[arg-type]


def two(*manifests: Manifest) -> list[Manifest]:
    return [make_node("n1"), make_node("n2"), *manifests]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({}, "thresholds", id="nothing"),
        pytest.param({"targetThresholds": {"cpu": 50}}, "thresholds", id="no-thresholds"),
        pytest.param({"thresholds": {"cpu": 20}}, "targetThresholds", id="no-targets"),
        pytest.param({**CPU, "thresholds": {}}, "at least one resource", id="empty"),
        pytest.param({**CPU, "thresholds": {"cpu": 101}}, "thresholds.cpu", id="above-100"),
        pytest.param(
            {**CPU, "targetThresholds": {"cpu": -1}}, "targetThresholds.cpu", id="below-0"
        ),
        pytest.param({**CPU, "thresholds": {"cpu": "20"}}, "thresholds.cpu", id="a-text"),
        pytest.param({**CPU, "thresholds": {"cpu": True}}, "thresholds.cpu", id="a-truth"),
        pytest.param(
            {**CPU, "targetThresholds": {"memory": 50}}, "the same resources", id="others"
        ),
        pytest.param({**CPU, "thresholds": {"cpu": 60}}, "thresholds.cpu must not", id="crossed"),
        pytest.param({**CPU, "numberOfNodes": 1.5}, "numberOfNodes", id="half-a-node"),
        pytest.param({**CPU, "evictableNamespaces": {"include": ["a"]}}, "include", id="include"),
        pytest.param(
            {**CPU, "evictionLimits": {"node": -1}}, "evictionLimits.node", id="negative-limit"
        ),
        pytest.param(
            {**CPU, "metricsUtilization": {"source": "KubernetesMetrics", "metricsServer": True}},
            "metricsServer",
            id="both-ways",
        ),
        pytest.param(
            {
                **CPU,
                "metricsUtilization": {"source": "KubernetesMetrics", "prometheus": {"query": "q"}},
            },
            "prometheus must not",
            id="query-for-metrics-server",
        ),
        pytest.param(
            {**CPU, "metricsUtilization": {"source": "Prometheus"}}, "query", id="no-query"
        ),
        pytest.param(
            {**CPU, "metricsUtilization": {"source": "Prometheus", "prometheus": {"query": "q"}}},
            "MetricResource alone",
            id="cpu-by-prometheus",
        ),
        pytest.param({**CPU, "namespaces": {"exclude": ["a"]}}, "namespaces", id="unknown"),
    ],
)
def test_refuses_bad_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError) as refused:
        LowNodeUtilizationArguments.read(arguments)
    told = [f"{'.'.join(map(str, each['loc']))} {each['msg']}" for each in refused.value.errors()]
    assert any(message in each for each in told), told


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({**CPU, "thresholds": {"cpu": 12.5}}, id="fraction"),
        pytest.param({**CPU, "thresholds": {"cpu": 50}}, id="equal"),
        pytest.param(
            {**CPU, "thresholds": {"cpu": 60}, "useDeviationThresholds": True},
            id="crossed-deviation",
        ),
        pytest.param({**CPU, "numberOfNodes": -3}, id="negative-number-of-nodes"),
        pytest.param({**CPU, "metricsUtilization": {}}, id="no-source-is-told-at-run-time"),
        pytest.param({**CPU, "metricsUtilization": {"source": "Guess"}}, id="unknown-source-too"),
        pytest.param({**CPU, "evictableNamespaces": None, "evictionLimits": None}, id="nulls"),
    ],
)
def test_takes_what_upstream_takes(arguments: dict[str, object]) -> None:
    LowNodeUtilizationArguments.read(arguments)


def test_defaults() -> None:
    found = LowNodeUtilizationArguments.read(CPU)
    assert not found.use_deviation_thresholds
    assert found.number_of_nodes == 0
    assert found.metrics_utilization is None
    assert found.eviction_limits.node is None
    assert found.evictable_namespaces.exclude == ()


BOTH = pytest.mark.parametrize("corrections", [ALL, NONE], ids=["all", "none"])


@BOTH
@pytest.mark.parametrize(
    ("arguments", "manifests", "expected"),
    [
        pytest.param(CPU, two(*pods("abc")), "a", id="until-the-target-is-reached"),
        pytest.param(CPU, two(*pods("ab")), "", id="none-is-over"),
        pytest.param(CPU, two(*pods("abc"), *pods("x", "n2")), "a", id="at-the-threshold-is-under"),
        pytest.param(
            CPU,
            two(*pods("abc"), *pods("x", "n2", requests={"cpu": "801m"})),
            "",
            id="none-is-under",
        ),
        pytest.param(
            CPU, two(*pods("a", requests={"cpu": "2"})), "", id="at-the-target-is-not-over"
        ),
        pytest.param({**CPU, "numberOfNodes": 1}, two(*pods("abc")), "", id="too-few-under"),
        pytest.param(
            {**CPU, "numberOfNodes": 1},
            [*two(*pods("abc")), make_node("n3")],
            "a",
            id="enough-under",
        ),
        pytest.param({**CPU, "numberOfNodes": -1}, two(*pods("abc")), "a", id="negative-number"),
        pytest.param(
            CPU,
            [make_node("n1"), make_node("n2", unschedulable=True), *pods("abc")],
            "",
            id="a-cordoned-node-takes-nobody",
        ),
        pytest.param(
            CPU,
            [make_node("n1", unschedulable=True), make_node("n2"), *pods("abc")],
            "a",
            id="a-cordoned-node-may-be-relieved",
        ),
        pytest.param(
            CPU,
            [make_node("n1"), make_node("n2", taints=[taint()]), *pods("abc")],
            "",
            id="a-taint-that-nobody-tolerates",
        ),
        pytest.param(
            {**CPU, "evictableNamespaces": {"exclude": ["vault"]}},
            two(*pods("a", namespace="vault"), *pods("bc")),
            "b",
            id="excluded-namespaces-count-and-stay",
        ),
        pytest.param({**CPU, "evictionLimits": {"node": 0}}, two(*pods("abcde")), "", id="limit-0"),
        pytest.param(
            {**CPU, "evictionLimits": {"node": 1}}, two(*pods("abcde")), "a", id="limit-1"
        ),
        pytest.param(
            CPU,
            two(
                *pods("a", priority=10),
                *pods("b", priority=-5),
                *pods("c", requests={"cpu": "900m"}, limits={"cpu": "900m", "memory": "1Gi"}),
                make_pod("d", node="n1", requests={"cpu": "100m"}),
            ),
            "c",
            id="without-a-priority-first",
        ),
        pytest.param(
            CPU,
            two(*pods("a", owners=[owner("x", kind="DaemonSet")]), *pods("bc")),
            "b",
            id="who-is-protected-counts-and-stays",
        ),
        pytest.param(
            {
                "thresholds": {"cpu": 20, "memory": 20},
                "targetThresholds": {"cpu": 50, "memory": 50},
            },
            two(*pods("abc"), *pods("x", "n2", requests={"memory": "2Gi"})),
            "",
            id="under-in-every-resource-or-not-at-all",
        ),
        pytest.param(
            {"thresholds": {"pods": 20}, "targetThresholds": {"pods": 50}},
            [
                make_node("n1", allocatable={**ROOMY, "pods": "5"}),
                make_node("n2", allocatable={**ROOMY, "pods": "5"}),
                *pods("abc", requests={}),
            ],
            "a",
            id="pods-are-a-resource",
        ),
    ],
)
def test_relieves(
    arguments: dict[str, object],
    manifests: list[Manifest],
    expected: str,
    corrections: Corrections,
) -> None:
    assert "".join(run(NAME, arguments, *manifests, corrections=corrections).names) == expected


@BOTH
def test_the_fullest_node_is_relieved_first(corrections: Corrections) -> None:
    said = run(
        NAME,
        CPU,
        *(make_node(f"n{number}") for number in range(1, 4)),
        *pods("abc", requests={"cpu": "800m", "memory": "64Mi"}),
        *pods("xyz", "n2", requests={"cpu": "800m", "memory": "128Mi"}),
        corrections=corrections,
    )
    assert said.names == ["x", "a"]


@pytest.mark.parametrize(
    ("corrections", "expected"), [(ALL, ["a"]), (NONE, ["a", "b"])], ids=["all", "none"]
)
def test_deviation_is_from_the_mean_of_all_nodes(
    corrections: Corrections, expected: list[str]
) -> None:
    """80 %, 10 % and 0 %, the last one cordoned: the mean is 30, so 35 is over and 25 is under.

    Ours evicts who finds room under 35 %, upstream until the whole node is used to 35 %.
    """
    said = run(
        NAME,
        {"thresholds": {"cpu": 5}, "targetThresholds": {"cpu": 5}, "useDeviationThresholds": True},
        make_node("n1"),
        make_node("n2"),
        make_node("n3", unschedulable=True),
        *pods("abcd"),
        *pods("x", "n2", requests={"cpu": "400m"}),
        corrections=corrections,
    )
    assert said.names == expected


def test_destinations_are_filled_no_further_than_their_target() -> None:
    """Ours by Pod; upstream goes on while anything at all is left, here with a fourth Pod."""
    objects = two(
        *pods("abcde", requests={"cpu": "720m"}), *pods("x", "n2", requests={"cpu": "400m"})
    )
    wide = {"thresholds": {"cpu": 10}, "targetThresholds": {"cpu": 45}}
    assert run(NAME, wide, *objects).names == ["a"]
    assert run(NAME, wide, *objects, corrections=NONE).names == ["a", "b"]


@pytest.mark.parametrize("mode", [ALL, ALL - {Correction.NODE_FIT_FALSE}], ids=["all", "without"])
def test_node_fit_false_leaves_the_sums(mode: Corrections) -> None:
    """Written off, whether a Pod fits the other node plays no part; that node's target does."""
    pinned = pods("ab", node_selector={"disk": "ssd"}, requests={"cpu": "1100m"})
    big = pods("c", requests={"cpu": "1800m"})
    said = run(NAME, CPU, *two(*big), evictor={"nodeFit": False}, corrections=mode)
    assert said.names == []
    said = run(NAME, CPU, *two(*pinned), evictor={"nodeFit": False}, corrections=mode)
    assert said.names == (["a"] if mode is ALL else [])


@pytest.mark.parametrize(
    "corrections",
    [ALL, NONE, frozenset({Correction.UTILIZATION_PLACEMENT})],
    ids=["all", "none", "placement-alone"],
)
def test_a_resource_without_threshold_that_is_used_up(corrections: Corrections) -> None:
    """Placement and resources together: only with both corrections somebody may go there."""
    arguments = {"thresholds": {"memory": 30}, "targetThresholds": {"memory": 60}}
    objects = two(*pods("ab", requests={"memory": "3Gi"}), *pods("x", "n2", requests={"cpu": "4"}))
    expected = ["a"] if corrections is ALL else []
    assert run(NAME, arguments, *objects, corrections=corrections).names == expected


def test_a_soft_taint_and_a_pod_that_is_too_big() -> None:
    """Tolerations and placement together: one lets it through, the other does not."""
    objects = [
        make_node("n1"),
        make_node("n2", taints=[taint(effect="PreferNoSchedule")]),
        *pods("a", requests={"cpu": "2200m"}),
    ]
    assert run(NAME, CPU, *objects).names == []
    without = ALL - {Correction.UTILIZATION_PLACEMENT}
    assert run(NAME, CPU, *objects, corrections=without).names == ["a"]


def test_two_victims_are_not_promised_the_same_room() -> None:
    """On memory, which has no threshold here."""
    objects = [
        make_node("n1"),
        make_node("n2", allocatable={**ROOMY, "memory": "5Gi"}),
        *pods("abcd", requests={"cpu": "900m", "memory": "3Gi"}),
    ]
    assert run(NAME, CPU, *objects).names == ["a"]


NO_ROOM = "no destination has room for it"


def test_one_that_may_not_leave_its_zone_does_not_stand_for_its_siblings() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    nodes = [
        make_node(name, labels={"zone": zone}) for name, zone in zip("mno", "aba", strict=True)
    ]
    stay = [
        *pods("123", "m", labels={"app": "db"}, owners=[]),
        *pods("4", "n", labels={"app": "db"}, owners=[]),
    ]

    said = run(
        NAME, CPU, *nodes, *stay, *pods("x", "m", affinity=near), *pods("yz", "n", affinity=near)
    )

    # To x nobody else is in zone a; to y x is.
    assert said.names == ["y"]


def test_nor_does_the_last_one_that_a_replacement_on_its_way_has_to_be_near() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    zones = {"m": "a", "n": "b", "o": "a", "p": "c"}
    db = {"labels": {"app": "db"}, "owners": []}
    store = cluster_store(
        *(make_node(name, labels={"zone": zone}) for name, zone in zones.items()),
        *(each for node, more in (("m", "123"), ("n", "45")) for each in pods(more, node, **db)),
        *(
            each
            for node, web in (("m", "x"), ("n", "y"))
            for each in pods(web, node, labels={"app": "web"})
        ),
    )
    promised = PromisedPods()
    promised.promise(pod_view(make_pod("coming", affinity=near)), "o")
    lister = Lister(store, GonePods(), promised)

    said = sweep(build(NAME, CPU), view_of(lister))

    assert said.names == ["y"]


def test_pods_that_have_no_room_make_way_for_a_smaller_one() -> None:
    said = run(NAME, CPU, *two(*pods("ab", requests={"cpu": "2200m"}), *pods("c")))
    assert said.names == ["c"]
    assert [(each.pod, each.reason) for each in said.rejections] == [
        (("Pod", "default", name), NO_ROOM) for name in "ab"
    ]
    assert wakes_on(said, changed(make_pod("z", node="n2"), None))


def test_so_many_are_named_and_the_rest_wakes_the_key_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(utilization, "_NAMED", 2)
    low = [make_pod(name, node="n1", requests={"cpu": "2200m"}) for name in "abcd"]
    away = taint("spot", effect="NoSchedule")
    objects = [make_node("n1"), make_node("n2"), make_node("n3", taints=[away]), *low]

    said = run(NAME, CPU, *objects)

    assert [(each.pod and each.pod[2], each.reason) for each in said.rejections] == [
        ("a", NO_ROOM),
        ("b", NO_ROOM),
        (None, "2 more Pods stay for such reasons"),
    ]
    assert wakes_on(said, changed(make_pod("z", node="n2"), None))


@pytest.mark.parametrize(
    ("corrections", "expected"),
    [
        pytest.param(ALL, ["a"], id="all"),
        pytest.param(NONE, ["idle", "a"], id="none"),
        pytest.param(
            ALL - {Correction.UTILIZATION_RESOURCES}, ["idle", "a"], id="without-resources"
        ),
    ],
)
def test_who_uses_nothing_of_what_is_too_much_stays(
    corrections: Corrections, expected: list[str]
) -> None:
    said = run(NAME, CPU, *two(*pods("abc"), make_pod("idle", node="n1")), corrections=corrections)
    assert said.names == expected


@pytest.mark.parametrize("corrections", [ALL, NONE], ids=["all", "none"])
def test_it_is_told_that_destinations_are_full(corrections: Corrections) -> None:
    """By memory, which has no threshold: with the correction it does not count."""
    full = make_pod("x", node="n2", requests={"memory": "8Gi"})
    said = run(NAME, CPU, *two(*pods("abc"), full), corrections=corrections)
    told = [each.reason for each in said.rejections]
    assert (said.names, told) == (
        (["a"], []) if corrections is ALL else ([], ["no destination has room left"])
    )


@pytest.mark.parametrize(
    ("manifests", "arguments", "expected"),
    [
        pytest.param(two(*pods("ab")), {}, [], id="nothing-to-tell"),
        pytest.param(
            two(*pods("abc"), *pods("xyz", "n2")), {}, ["no node is underutilized"], id="nowhere"
        ),
        pytest.param(
            two(*pods("abc")),
            {"numberOfNodes": 1},
            ["1 underutilized are not more than numberOfNodes, which is 1"],
            id="too-few",
        ),
        pytest.param(
            two(*pods("abc", priority=2_000_000_000)),
            {},
            ["node n1 is overutilized: cpu 60% over 50%, and none of its Pods may go"],
            id="nobody-may-go",
        ),
        pytest.param(
            two(*pods("abc", namespace="v")),
            {"evictableNamespaces": {"exclude": ["v"]}},
            ["evictableNamespaces excludes namespace v"] * 3,
            id="excluded",
        ),
        pytest.param(
            [make_node("n1"), make_node("n2", taints=[taint()]), *pods("a", requests={"cpu": "3"})],
            {},
            ["it tolerates the taints of no destination"],
            id="taints",
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
    (candidate,) = run(NAME, CPU, *two(*pods("abc"))).candidates
    assert candidate.reason == "node n1 is overutilized: cpu 60% over 50%"
    assert candidate.key == Key(0, NAME, ())
    assert candidate.cause.objects == (("Node", "", "n1"),)


def answered(verdict: Verdict) -> Said:
    lister = cluster(
        *(make_node(f"n{number}") for number in range(1, 4)), *pods("abc"), *pods("xyz", "n2")
    )
    taken: list[str] = []

    def answer(candidate: Candidate) -> Verdict:
        taken.append(candidate.pod.name)
        return verdict if len(taken) == 1 else TAKEN

    return sweep(build(NAME, CPU), view_of(lister), answer)


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        pytest.param(TAKEN, ["a", "x"], id="taken"),
        pytest.param(Verdict(taken=False), ["a", "b", "x"], id="refused-goes-on"),
        pytest.param(Verdict(taken=False, stop=Stop.NODE), ["a", "x"], id="the-node-is-left"),
        pytest.param(Verdict(taken=False, stop=Stop.ALL), ["a"], id="all-ends"),
    ],
)
def test_what_becomes_of_a_candidate_decides_on_the_next(
    verdict: Verdict, expected: list[str]
) -> None:
    assert answered(verdict).names == expected


def test_one_key_stands_for_a_profile_and_holds_while_its_own_are_on_their_way() -> None:
    strategy = build(NAME, CPU)
    assert strategy.HOLDS is Holds.OWN
    assert list(strategy.keys_of(cluster(*two()))) == [Key(0, NAME, ())]


def woken(change: Change) -> bool:
    strategy, lister = build(NAME, CPU), cluster(*two())
    actions = cluster_events(change)
    return any(
        subscription.action & actions
        and (subscription.narrow is None or subscription.narrow(change, lister, Key(0, NAME, ())))
        for subscription in strategy.EVENTS
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(changed(None, make_node()), True, id="node-added"),
        pytest.param(changed(make_node(), None), True, id="node-removed"),
        pytest.param(
            changed(make_node(), make_node(version="2", allocatable={"cpu": "8"})),
            True,
            id="allocatable",
        ),
        pytest.param(
            changed(make_node(), make_node(version="2", unschedulable=True)), True, id="cordoned"
        ),
        pytest.param(changed(make_node(), make_node(version="2", ready=False)), True, id="ready"),
        pytest.param(
            changed(make_node(taints=[taint()]), make_node(version="2")), True, id="taint-removed"
        ),
        pytest.param(changed(make_node(), make_node(version="2")), False, id="heartbeat"),
        pytest.param(changed(None, make_pod()), False, id="pod-not-bound"),
        pytest.param(changed(make_pod(), make_pod(version="2", node="n1")), True, id="pod-bound"),
        pytest.param(changed(make_pod(node="n1"), None), True, id="pod-deleted"),
        pytest.param(changed(make_pod(), None), False, id="pod-deleted-that-was-nowhere"),
        pytest.param(
            changed(make_pod(node="n1"), make_pod(version="2", node="n1", phase="Succeeded")),
            True,
            id="pod-finished",
        ),
        pytest.param(
            changed(make_pod(node="n1"), make_pod(version="2", node="n1", requests={"cpu": 1})),
            True,
            id="pod-resized",
        ),
        pytest.param(
            changed(make_pod(node="n1"), make_pod(version="2", node="n1", restarts=1)),
            False,
            id="restarts",
        ),
    ],
)
def test_is_woken_by_what_moves_a_sum_or_a_class(change: Change, expected: bool) -> None:
    assert woken(change) is expected


def test_a_pod_of_a_source_wakes_by_what_moves_no_sum() -> None:
    said = run(NAME, CPU, *two(*pods("abc", priority=2_000_000_000)))
    before, after = make_pod("a", node="n1"), make_pod("a", node="n1", annotations={EVICT: "true"})
    assert wakes_on(said, changed(before, after))
    elsewhere = make_pod("x", node="n2"), make_pod("x", node="n2", annotations={EVICT: "true"})
    assert not wakes_on(said, changed(*elsewhere))


@BOTH
def test_a_mean_of_a_resource_that_no_node_has_moves_nobody(corrections: Corrections) -> None:
    arguments = {
        "thresholds": {"example.com/gpu": 10},
        "targetThresholds": {"example.com/gpu": 10},
        "useDeviationThresholds": True,
    }
    assert run(NAME, arguments, *two(*pods("abc")), corrections=corrections).names == []


@pytest.mark.parametrize(
    ("corrections", "expected"),
    [pytest.param(ALL, ["a"], id="all"), pytest.param(NONE, ["a", "b", "c"], id="none")],
)
def test_what_a_node_does_not_have_is_not_too_much_used(
    corrections: Corrections, expected: list[str]
) -> None:
    """As where the driver of its GPUs is away: the node is over by cpu alone."""
    gpu = "example.com/gpu"
    arguments = {
        "thresholds": {"cpu": 20, gpu: 20},
        "targetThresholds": {"cpu": 50, gpu: 50},
    }
    requests = {"cpu": "800m", gpu: "1"}
    objects = [
        make_node("n1"),
        make_node("n2", allocatable={**ROOMY, gpu: "16"}),
        *pods("abc", requests=requests),
    ]
    assert run(NAME, arguments, *objects, corrections=corrections).names == expected
