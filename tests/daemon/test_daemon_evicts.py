"""What the daemon evicts, and that it evicts nothing else."""

from __future__ import annotations

from datetime import timedelta

import anyio
import pytest

from reactive_descheduler.app.policy_file import LOOK_EVERY
from reactive_descheduler.sandbox.faults import Fault
from tests.builders import make_budget, make_namespace, make_node, make_pod
from tests.daemon.world import AT_ONCE, START, TAINTS, eventually, life_time, world


async def test_a_taint_evicts_the_pods_that_do_not_tolerate_it_and_no_others() -> None:
    async with world() as running:
        await running.live()
        await running.taint("node-1")
        await running.rest()

        assert await running.leaving() == {"a"}
        assert running.answers() == [("a", "evicted")]
        assert running.requests.hits == 1


async def test_what_is_wrong_at_the_start_goes_by_the_first_full_pass() -> None:
    objects = [
        make_namespace(),
        make_node("node-1", taints=[{"key": "k", "effect": "NoSchedule"}]),
        make_node("node-2"),
        make_pod("a", node="node-1"),
    ]
    async with world(objects=objects) as running:
        await running.live()
        await running.rest()

        assert await running.leaving() == {"a"}


async def test_a_cause_of_the_start_settles_from_the_moment_of_sync() -> None:
    objects = [
        make_namespace(),
        make_node("node-1", taints=[{"key": "k", "effect": "NoSchedule"}]),
        make_node("node-2"),
        make_pod("a", node="node-1"),
    ]
    async with world(TAINTS, objects) as running:
        await running.live()
        await running.rest(4.9)
        assert running.held() == {"a": "settle"}
        await running.rest(0.2)

        assert running.answers() == [("a", "evicted")]


async def test_a_dry_run_sends_nothing_and_reports_each_pod_once() -> None:
    async with world(dry_run=True) as running:
        await running.live()
        await running.taint("node-1")
        await running.rest()
        label = {"metadata": {"labels": {"x": "y"}}}
        await running.client.patch("pods", "a", label, namespace="default")
        await running.rest()
        running.daemon.core.resync()
        await running.rest()

        assert running.answers() == [("a", "dry-run")]
        assert running.held() == {"a": "reported"}
        assert running.requests.hits == 0
        assert running.metric("dry_run_reports") == 1


OBSERVING = AT_ONCE.replace(
    "reactive: {", "reactive: {strategies: {RemovePodsViolatingNodeTaints: {mode: observe}}, "
)


async def test_a_strategy_that_only_observes_reports_each_pod_and_evicts_nobody() -> None:
    async with world(policy=TAINTS + OBSERVING) as running:
        await running.live()
        await running.taint("node-1")
        await running.rest()
        running.daemon.core.resync()
        await running.rest()

        assert running.answers() == [("a", "observed")]
        assert running.held() == {"a": "reported"}
        assert running.requests.hits == 0
        assert running.metric("pods_evicted") == 0


async def test_what_was_only_observed_goes_when_a_reload_lets_the_strategy_act() -> None:
    async with world(policy=TAINTS + OBSERVING) as running:
        await running.live()
        await running.taint("node-1")
        await running.rest()
        running.file.text = TAINTS + AT_ONCE
        await running.rest(2 * LOOK_EVERY)

        assert await running.leaving() == {"a"}


async def test_a_held_pod_goes_at_once_when_its_budget_opens() -> None:
    objects = [
        make_namespace(),
        make_node("node-1"),
        make_node("node-2"),
        make_pod("a", node="node-1"),
        make_budget("web", allowed=0, healthy=1),
    ]
    async with world(objects=objects) as running:
        await running.live()
        await running.taint("node-1")
        await running.rest(30)
        assert running.held() == {"a": "lane"}
        assert running.requests.hits == 0

        status = {"status": {"disruptionsAllowed": 1}}
        await running.client.patch(
            "poddisruptionbudgets", "web", status, namespace="default", subresource="status"
        )
        await eventually(lambda: running.answers() == [("a", "evicted")], within=0.2)


async def test_a_pod_goes_when_its_age_is_reached_to_the_second() -> None:
    born = START - timedelta(seconds=100)
    objects = [
        make_namespace(),
        make_node("node-1"),
        make_node("node-2"),
        make_pod("a", node="node-1", created=born, started=born),
    ]
    async with world(life_time(130), objects) as running:
        await running.live()
        due = born + timedelta(seconds=131)  # older than 130 whole seconds
        await anyio.sleep((due - running.clock.now()).total_seconds() - 0.01)
        assert running.answers() == []
        await eventually(lambda: running.answers() == [("a", "evicted")], within=0.1)


async def test_an_age_that_lies_in_the_future_evicts_nothing() -> None:
    unborn = START + timedelta(hours=1)
    objects = [
        make_namespace(),
        make_node("node-1"),
        make_node("node-2"),
        make_pod("a", node="node-1", created=unborn, started=unborn),
    ]
    async with world(life_time(130), objects) as running:
        await running.live()
        await running.rest(600)

        assert running.answers() == []
        assert running.daemon.not_ready() == []


