"""What a plan tells: who goes, who stays and why, what a limit holds, and what is odd."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from reactive_descheduler.api.errors import PolicyError, SnapshotError
from reactive_descheduler.app.plan import Plan, check_dump, kinds_to_read, make_plan
from reactive_descheduler.app.snapshot import snapshot_of
from reactive_descheduler.config.load import load_policy
from reactive_descheduler.config.loaded import LoadedPolicy
from reactive_descheduler.strategies import PLUGINS
from tests.builders import (
    Manifest,
    make_budget,
    make_claim,
    make_namespace,
    make_node,
    make_pod,
    make_priority_class,
    owner,
    taint,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)
NODES = (make_node("node-1", taints=[taint("dedicated")]), make_node("node-2"))


def _policy(evictor: str = "", *, top: str = "") -> LoadedPolicy:
    text = f"""
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
{top}
profiles:
  - name: main
    pluginConfig:
      - {{name: DefaultEvictor, args: {{{evictor}}}}}
      - {{name: RemovePodsViolatingNodeTaints, args: {{}}}}
      - {{name: PodLifeTime, args: {{maxPodLifeTimeSeconds: 100000}}}}
    plugins: {{deschedule: {{enabled: [RemovePodsViolatingNodeTaints, PodLifeTime]}}}}
"""
    return load_policy(text, source="policy", plugins=PLUGINS)


def _plan(
    *manifests: Manifest, policy: LoadedPolicy | None = None, nodes: Sequence[Manifest] = NODES
) -> Plan:
    snapshot = snapshot_of([*nodes, *manifests], source="dump")
    return make_plan(policy or _policy(), snapshot, now=NOW)


def _measured_policy(source: str, resource: str = "cpu") -> LoadedPolicy:
    asked = "{source: KubernetesMetrics}"
    if source == "Prometheus":
        asked = "{source: Prometheus, prometheus: {query: busy}}"
    text = f"""
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
metricsProviders: [{{source: {source}, prometheus: {{url: "http://p"}}}}]
profiles:
  - name: main
    pluginConfig:
      - name: LowNodeUtilization
        args:
          thresholds: {{{resource}: 20}}
          targetThresholds: {{{resource}: 80}}
          metricsUtilization: {asked}
    plugins: {{balance: {{enabled: [LowNodeUtilization]}}}}
