"""`run --once`: whom the pass leaves and why, and how soon it gives up on an API server."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import anyio
import pytest
from structlog.typing import EventDict

from reactive_descheduler.api.errors import Unreachable
from reactive_descheduler.app.daemon import Daemon
from reactive_descheduler.app.pass_driver import PassReport
from reactive_descheduler.app.settings import RunSettings
from reactive_descheduler.client.kube import connect
from reactive_descheduler.config.load import load_policy
from reactive_descheduler.kit.clock import LoopClock
from reactive_descheduler.sandbox.cluster import running_sandbox
from reactive_descheduler.sandbox.faults import Fault
from reactive_descheduler.strategies import PLUGINS
from tests.builders import Manifest, make_budget, make_namespace, make_node, make_pod, taint
from tests.daemon.world import AT_ONCE, START, TAINTS, Here, small_cluster

BOTH = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: default
  pluginConfig:
  - name: PodLifeTime
    args: {maxPodLifeTimeSeconds: 100000000}
  plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaints, PodLifeTime]}}
"""


async def one_pass(
    objects: Iterable[Manifest], *, policy: str = TAINTS + AT_ONCE, faults: Iterable[Fault] = ()
) -> PassReport:
    clock = LoopClock(START)
    async with running_sandbox(tls=False, controllers=False, clock=clock) as cluster:
        cluster.load(list(objects))
        for fault in faults:
            cluster.faults.add(fault)
        return await _against(cluster.url, policy, clock)


async def _against(url: str, policy: str, clock: LoopClock) -> PassReport:
    async with await connect(source=Here(url), clock=clock) as connection:
        daemon = Daemon(
            RunSettings(policy_config_file="policy.yaml", once=True),
            load_policy(policy, source="policy.yaml", plugins=PLUGINS),
            connection,
            clock=clock,
            random=Random(1),
            priority_classes={},
        )
        return await daemon.run_once(60.0)


def tainted(*pods: Manifest) -> list[Manifest]:
    return [make_namespace(), make_node("node-1", taints=[taint()]), make_node("node-2"), *pods]


def lines(logs: list[EventDict], event: str, *keys: str) -> list[tuple[object, ...]]:
    return [tuple(line[key] for key in keys) for line in logs if line["event"] == event]


async def test_a_pod_under_two_budgets_is_named_by_a_warning(logs: list[EventDict]) -> None:
    pod = make_pod("a", node="node-1", labels={"app": "web"})
    report = await one_pass(tainted(pod, make_budget("one"), make_budget("two")))

    assert (report.evicted, report.held, report.refused) == ([], [], [])
    assert [rejection.by for rejection in report.rejected] == ["lane"]
    keys = ("log_level", "pod", "node", "strategy", "profile", "by")
    assert lines(logs, "Pod stays", *keys) == [
        ("warning", "default/a", "node-1", "RemovePodsViolatingNodeTaints", "default", "lane")
    ]
    ((reason,),) = lines(logs, "Pod stays", "reason")
    assert "more than one PodDisruptionBudget selects it (one, two)" in str(reason)


async def test_whom_a_filter_keeps_is_told_at_verbosity_four(logs: list[EventDict]) -> None:
    objects = tainted(make_pod("bare", node="node-1", owners=()))
    report = await one_pass(objects, policy=BOTH + AT_ONCE)

    assert {rejection.by for rejection in report.rejected} == {"PodLifeTime", "FailedBarePods"}
    assert lines(logs, "Pod stays", "v", "pod", "by") == [(4, "default/bare", "FailedBarePods")]


async def test_whom_a_budget_or_a_limit_holds_is_told(logs: list[EventDict]) -> None:
    pods = [make_pod(name, node="node-1", labels={"app": name}) for name in ("a", "b", "web")]
    policy = f"maxNoOfPodsToEvictTotal: 1{TAINTS}"
    report = await one_pass(
        tainted(*pods, make_budget("web", allowed=0, healthy=1)), policy=policy + AT_ONCE
    )

    assert len(report.evicted) == 1
    told = lines(logs, "Candidate not evicted", "v", "verdict", "pod", "by")
    assert (4, "held", "default/b", "limits") in told
    assert len(told) == len(report.held)


@pytest.mark.parametrize("status", [401, 403])
async def test_a_server_that_says_no_ends_it_at_once(status: int) -> None:
    began = anyio.current_time()
    with pytest.raises(ExceptionGroup) as caught:
        await one_pass(small_cluster(), faults=[Fault(resource="pods", status=status)])

    (error,) = caught.value.exceptions
    assert anyio.current_time() - began < 2
    assert isinstance(error, Unreachable)
    assert str(error).startswith(f"the cluster cannot be read: Pod: {status}")


async def test_a_server_that_is_not_there_ends_it_soon(unused_tcp_port: int) -> None:
    began = anyio.current_time()
    with pytest.raises(ExceptionGroup) as caught:
        await _against(f"http://127.0.0.1:{unused_tcp_port}", TAINTS, LoopClock(START))

    (error,) = caught.value.exceptions
    assert isinstance(error, Unreachable)
    assert str(error).startswith("the cluster cannot be read: Node, Pod, ")
    assert 10 <= anyio.current_time() - began < 12


async def test_a_server_that_comes_back_in_time_is_waited_for() -> None:
    fault = Fault(resource="pods", status=503, times=4)
    report = await one_pass(tainted(make_pod("a", node="node-1")), faults=[fault])

    assert [candidate.pod.name for candidate in report.evicted] == ["a"]


async def test_a_strategy_that_only_observes_is_reported_and_asks_nothing() -> None:
    observe = "reactive: {strategies: {RemovePodsViolatingNodeTaints: {mode: observe}}}\n"
    requests = Fault(verb="create", resource="pods/eviction")
    cluster = small_cluster()
    cluster[1] = make_node("node-1", taints=[taint("dedicated")])
    report = await one_pass(cluster, policy=TAINTS + observe, faults=[requests])
    assert [candidate.pod.name for candidate in report.observed] == ["a"]
    assert (report.evicted, requests.hits) == ([], 0)


@pytest.mark.parametrize("corrections", ["all", "missingPluginConfig"])
async def test_failures_show_in_the_exit_code_unless_it_is_to_be_as_upstream(
    corrections: str,
) -> None:
    policy = TAINTS + AT_ONCE.replace("{", f"{{corrections: {corrections}, ", 1)
    report = await one_pass(tainted(make_pod("a", node="node-1")), policy=policy)

    assert report.failures_show is (corrections == "all")
