"""What upstream would do differently on a small cluster, and which correction is told to decide."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime

import pytest

from reactive_descheduler.api.errors import PolicyError
from reactive_descheduler.app.deciding import Manner
from reactive_descheduler.app.plan_diff import (
    Comparison,
    Outcome,
    PodDifference,
    compare,
    read_both_ways,
    widest,
)
from reactive_descheduler.app.policy import needed_kinds
from reactive_descheduler.app.snapshot import snapshot_of
from reactive_descheduler.config.corrections import ALL, Correction
from tests.builders import Manifest, make_budget, make_node, make_pod, taint

NOW = datetime(2026, 1, 2, tzinfo=UTC)
EVICT = "descheduler.alpha.kubernetes.io/evict"
TAINTED = make_node("n1", taints=[taint("gone")])
OTHER = make_node("n2")
BOTH_CONFIGURED = (
    "[{name: RemovePodsViolatingNodeTaints, args: {}},"
    " {name: RemovePodsHavingTooManyRestarts, args: {podRestartThreshold: 5}}]"
)


def _policy(*, evictor: str = "", configured: str = BOTH_CONFIGURED, more: str = "") -> str:
    return f"""
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
{more}
profiles:
  - name: main
    pluginConfig: [{{name: DefaultEvictor, args: {{{evictor}}}}}, {configured[1:-1]}]
    plugins:
      deschedule: {{enabled: [RemovePodsViolatingNodeTaints, RemovePodsHavingTooManyRestarts]}}
"""


def _compare(*objects: Manifest, policy: str) -> Comparison:
    reading = read_both_ways(policy, source="policy")
    return compare(reading, snapshot_of(objects, source="dump"), now=NOW)


def _fates(comparison: Comparison) -> dict[str, tuple[Outcome, Outcome, tuple[Correction, ...]]]:
    return {each.name: (each.ours, each.upstream, each.decided_by) for each in comparison.pods}


def test_tells_of_each_pod_what_decides() -> None:
    comparison = _compare(
        TAINTED,
        make_node("n2", taints=[taint("node.kubernetes.io/unschedulable")], unschedulable=True),
        make_pod("alike", node="n1"),
        make_pod("bare", node="n1", owners=[], annotations={EVICT: "false"}),
        make_pod("cordoned", node="n2"),
        policy=_policy(),
    )
    assert _fates(comparison) == {
        "bare": (Outcome.STAYS, Outcome.EVICTED, (Correction.EVICT_ANNOTATION,)),
        "cordoned": (Outcome.STAYS, Outcome.EVICTED, (Correction.CORDON_ALONE,)),
    }
    assert (
        comparison.evicted_by_both,
        comparison.evicted_by_ours_only,
        comparison.evicted_by_upstream_only,
    ) == (1, 0, 2)
    assert [(each.correction, each.pods) for each in comparison.deciding] == [
        (Correction.EVICT_ANNOTATION, 1),
        (Correction.CORDON_ALONE, 1),
    ]
    bare, cordoned = comparison.pods
    assert bare.why == "FailedBarePods: it has no owner to replace it"
    assert cordoned.why == Correction.CORDON_ALONE.ours
    assert cordoned.strategy == "RemovePodsViolatingNodeTaints"
    assert cordoned.node == "n2"


def test_what_another_strategy_waits_for_is_not_why_a_pod_stays() -> None:
    policy = f"""
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
  - name: main
    pluginConfig:
      - {{name: RemovePodsViolatingNodeTaints, args: {{}}}}
      - {{name: PodLifeTime, args: {{maxPodLifeTimeSeconds: {10**9}}}}}
    plugins: {{deschedule: {{enabled: [PodLifeTime, RemovePodsViolatingNodeTaints]}}}}