"""
    return load_policy(text, source="policy", plugins=PLUGINS)


def _measured(kind: str, name: str, cpu: str) -> Manifest:
    """Half a minute before NOW."""
    usage = {"cpu": cpu, "memory": "1Mi"}
    return {
        "kind": kind,
        "metadata": {"name": name, "namespace": "default" if kind == "PodMetrics" else ""},
        "timestamp": "2026-01-01T23:59:30Z",
        "usage": usage,
        "containers": [{"usage": usage}],
    }


BUSY = (
    make_node("node-1"),
    make_node("node-2"),
    _measured("NodeMetrics", "node-1", "3900m"),
    _measured("NodeMetrics", "node-2", "100m"),
)


def test_goes_by_what_a_dump_holds_of_measurements() -> None:
    pods = [make_pod("web-1", node="node-1"), _measured("PodMetrics", "web-1", "2")]
    assert _names(_plan(*pods, policy=_measured_policy("KubernetesMetrics"), nodes=BUSY)) == [
        "web-1"
    ]


def test_measurements_that_are_too_old_move_nobody() -> None:
    pods = [make_pod("web-1", node="node-1"), _measured("PodMetrics", "web-1", "2")]
    snapshot = snapshot_of([*BUSY, *pods], source="dump")
    policy = _measured_policy("KubernetesMetrics")
    plan = make_plan(policy, snapshot, now=NOW + timedelta(minutes=2))
    assert plan.evictions == ()
    [failed] = plan.failed
    assert "the usage of node node-1 was measured 150 s ago" in failed.error


def test_a_dump_without_the_measurements_that_decide_is_refused() -> None:
    dump = snapshot_of([*NODES, make_pod("web-1", node="node-1")], source="dump")
    with pytest.raises(SnapshotError, match="no NodeMetrics and no PodMetrics") as refusal:
        check_dump(_measured_policy("KubernetesMetrics"), dump, source="dump")
    assert "nodes.metrics.k8s.io,pods.metrics.k8s.io" in refusal.value.hint


def test_warns_that_a_dump_knows_nothing_of_prometheus() -> None:
    plan = _plan(policy=_measured_policy("Prometheus", "MetricResource"))
    assert any("what Prometheus measures" in warning for warning in plan.warnings)


def test_warns_of_what_could_not_be_measured() -> None:
    snapshot = snapshot_of(NODES, source="dump")
    snapshot.unmeasured.append("404 NotFound")
    plan = make_plan(_measured_policy("KubernetesMetrics"), snapshot, now=NOW)
    assert "usage cannot be measured: 404 NotFound" in plan.warnings


def _names(plan: Plan) -> list[str]:
    return [pod.name for pod in plan.evictions]


def test_tells_of_each_eviction_what_and_why() -> None:
    plan = _plan(make_pod("web-1", node="node-1"), make_pod("web-2", node="node-2"))
    (pod,) = plan.evictions
    assert (pod.profile, pod.strategy) == ("main", "RemovePodsViolatingNodeTaints")
    assert (pod.namespace, pod.name, pod.node) == ("default", "web-1", "node-1")
    assert (pod.workload, pod.cause, pod.note) == ("ReplicaSet default/web", "taint", "")
    assert "dedicated" in pod.reason
    assert (plan.nodes, plan.nodes_looked_at, plan.warnings) == (2, 2, ())


def test_tells_of_each_refusal_by_which_filter_and_what_lifts_it() -> None:
    daemon = make_pod("agent-1", node="node-1", owners=[owner("agent", kind="DaemonSet")])
    plan = _plan(daemon)
    (pod,) = plan.refused
    assert (pod.name, pod.by) == ("agent-1", "DaemonSetPods")
    assert "Pod default/agent-1 gets other annotations" in pod.lifted_when
    assert plan.evictions == ()


def test_what_is_not_due_yet_stands_apart_the_soonest_first() -> None:
    plan = _plan(
        make_pod("late", node="node-2", created="2026-01-01T23:00:00Z"),
        make_pod("soon", node="node-2", created="2026-01-01T00:00:00Z"),
    )
    assert [(pod.name, pod.strategy) for pod in plan.later] == [
        ("soon", "PodLifeTime"),
        ("late", "PodLifeTime"),
    ]
    assert plan.refused == ()


def test_a_pod_that_goes_is_not_told_as_staying() -> None:
    plan = _plan(make_pod("web-1", node="node-1"))
    assert _names(plan) == ["web-1"]
    assert (plan.refused, plan.later) == ((), ())


def test_tells_what_a_limit_holds() -> None:
    policy = _policy(top="maxNoOfPodsToEvictPerNode: 1")
    plan = _plan(make_pod("web-1", node="node-1"), make_pod("web-2", node="node-1"), policy=policy)
    assert _names(plan) == ["web-1"]
    assert [(pod.name, pod.note) for pod in plan.held] == [
        ("web-2", "maximum number of evicted pods per node reached (1)")
    ]


def test_what_a_budget_would_refuse_after_the_evictions_before_is_no_eviction() -> None:
    plan = _plan(
        make_pod("web-1", node="node-1"),
        make_pod("web-2", node="node-1"),
        make_budget("web", allowed=1),
    )
    assert _names(plan) == ["web-1"]
    (refused,) = plan.refused_by_budget
    assert refused.name == "web-2"
    assert refused.note.startswith("budget web is used up")


def test_a_pod_of_two_budgets_is_refused_for_ever() -> None:
    plan = _plan(
        make_pod("web-1", node="node-1"),
        make_budget("one", allowed=1),
        make_budget("two", allowed=1),
    )
    assert plan.evictions == ()
    (refused,) = plan.refused_by_budget
    assert "more than one PodDisruptionBudget selects it (one, two)" in refused.note


def test_what_a_budget_would_refuse_counts_for_no_limit() -> None:
    plan = _plan(
        make_pod("web-1", node="node-1", labels={"app": "web"}),
        make_pod("web-2", node="node-1", labels={"app": "other"}),
        make_budget("web", allowed=0, selector={"matchLabels": {"app": "web"}}),
        policy=_policy(top="maxNoOfPodsToEvictTotal: 1"),
    )
    assert [pod.name for pod in plan.refused_by_budget] == ["web-1"]
    assert _names(plan) == ["web-2"]
    assert plan.held == ()


@pytest.mark.parametrize(
    ("nodes", "policy", "manifests", "words"),
    [
        pytest.param(
            (NODES[0], make_node("node-2", ready=False)),
            _policy(),
            (),
            "fewer than 2 of the 2 nodes are ready, so nothing is looked at",
            id="one ready node",
        ),
        pytest.param(
            NODES,
            _policy(top="nodeSelector: pool=blue"),
            (),
            "ready and selected by the policy's nodeSelector",
            id="no node selected",
        ),
        pytest.param(
            NODES,
            load_policy(
                "{apiVersion: descheduler/v1alpha2, kind: DeschedulerPolicy}",
                source="policy",
                plugins=PLUGINS,
            ),
            (),
            "profiles: there is none, so nothing is evicted",
            id="no profile",
        ),
        pytest.param(
            NODES,
            _policy(),
            (make_pod("odd", spec={"priority": "high"}),),
            "unreadable, so what has to do with it stays: Pod default/odd",
            id="unreadable Pod",
        ),
        pytest.param(
            NODES,
            _policy("podProtections: {extraEnabled: [PodsWithoutPDB]}"),
            (),
            "there is no PodDisruptionBudget",
            id="no budget where one is asked for",
        ),
    ],
)
def test_warns(
    nodes: Sequence[Manifest], policy: LoadedPolicy, manifests: Sequence[Manifest], words: str
) -> None:
    plan = _plan(make_pod("web-1", node="node-1"), *manifests, policy=policy, nodes=nodes)
    assert any(words in warning for warning in plan.warnings)


STORAGE = (
    "podProtections: {extraEnabled: [PodsWithPVC], config: {PodsWithPVC:"
    " {protectedStorageClasses: [{name: fast}]}}}"
)
CLAIMING = make_pod(
    "db-1", node="node-1", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
)


@pytest.mark.parametrize(
    ("policy", "manifests", "missing"),
    [
        pytest.param(_policy(), (), "no Node and no Pod", id="nothing"),
        pytest.param(_policy(), NODES, "no Pod", id="no Pods"),
        pytest.param(
            _policy("namespaceLabelSelector: {matchLabels: {a: b}}"),
            (*NODES, CLAIMING),
            "no Namespace",
            id="namespaces",
        ),
        pytest.param(
            _policy("priorityThreshold: {name: gold}"),
            (*NODES, CLAIMING),
            "no PriorityClass",
            id="priority classes",
        ),
        pytest.param(_policy(STORAGE), (*NODES, CLAIMING), "no PersistentVolumeClaim", id="claims"),
    ],
)
def test_a_dump_that_lacks_what_decisions_rest_on_is_refused(
    policy: LoadedPolicy, manifests: Sequence[Manifest], missing: str
) -> None:
    with pytest.raises(SnapshotError) as refusal:
        check_dump(policy, snapshot_of(manifests, source="dump"), source="dump")
    assert str(refusal.value) == f"dump: holds {missing}, which are needed"


@pytest.mark.parametrize(
    ("policy", "manifests"),
    [
        pytest.param(_policy(), (), id="plain"),
        pytest.param(_policy(STORAGE), (make_claim("data", storage_class="fast"),), id="claims"),
        pytest.param(
            _policy("priorityThreshold: {name: gold}"),
            (make_priority_class("gold", 5),),
            id="priority classes",
        ),
        pytest.param(
            _policy("namespaceLabelSelector: {matchLabels: {a: b}}"),
            (make_namespace("default"),),
            id="namespaces",
        ),
    ],
)
def test_a_dump_with_all_that_is_needed_will_do(
    policy: LoadedPolicy, manifests: Sequence[Manifest]
) -> None:
    check_dump(policy, snapshot_of([*NODES, CLAIMING, *manifests], source="dump"), source="dump")


@pytest.mark.parametrize(
    ("priority", "goes"), [pytest.param(4, True, id="below"), pytest.param(5, False, id="at")]
)
def test_a_priority_class_goes_by_name(priority: int, goes: bool) -> None:
    policy = _policy("priorityThreshold: {name: gold}")
    plan = _plan(
        make_pod("web-1", node="node-1", priority=priority),
        make_priority_class("gold", 5),
        policy=policy,
    )
    assert bool(plan.evictions) is goes
    assert "PriorityClass" in kinds_to_read(policy)


def test_a_priority_class_that_is_missing_refuses_the_policy() -> None:
    with pytest.raises(PolicyError, match="PriorityClass gold does not exist"):
        _plan(make_pod(node="node-1"), policy=_policy("priorityThreshold: {name: gold}"))


_EVICT = "descheduler.alpha.kubernetes.io/evict"


@pytest.mark.parametrize(
    ("values", "top", "told"),
    [
        pytest.param(["false"], "", ["default/web-0"], id="false"),
        pytest.param(["True", ""], "", ["default/web-1"], id="empty"),
        pytest.param(["true"], "", [], id="true"),
        pytest.param(["no"] * 7, "", ["default/web-4 and 2 more"], id="many"),
        pytest.param(["false"], "reactive: {corrections: none}", [], id="any-as-upstream"),
    ],
)
def test_warns_of_evict_annotations_that_do_nothing(
    values: list[str], top: str, told: list[str]
) -> None:
    pods = [
        make_pod(f"web-{number}", node="node-2", annotations={_EVICT: value})
        for number, value in enumerate(values)
    ]
    warnings = [each for each in _plan(*pods, policy=_policy(top=top)).warnings if _EVICT in each]
    assert [each.rpartition(", ")[2].rpartition(": ")[2] for each in warnings] == told


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        pytest.param(
            ["9", "9"],
            ["node fit keeps all 2 Pods that would go otherwise, so nothing is evicted"],
            id="none-fits",
        ),
        pytest.param(["9", "1"], [], id="one-fits"),
        pytest.param([], [], id="none-is-wanted-gone"),
    ],
)
def test_says_that_node_fit_alone_keeps_everybody(sizes: list[str], told: list[str]) -> None:
    pods = [
        make_pod(f"web-{number}", node="node-1", requests={"cpu": cpu})
        for number, cpu in enumerate(sizes)
    ]
    assert list(_plan(*pods, policy=_policy("nodeFit: true")).warnings) == told
