"""One full pass: what is taken, what is refused, what counts, and what later strategies see."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from reactive_descheduler.api.eviction import Candidate
from reactive_descheduler.app.pass_driver import PassReport, Refusal, run_pass
from reactive_descheduler.app.policy import in_tree_registry, pass_limits
from reactive_descheduler.config.load import load_policy
from reactive_descheduler.framework.cycle import CycleNodes
from reactive_descheduler.strategies import PLUGINS
from tests.builders import Manifest, cluster_store, make_node, make_pod, node_view, owner

NOW = datetime(2026, 1, 2, tzinfo=UTC)
NODES = [make_node("node-1"), make_node("node-2")]
NO = Refusal(429, "its budget is used up")

POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
  - name: one
    pluginConfig:
      - {name: DefaultEvictor, args: {minReplicas: 2}}
      - {name: RemovePodsHavingTooManyRestarts, args: {podRestartThreshold: 5}}
      - {name: PodLifeTime, args: {maxPodLifeTimeSeconds: 60}}
    plugins: {deschedule: {enabled: [RemovePodsHavingTooManyRestarts, PodLifeTime]}}
"""


def _pod(name: str, *, restarts: int = 0, node: str = "node-1", workload: str = "web") -> Manifest:
    return make_pod(name, node=node, restarts=restarts, owners=[owner(workload)])


def _pass(
    *pods: Manifest,
    refusals: dict[str, Refusal] | None = None,
    limits: str = "",
    one_offer: bool = True,
    observing: frozenset[str] = frozenset(),
) -> tuple[PassReport, list[str]]:
    """Run a pass; return its report, and the requests made as `strategy pod`."""
    policy = load_policy(POLICY + limits, source="policy", plugins=PLUGINS)
    asked: list[str] = []

    def ask(candidate: Candidate) -> Refusal | None:
        asked.append(_text(candidate))
        return (refusals or {}).get(candidate.pod.name)

    report = run_pass(
        in_tree_registry().profiles(policy, priority_classes={}),
        store=cluster_store(*NODES, *pods),
        nodes=CycleNodes(None, {str(n["metadata"]["name"]): node_view(n) for n in NODES}),  # type: ignore[index]
        now=NOW,
        limits=pass_limits(policy),
        ask=ask,
        one_offer=one_offer,
        observing=observing,
    )
    return report, asked


def _text(candidate: Candidate) -> str:
    short = {"RemovePodsHavingTooManyRestarts": "restarts", "PodLifeTime": "age"}
    return f"{short[candidate.key.strategy]} {candidate.pod.name}"


def test_takes_what_each_strategy_offers_once() -> None:
    report, asked = _pass(_pod("a", restarts=9), _pod("b"), _pod("c"))
    # `a` is too old as well, but gone by then; with it only two of `web` are left, then one.
    assert asked == ["restarts a", "age b", "age c"]
    assert [_text(candidate) for candidate in report.evicted] == asked
    assert (report.refused, report.held, report.failed, report.failures) == ([], [], [], 0)


@pytest.mark.parametrize(
    ("one_offer", "taken"),
    [
        # Gone: only one replica is left, which minReplicas protects.
        pytest.param(True, ["restarts a"], id="gone"),
        # Terminating, as upstream's cache shows it: it still counts as a replica.
        pytest.param(False, ["restarts a", "age b"], id="terminating"),
    ],
)
def test_how_a_taken_pod_looks_to_what_follows(one_offer: bool, taken: list[str]) -> None:
    report, _ = _pass(_pod("a", restarts=9), _pod("b"), one_offer=one_offer)
    assert [_text(candidate) for candidate in report.evicted] == taken


@pytest.mark.parametrize(
    ("one_offer", "requests"),
    [
        pytest.param(True, ["restarts a", "age b"], id="one offer a pass"),
        pytest.param(False, ["restarts a", "age a", "age b"], id="as upstream"),
    ],
)
def test_a_refused_pod_is_offered_by_another_strategy(one_offer: bool, requests: list[str]) -> None:
    report, asked = _pass(_pod("a", restarts=9), _pod("b"), refusals={"a": NO}, one_offer=one_offer)
    assert asked == requests
    assert {refused.refusal for refused in report.refused} == {NO}
    assert [_text(candidate) for candidate in report.evicted] == ["age b"]
    assert report.failures == len(requests) - 1


def test_what_was_refused_does_not_count_in_limits() -> None:
    report, _ = _pass(
        _pod("a"), _pod("b"), _pod("c"), refusals={"a": NO}, limits="maxNoOfPodsToEvictTotal: 1\n"
    )
    assert [_text(candidate) for candidate in report.evicted] == ["age b"]
    assert [_text(held.candidate) for held in report.held] == ["age c"]
    assert report.failures == 2


@pytest.mark.parametrize(
    ("limit", "taken", "held"),
    [
        # The total ends the strategy, so that `c` is not offered any more.
        pytest.param("maxNoOfPodsToEvictTotal: 1", ["age a"], ["age b"], id="total"),
        pytest.param(
            "maxNoOfPodsToEvictPerNode: 1", ["age a", "age d"], ["age b", "age c"], id="node"
        ),
        pytest.param(
            "maxNoOfPodsToEvictPerNamespace: 1",
            ["age a"],
            ["age b", "age c", "age d"],
            id="namespace",
        ),
    ],
)
def test_limits_hold_what_goes_beyond_them(limit: str, taken: list[str], held: list[str]) -> None:
    pods = [_pod("a"), _pod("b"), _pod("c"), _pod("d", node="node-2")]
    report, asked = _pass(*pods, limits=limit)
    assert asked == taken
    assert [_text(each.candidate) for each in report.held] == held
    assert all("maximum number of evicted pods" in each.held.reason for each in report.held)


def test_a_second_request_that_upstream_makes_is_not_made_but_counts() -> None:
    forced = make_pod(
        "a",
        node="node-1",
        restarts=9,
        annotations={"descheduler.alpha.kubernetes.io/evict": "true"},
    )
    lenient = "maxNoOfPodsToEvictTotal: 2\nreactive: {corrections: none}\n"
    report, asked = _pass(forced, _pod("b"), limits=lenient, one_offer=False)
    assert asked == ["restarts a"]
    assert [_text(held.candidate) for held in report.held] == ["age b"]


def test_what_is_only_observed_stays_for_those_that_act() -> None:
    observing = frozenset({"RemovePodsHavingTooManyRestarts"})
    report, asked = _pass(
        _pod("a", restarts=9),
        _pod("b"),
        _pod("c"),
        observing=observing,
        limits="maxNoOfPodsToEvictTotal: 1\n",
    )
    assert [_text(candidate) for candidate in report.observed] == ["restarts a"]
    assert asked == ["age a"]
    assert [_text(candidate) for candidate in report.evicted] == ["age a"]
