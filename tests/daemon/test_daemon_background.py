"""Evictions in background: a webhook takes them over and finishes them later (KEP 1397)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager

from reactive_descheduler.config.feature_gates import FeatureGate, FeatureGates
from reactive_descheduler.sandbox.faults import Fault
from tests.builders import Manifest, make_namespace, make_node, make_pod
from tests.daemon.world import AT_ONCE, TAINTS, World, world

ON = frozenset({FeatureGate.EVICTIONS_IN_BACKGROUND})
ASKED = {"descheduler.alpha.kubernetes.io/request-evict-only": ""}
IN_PROGRESS = "descheduler.alpha.kubernetes.io/eviction-in-progress"
TAKEN_OVER = (
    'admission webhook "migrate.example.test" denied the request: Eviction triggered evacuation of'
    " the virtual machine"
)
ONE_IN_ALL = TAINTS + AT_ONCE + "maxNoOfPodsToEvictTotal: 1\n"


def machine(name: str, **annotations: str) -> Manifest:
    return make_pod(name, node="node-1", annotations={**ASKED, **annotations})


def nodes_and(pods: Iterable[Manifest]) -> list[Manifest]:
    return [make_namespace(), make_node("node-1"), make_node("node-2"), *pods]


def running_on(
    *pods: Manifest,
    gates: FeatureGates = ON,
    policy: str = TAINTS + AT_ONCE,
    takes_over: bool = True,
) -> AbstractAsyncContextManager[World]:
    webhook = Fault(verb="create", resource="pods/eviction", status=429, message=TAKEN_OVER)
    faults = [webhook] if takes_over else []
    return world(policy, nodes_and(pods), faults=faults, feature_gates=gates)


async def start(running: World) -> None:
    await running.live()
    await running.taint()
    await running.rest()


async def mark(running: World, value: str | None) -> None:
    patch = {"metadata": {"annotations": {IN_PROGRESS: value}}}
    await running.client.patch("pods", "a", patch, namespace="default")
    await running.rest()


async def test_a_pod_that_a_webhook_takes_over_is_asked_for_once() -> None:
    async with running_on(machine("a")) as running:
        await start(running)
        await running.rest(300)
        assert running.answers() == [("a", "background")]
        assert running.held() == {"a": "background"}
        assert running.metric("pods_evicted", result="background") == 1
        assert running.metric("pods_evicted", result="success") == 0


async def test_its_end_counts_as_an_eviction() -> None:
    async with running_on(machine("a")) as running:
        await start(running)
        await mark(running, "")
        await running.rest(1200)  # in progress for as long as it takes
        assert running.answers() == [("a", "background")]
        await running.remove("a")
        await running.rest()
        assert running.metric("pods_evicted", result="success") == 1
        assert running.metric("pods_evicted", result="error") == 0


async def test_what_never_shows_is_asked_for_again_after_ten_minutes() -> None:
    async with running_on(machine("a")) as running:
        await start(running)
        await running.rest(590)
        assert running.answers() == [("a", "background")]
        await running.rest(20)
        assert running.answers() == [("a", "background")] * 2
        assert running.metric("pods_evicted", result="error") == 1


async def test_what_was_given_up_may_be_asked_for_again() -> None:
    async with running_on(machine("a")) as running:
        await start(running)
        await mark(running, "")
        await mark(running, None)
        assert running.answers() == [("a", "background")] * 2


async def test_what_is_in_progress_at_the_start_is_not_asked_for() -> None:
    async with running_on(machine("a", **{IN_PROGRESS: ""})) as running:
        await start(running)
        assert running.answers() == []
        assert running.held() == {"a": "background"}


async def test_what_goes_on_counts_in_limits_until_it_ends() -> None:
    async with running_on(
        machine("a", **{IN_PROGRESS: ""}),
        make_pod("b", node="node-1"),
        policy=ONE_IN_ALL,
        takes_over=False,
    ) as running:
        await start(running)
        await running.rest(900)  # longer than the window of limits
        assert running.answers() == []
        await running.remove("a")
        await running.rest()
        assert running.answers() == [("b", "evicted")]


async def test_what_never_shows_frees_its_limits_after_ten_minutes() -> None:
    async with running_on(machine("a"), make_pod("b", node="node-1"), policy=ONE_IN_ALL) as running:
        await start(running)
        await running.rest(590)
        assert running.answers() == [("a", "background")]
        await running.rest(20)
        assert len(running.answers()) > 1


async def test_its_end_counts_in_the_window_of_limits() -> None:
    async with running_on(machine("a"), make_pod("b", node="node-1"), policy=ONE_IN_ALL) as running:
        await start(running)
        await mark(running, "")
        await running.remove("a")
        await running.rest(290)
        assert running.answers() == [("a", "background")]
        await running.rest(20)
        assert [name for name, _ in running.answers()] == ["a", "b"]


async def test_with_the_gate_off_it_is_a_webhook_that_says_no() -> None:
    async with running_on(machine("a"), gates=frozenset()) as running:
        await start(running)
        assert running.answers() == [("a", "webhook-denied")]


async def test_without_the_annotation_it_is_a_webhook_that_says_no() -> None:
    async with running_on(make_pod("a", node="node-1")) as running:
        await start(running)
        assert running.answers() == [("a", "webhook-denied")]