@pytest.mark.parametrize("seconds", [3600, -3600], ids=["forwards", "backwards"])
async def test_after_a_jump_of_the_clock_nothing_goes_for_a_minute(seconds: int) -> None:
    async with world() as running:
        await running.live()
        running.clock.shift(timedelta(seconds=seconds))
        await running.taint("node-1")
        await running.rest(50)
        assert running.answers() == []
        assert running.closed() == "clock"
        await running.rest(15)

        assert running.answers() == [("a", "evicted")]
        assert running.daemon.core.gates.clock.jumps == 1


async def test_a_clock_put_back_by_an_hour_makes_nothing_wait_for_an_hour() -> None:
    async with world(TAINTS) as running:
        await running.live()
        await running.taint("node-1")
        await running.rest(3)
        running.clock.shift(timedelta(hours=-1))
        await running.rest(65)

        assert running.answers() == [("a", "evicted")]


async def test_a_jump_of_the_clock_that_is_taken_back_evicts_nobody() -> None:
    born = START - timedelta(seconds=100)
    objects = [
        make_namespace(),
        make_node("node-1"),
        make_node("node-2"),
        make_pod("a", node="node-1", created=born, started=born),
    ]
    async with world(life_time(2000), objects) as running:
        await running.live()
        running.clock.shift(timedelta(hours=1))
        await running.rest(30)
        running.clock.shift(timedelta(hours=-1))
        await running.rest(120)

        assert running.answers() == []


async def test_stopping_sends_nothing_new_and_waits_for_what_is_in_flight() -> None:
    slow = Fault(verb="create", resource="pods/eviction", latency=5.0, times=1)
    objects = [
        make_namespace(),
        make_node("node-1"),
        make_node("node-2"),
        make_pod("a", node="node-1"),
        make_pod("c", node="node-2"),
    ]
    async with world(objects=objects) as running:
        running.fault(slow)
        await running.live()
        await running.taint("node-1")
        await eventually(lambda: slow.hits == 1)
        running.daemon.stop()
        await running.taint("node-2")
        await running.rest(10)

        assert await running.leaving() == {"a"}
        assert running.answers() == [("a", "evicted")]


async def test_a_request_that_does_not_end_is_given_up_after_the_grace_period() -> None:
    async with world(grace_period=2.0) as running:
        running.fault(Fault(verb="create", resource="pods/eviction", latency=20.0))
        await running.live()
        await running.taint("node-1")
        await eventually(lambda: len(running.status()["inFlight"]) == 1)  # type: ignore[arg-type]
        with anyio.fail_after(5.5):  # and as much for the last Events
            await running.end()


async def test_stopping_before_the_lists_are_in_ends_at_once() -> None:
    async with world(faults=[Fault(verb="list", resource="pods", status=503)]) as running:
        await running.rest(5)
        with anyio.fail_after(1):
            await running.end()


async def test_a_daemon_set_pod_and_a_bare_pod_stay() -> None:
    owner = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "name": "agent",
        "uid": "uid-agent",
        "controller": True,
    }
    objects = [
        make_namespace(),
        make_node("node-1"),
        make_node("node-2"),
        make_pod("agent", node="node-1", owners=[owner]),
        make_pod("bare", node="node-1", owners=[]),
    ]
    async with world(objects=objects) as running:
        await running.live()
        await running.taint("node-1")
        await running.rest()

        assert await running.leaving() == set()
        assert running.metric("rejections") >= 2


async def test_a_taint_that_goes_before_it_has_settled_evicts_nobody() -> None:
    async with world(TAINTS) as running:
        await running.live()
        await running.taint("node-1")
        await running.rest(4)
        await running.untaint("node-1")
        await running.rest(20)

        assert running.answers() == []
        assert running.held() == {}


async def test_a_taint_that_flaps_settles_from_its_last_return() -> None:
    async with world(TAINTS) as running:
        await running.live()
        await running.taint("node-1")
        await running.rest(4)
        await running.untaint("node-1")
        await running.taint("node-1")
        await running.rest(4)
        assert running.answers() == []
        await running.rest(2)

        assert running.answers() == [("a", "evicted")]


async def test_a_taint_that_passes_by_itself_settles_for_a_minute() -> None:
    async with world(TAINTS + AT_ONCE) as running:
        await running.live()
        await running.taint("node-1", "node.kubernetes.io/memory-pressure")
        await running.rest(58)
        assert running.answers() == []
        await running.rest(3)

        assert running.answers() == [("a", "evicted")]


async def test_a_taint_that_flaps_before_anyone_looked_settles_from_its_last_return() -> None:
    slow = "reactive: {debounce: {quiet: 1s, maxWait: 4s}}\n"
    async with world(TAINTS + slow) as running:
        await running.live()
        await running.taint("node-1")
        await running.rest(0.5)
        await running.untaint("node-1")
        await running.rest(0.4)
        await running.taint("node-1")
        await running.rest(4.8)
        assert running.answers() == []
        await running.rest(2)

        assert running.answers() == [("a", "evicted")]
