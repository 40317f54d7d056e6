"""What the daemon does about its streams, and what it lets people see of it."""

from __future__ import annotations

from typing import cast

import pytest
from structlog.typing import EventDict

from reactive_descheduler.cache.reflector import WATCH_INTERRUPTED
from reactive_descheduler.sandbox.faults import Fault
from tests.builders import Manifest, make_budget, make_namespace, make_node, make_pod
from tests.daemon.world import AT_ONCE, TAINTS, World, eventually, small_cluster, world

RBAC = (
    '{what} is forbidden: User "descheduler" cannot {verb} resource "{what}" in API group "" at the'
    " cluster scope"
)


def stream(running: World, kind: str) -> dict[str, object]:
    found = cast(list[dict[str, object]], running.status()["streams"])
    return next(each for each in found if each["kind"] == kind)


async def test_it_is_not_ready_before_every_list_is_in() -> None:
    slow = [
        Fault(verb="list", resource="pods", latency=8.0),
        Fault(verb="watch", resource="pods", latency=8.0),
    ]
    async with world(faults=slow) as running:
        await running.taint("node-1")
        await running.rest(5)
        assert running.daemon.not_ready() == ["not synced: Pod"]
        assert running.answers() == []
        await running.live()
        await running.rest(5)

        assert running.answers() == [("a", "evicted")]


async def test_without_rights_on_a_needed_kind_it_says_so_and_evicts_nothing() -> None:
    message = RBAC.format(what="namespaces", verb="list")
    denied = Fault(resource="namespaces", status=403, message=message)
    async with world(faults=[denied]) as running:
        await running.taint("node-1")
        await running.rest(60)
        (reason,) = running.daemon.not_ready()
        assert reason.startswith("not synced: Namespace")
        assert "cannot list" in reason
        assert "ClusterRole" in str(stream(running, "Namespace")["hint"])
        assert running.requests.hits == 0
        assert running.status()["notReady"] == [reason]

        running.faults.active.remove(denied)
        await eventually(lambda: running.answers() == [("a", "evicted")], within=60)


async def test_while_a_needed_stream_is_silent_nothing_goes_and_it_says_why() -> None:
    async with world() as running:
        await running.live()
        running.faults.silence_watches("nodes")
        running.fault(Fault(verb="watch", resource="nodes", status=503))
        running.fault(Fault(verb="list", resource="nodes", status=503))
        await running.rest(90)
        (reason,) = running.daemon.not_ready()
        assert reason.startswith("no sign of life on the watch of Node")

        relabelled = {"metadata": {"labels": {"x": "y"}}}
        await running.taint("node-1")
        await running.client.patch("pods", "a", relabelled, namespace="default")
        await running.rest(60)
        assert running.requests.hits == 0
        assert running.closed() == "stale"

        running.faults.clear()
        await eventually(lambda: running.answers() == [("a", "evicted")], within=60)
        assert running.daemon.not_ready() == []


async def test_a_stale_budget_stream_stops_nothing_and_its_lane_asks_the_server() -> None:
    objects = [
        make_namespace(),
        make_node("node-1"),
        make_node("node-2"),
        make_pod("a", node="node-1"),
        make_budget("web", allowed=0, healthy=1),
    ]
    async with world(objects=objects) as running:
        await running.live()
        await running.taint()
        await running.rest(5)
        assert running.held() == {"a": "lane"}
        running.faults.silence_watches("poddisruptionbudgets.policy")
        running.fault(Fault(verb="watch", resource="poddisruptionbudgets.policy", status=503))
        status = {"status": {"disruptionsAllowed": 1}}
        await running.client.patch(
            "poddisruptionbudgets", "web", status, namespace="default", subresource="status"
        )
        await running.rest(180)

        assert running.answers() == [("a", "evicted")]
        assert running.daemon.not_ready() == []