"""
    cordoned = make_node(
        "n3", taints=[taint("node.kubernetes.io/unschedulable")], unschedulable=True
    )
    comparison = _compare(OTHER, make_node("n1"), cordoned, make_pod("p", node="n3"), policy=policy)
    (pod,) = comparison.pods
    assert (pod.strategy, pod.why) == (
        "RemovePodsViolatingNodeTaints",
        Correction.CORDON_ALONE.ours,
    )


def test_tells_of_whom_only_ours_evicts_why_it_goes() -> None:
    protecting = "podProtections: {extraEnabled: [PodsWithoutPDB]}"
    comparison = _compare(
        TAINTED,
        OTHER,
        make_pod("covered", node="n1"),
        make_budget(allowed=1),
        policy=_policy(evictor=protecting),
    )
    assert _fates(comparison) == {
        "covered": (Outcome.EVICTED, Outcome.STAYS, (Correction.PODS_WITHOUT_PDB,))
    }
    assert "does not tolerate taint gone" in comparison.pods[0].why
    assert comparison.evicted_by_ours_only == 1


def test_a_pod_that_is_asked_for_twice_differs() -> None:
    twice = make_pod("twice", node="n1", restarts=9)
    comparison = _compare(TAINTED, OTHER, twice, make_budget(allowed=0), policy=_policy())
    (pod,) = comparison.pods
    assert (pod.ours, pod.ours_times) == (Outcome.REFUSED, 1)
    assert (pod.upstream, pod.upstream_times) == (Outcome.REFUSED, 2)
    assert pod.decided_by == (Correction.ONE_OFFER_PER_PASS,)


def test_a_pod_that_counts_twice_differs_and_two_keep_it_from_that_each() -> None:
    twice = make_pod("twice", node="n1", restarts=9, annotations={EVICT: "true"})
    comparison = _compare(TAINTED, OTHER, twice, policy=_policy())
    (pod,) = comparison.pods
    assert (pod.ours, pod.ours_times) == (Outcome.EVICTED, 1)
    assert (pod.upstream, pod.upstream_times) == (Outcome.EVICTED, 2)
    # Going is a fact, which the annotation does not lift; and nobody is offered twice.
    assert pod.manner is Manner.EACH
    assert pod.decided_by == (Correction.EVICT_ANNOTATION, Correction.ONE_OFFER_PER_PASS)
    assert comparison.evicted_by_both == 1


def test_what_a_limit_holds_for_upstream_alone_is_a_difference() -> None:
    comparison = _compare(
        TAINTED,
        OTHER,
        make_pod("a", node="n1", owners=[], annotations={EVICT: "no"}),
        make_pod("b", node="n1"),
        policy=_policy(more="maxNoOfPodsToEvictTotal: 1"),
    )
    # The first takes upstream's only place from the second.
    assert _fates(comparison) == {
        "a": (Outcome.STAYS, Outcome.EVICTED, (Correction.EVICT_ANNOTATION,)),
        "b": (Outcome.EVICTED, Outcome.HELD, (Correction.EVICT_ANNOTATION,)),
    }


def test_two_that_keep_a_pod_each_are_both_told() -> None:
    listening = {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]}
    (pod,) = _compare(
        make_node("n1", taints=[taint("ToBeDeletedByClusterAutoscaler")]),
        OTHER,
        make_pod("a", node="n1", spec=listening),
        make_pod("b", node="n2", spec=listening),
        policy=_policy(evictor="nodeFit: true"),
    ).pods
    assert pod.name == "a"
    assert pod.manner is Manner.EACH
    assert pod.decided_by == (Correction.NODE_FIT_HOST_PORTS, Correction.CLAIMED_NODES)


def test_where_both_do_the_same_nothing_is_told() -> None:
    comparison = _compare(TAINTED, OTHER, make_pod("a", node="n1"), policy=_policy())
    assert (comparison.pods, comparison.deciding, comparison.documents) == ((), (), ())
    assert comparison.evicted_by_both == 1


def test_the_passes_leave_the_snapshot_as_it_was() -> None:
    reading = read_both_ways(_policy(), source="policy")
    objects = [TAINTED, OTHER, make_pod("a", node="n1"), make_pod("b", node="n1", restarts=9)]
    snapshot = snapshot_of(objects, source="dump")
    first = compare(reading, snapshot, now=NOW)
    assert asdict(compare(reading, snapshot, now=NOW)) == asdict(first)
    assert [pod.deleted for pod in snapshot.lister.pods()] == [None, None]


@pytest.mark.parametrize(
    ("policy", "compared"),
    [
        pytest.param(_policy(), ALL, id="nothing-written"),
        pytest.param(
            _policy(more="reactive: {corrections: [cordonAlone]}"),
            {Correction.CORDON_ALONE},
            id="a-list",
        ),
        pytest.param(_policy(more="reactive: {corrections: none}"), ALL, id="none"),
    ],
)
def test_compares_the_corrections_of_the_policy(policy: str, compared: set[Correction]) -> None:
    assert read_both_ways(policy, source="policy").policy.corrections == compared


def test_a_correction_that_is_off_decides_nothing() -> None:
    bare = make_pod("bare", node="n1", owners=[], annotations={EVICT: "false"})
    policy = _policy(more="reactive: {corrections: [cordonAlone]}")
    assert _compare(TAINTED, OTHER, bare, policy=policy).pods == ()


def test_upstream_alone_refuses_what_is_not_configured() -> None:
    configured = "[{name: RemovePodsHavingTooManyRestarts, args: {podRestartThreshold: 5}}]"
    policy = _policy(configured=configured)
    comparison = _compare(TAINTED, OTHER, make_pod("a", node="n1"), policy=policy)
    (document,) = comparison.documents
    assert document.refused_by == "upstream"
    assert document.decided_by is Correction.MISSING_PLUGIN_CONFIG
    assert "has no entry in pluginConfig" in document.problems[0].message
    assert comparison.evicted_by_both == 1  # as if upstream had read it


def test_ours_alone_refuses_a_key_that_upstream_ignores() -> None:
    policy = _policy(more="maxNoOfPodsToEvictTOTAL: 0")
    comparison = _compare(TAINTED, OTHER, make_pod("a", node="n1"), policy=policy)
    (document,) = comparison.documents
    assert document.refused_by == "ours"
    assert document.decided_by is Correction.STRICT_DOCUMENTS
    assert document.problems[0].path == "maxNoOfPodsToEvictTOTAL"
    assert comparison.evicted_by_both == 1
    assert read_both_ways(policy, source="policy").policy.warnings == ()


def test_a_key_that_is_only_warned_of_is_still_warned_of() -> None:
    policy = _policy(more="maxNoOfPodsToEvictTOTAL: 0\nreactive: {corrections: [booking]}")
    reading = read_both_ways(policy, source="policy")
    assert reading.documents == ()
    assert [each.path for each in reading.policy.warnings] == ["maxNoOfPodsToEvictTOTAL"]


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        pytest.param("a: [", "policy", id="no-yaml"),
        pytest.param(_policy(more="gracePeriodSeconds: x"), "gracePeriodSeconds", id="wrong-type"),
        pytest.param(_policy(configured="[]", more="unknown: 1"), "unknown", id="each-for-its-own"),
    ],
)
def test_what_neither_reads_is_refused_as_ever(policy: str, told: str) -> None:
    with pytest.raises(PolicyError, match=told):
        read_both_ways(policy, source="policy")


def test_every_kind_is_read_that_some_pass_reads() -> None:
    spreading = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
  - name: main
    pluginConfig: [{name: DefaultEvictor, args: {nodeFit: false}}, {name: RemoveDuplicates}]
    plugins: {balance: {enabled: [RemoveDuplicates]}}
"""
    policy = read_both_ways(spreading, source="policy").policy
    assert "PersistentVolume" not in needed_kinds(policy)
    assert "PersistentVolume" in needed_kinds(widest(policy))


def test_an_exit_code_that_differs_is_told() -> None:
    comparison = _compare(
        TAINTED,
        OTHER,
        make_pod("a", node="n1"),
        make_budget("one", allowed=1),
        make_budget("two", allowed=1),
        policy=_policy(),
    )
    assert [(each.correction, each.pods) for each in comparison.deciding] == [
        (Correction.EXIT_CODES, 0)
    ]


def test_pods_stand_by_namespace_and_name() -> None:
    pods = [
        make_pod(name, namespace=namespace, node="n1", owners=[], annotations={EVICT: "false"})
        for namespace, name in (("b", "a"), ("a", "z"), ("a", "b"))
    ]
    told: tuple[PodDifference, ...] = _compare(TAINTED, OTHER, *pods, policy=_policy()).pods
    assert [(each.namespace, each.name) for each in told] == [("a", "b"), ("a", "z"), ("b", "a")]