async def test_where_a_verdict_rests_on_budgets_a_stale_budget_stream_stops_everything() -> None:
    policy = TAINTS.replace(
        "  plugins:",
        "  pluginConfig:\n"
        "  - name: DefaultEvictor\n"
        "    args: {podProtections: {extraEnabled: [PodsWithoutPDB]}}\n"
        "  plugins:",
    )
    objects = [
        make_namespace(),
        make_node("node-1"),
        make_node("node-2"),
        make_pod("a", node="node-1"),
        make_budget("web", allowed=1),
    ]
    async with world(policy + AT_ONCE, objects) as running:
        await running.live()
        running.faults.silence_watches("poddisruptionbudgets.policy")
        running.fault(Fault(verb="watch", resource="poddisruptionbudgets.policy", status=503))
        running.fault(Fault(verb="list", resource="poddisruptionbudgets.policy", status=503))
        await running.rest(90)
        await running.taint()
        await running.rest(30)
        assert running.closed() == "stale"
        assert running.requests.hits == 0

        running.faults.clear()
        await eventually(lambda: running.answers() == [("a", "evicted")], within=60)


async def test_an_api_server_that_is_gone_and_comes_back_costs_no_eviction_and_needs_no_help() -> (
    None
):
    async with world() as running:
        await running.live()
        outage = running.fault(Fault(drop="before"))
        running.faults.cut_watches()
        await running.rest(100)
        assert any("no sign of life" in reason for reason in running.daemon.not_ready())
        await running.taint("node-1")
        await running.rest(20)
        assert running.answers() == []

        running.faults.active.remove(outage)
        await eventually(lambda: running.answers() == [("a", "evicted")], within=60)
        assert await running.leaving() == {"a"}


async def test_what_changed_during_a_short_loss_is_not_missed() -> None:
    async with world() as running:
        await running.live()
        running.faults.cut_watches()
        await running.taint("node-1")
        running.cluster.compact()
        await running.rest(15)

        assert running.answers() == [("a", "evicted")]
        assert running.metric("resync_findings") == 0


async def test_a_cause_that_goes_while_a_watch_is_cut_off_moves_nobody() -> None:
    """The watch is known to be broken: what the cache says of the cause may be over by now."""
    settling = "reactive: {settle: {default: 3s}, debounce: {quiet: 0s}, resync: 10h}\n"
    async with world(TAINTS + settling) as running:
        await running.live()
        await running.taint("node-1")
        await running.rest(1)
        lost = running.fault(Fault(verb="watch", resource="nodes", status=503))
        running.faults.cut_watches("nodes")
        await running.untaint("node-1")
        await running.rest(30)
        assert running.requests.hits == 0
        assert running.closed() == "stale"
        assert running.daemon.not_ready() == ["the watch of Node was cut off and has not caught up"]
        running.faults.active.remove(lost)
        await eventually(lambda: running.daemon.not_ready() == [], within=60)
        await running.rest(10)
        assert running.requests.hits == 0


def _opaque_pod(name: str) -> Manifest:
    pod = make_pod(name, node="node-1")
    pod["spec"] = {**cast(Manifest, pod["spec"]), "tolerations": "anything goes"}
    return pod


def _opaque_node(name: str) -> Manifest:
    node = make_node(name, taints=[{"key": "k", "effect": "NoSchedule"}])
    node["spec"] = {"taints": "many"}
    return node


def _opaque_budget(name: str) -> Manifest:
    budget = make_budget(name, allowed=5)
    budget["spec"] = {"selector": "all of them"}
    return budget


OPAQUE: dict[str, tuple[list[Manifest], set[str]]] = {
    "pod": (
        [make_node("node-1"), make_node("node-2"), _opaque_pod("a"), make_pod("b", node="node-1")],
        {"b"},
    ),
    "node": (
        [
            make_node("node-1"),
            make_node("node-2"),
            _opaque_node("node-3"),
            make_pod("a", node="node-3"),
            make_pod("b", node="node-1"),
        ],
        {"b"},
    ),
    "budget": (
        [
            make_node("node-1"),
            make_node("node-2"),
            _opaque_budget("web"),
            make_pod("a", node="node-1"),
        ],
        set(),
    ),
}


@pytest.mark.parametrize("case", OPAQUE)
async def test_what_has_to_do_with_an_object_that_cannot_be_read_stays(case: str) -> None:
    objects, gone = OPAQUE[case]
    async with world(objects=[make_namespace(), *objects]) as running:
        await running.live()
        await running.taint("node-1")
        await running.rest(10)

        assert await running.leaving() == gone
        assert sum(int(str(stream(running, kind)["opaque"])) for kind in
                   ("Pod", "Node", "PodDisruptionBudget")) == 1  # fmt: skip


STOPPED, RESUMED = "Nothing is evicted for the time being", "Evictions go on again"


def lines(logs: list[EventDict], *events: str) -> list[EventDict]:
    return [line for line in logs if line["event"] in events]


async def test_it_is_told_once_that_evictions_stopped_and_once_that_they_go_on(
    logs: list[EventDict],
) -> None:
    async with world() as running:
        await running.live()
        for verb in ("watch", "list"):
            running.fault(Fault(verb=verb, resource="nodes", status=503))
        running.faults.cut_watches("nodes")
        await running.rest(200)

        (stopped,) = lines(logs, STOPPED, RESUMED)
        assert (stopped["log_level"], stopped["by"]) == ("warning", "stale")
        assert "the watch of Node was cut off" in stopped["reason"]
        running.faults.clear()
        await running.rest(60)
        (_, resumed) = lines(logs, STOPPED, RESUMED)
        assert resumed["event"] == RESUMED
        assert 200 <= resumed["after_seconds"] <= 240


async def test_a_watch_that_is_opened_again_at_once_is_not_worth_a_word(
    logs: list[EventDict],
) -> None:
    async with world() as running:
        await running.live()
        running.faults.cut_watches()
        await running.rest(30)

        assert lines(logs, STOPPED, RESUMED) == []


async def test_that_it_may_not_evict_is_told_once_however_often_it_tries(
    logs: list[EventDict],
) -> None:
    message = 'pods "a" is forbidden: User "x" cannot create resource "pods/eviction"'
    denied = Fault(verb="create", resource="pods/eviction", status=403, message=message)
    async with world(faults=[denied]) as running:
        await running.live()
        await running.taint("node-1")
        await running.rest(200)
        assert denied.hits > 1
        (stopped,) = lines(logs, STOPPED, RESUMED)
        assert stopped["by"] == "permission"

        running.faults.active.remove(denied)
        await running.rest(100)
        assert [line["event"] for line in lines(logs, STOPPED, RESUMED)] == [STOPPED, RESUMED]


async def test_an_interrupted_watch_is_told_in_one_line_with_a_hint_where_there_is_one(
    logs: list[EventDict],
) -> None:
    message = RBAC.format(what="pods", verb="watch")
    async with world() as running:
        await running.live()
        running.fault(Fault(verb="watch", resource="nodes", status=503))
        running.fault(Fault(verb="watch", resource="pods", status=403, message=message))
        running.faults.cut_watches("nodes")
        running.faults.cut_watches("pods")
        await running.rest(100)

        told = lines(logs, WATCH_INTERRUPTED)
        refused = {
            each["kind"]: each
            for each in told
            if "injected" in each["error"] or "cannot" in each["error"]
        }
        assert len(told) == len({(each["kind"], each["error"]) for each in told})
        assert "hint" not in refused["Node"]
        assert "ClusterRole" in refused["Pod"]["hint"]
        assert {line["event"] for line in logs if "atch" in line["event"]} == {WATCH_INTERRUPTED}


async def test_what_cannot_be_read_is_told_once_for_each_object(logs: list[EventDict]) -> None:
    node = make_node("node-3")
    broken = node | {"status": {**cast(Manifest, node["status"]), "allocatable": {"cpu": "lots"}}}
    async with world(objects=[*small_cluster(), broken]) as running:
        await running.live()
        await running.client.patch("nodes", "node-3", {"metadata": {"labels": {"x": "y"}}})
        running.faults.cut_watches("nodes")
        await running.client.patch("nodes", "node-2", {"spec": {"taints": 17}})
        await running.rest(10)

        told = [line for line in logs if "cannot be read" in line["event"]]
        assert [(line["kind"], line["name"]) for line in told] == [
            ("Node", "node-3"),
            ("Node", "node-2"),
        ]
        assert "lots" in told[0]["error"]
        assert told[0]["log_level"] == "warning"
