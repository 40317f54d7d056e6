"""What the daemon makes of each answer to an eviction request (design 5.5)."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from reactive_descheduler.sandbox.faults import Fault
from tests.builders import Manifest, make_budget, make_namespace, make_node, make_pod
from tests.daemon.world import World, eventually, world

RBAC = (
    'pods "a" is forbidden: User "descheduler" cannot create resource "pods/eviction" in API group'
    ' "" in the namespace "default"'
)
WEBHOOK = 'admission webhook "guard.example.test" denied the request: not now'
CONFLICT = (
    "Operation cannot be fulfilled on Pod.v1 a: Precondition failed: UID in precondition: x, UID in"
    " object meta: y"
)
SEVERAL = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not"
    " support."
)


def evictions(**fault: object) -> Fault:
    return Fault(verb="create", resource="pods/eviction", **fault)  # type: ignore[arg-type]


def nodes_and(*objects: Manifest) -> list[Manifest]:
    return [make_namespace(), make_node("node-1"), make_node("node-2"), *objects]


class Case(NamedTuple):
    fault: Fault
    answer: str
    sent_at: tuple[float, ...]
    """Seconds after the first request at which one more was sent, within two minutes."""


CASES = {
    # Here the Pod is there all the same, as a look at it after a minute tells.
    "gone": Case(evictions(status=404, message='pods "a" not found'), "not-found", (62.5,)),
    "another-pod-of-that-name": Case(
        evictions(status=409, message=CONFLICT), "uid-conflict", (62.5,)
    ),
    "webhook": Case(evictions(status=403, message=WEBHOOK), "webhook-denied", (10, 30, 70)),
    "webhook-by-429": Case(evictions(status=429, message=WEBHOOK), "webhook-denied", (10, 30, 70)),
    "refused-for-good": Case(evictions(status=422, message="no"), "invalid", (10, 30, 70)),
    "server-error": Case(evictions(status=500, message="oops"), "server-error", (10, 30, 70)),
    "several-budgets": Case(
        evictions(status=500, message=SEVERAL), "several-budgets", (10, 30, 70)
    ),
    "rbac": Case(evictions(status=403, message=RBAC), "forbidden", (60, 120)),
    "unauthorized": Case(evictions(status=401, message="Unauthorized"), "forbidden", (60, 120)),
    "overload": Case(
        evictions(status=429, message="slow down", retry_after=50), "throttled", (50, 100)
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_each_answer_has_its_own_wait(case: Case) -> None:
    fault = Fault(**{**vars(case.fault), "hits": 0})
    async with world(objects=nodes_and(make_pod("a", node="node-1"))) as running:
        running.fault(fault)
        await running.live()
        await running.taint()
        await eventually(lambda: len(running.answers()) == 1)
        assert running.answers() == [("a", case.answer)]

        began = running.clock.monotonic()
        seen: list[float] = []
        while running.clock.monotonic() - began < 121.5:
            before = len(running.answers())
            await running.rest(0.25)
            if len(running.answers()) > before:
                seen.append(running.clock.monotonic() - began)
        assert seen == pytest.approx(case.sent_at, abs=3.0)
        assert {answer for _, answer in running.answers()} == {case.answer}
        assert await running.leaving() == set()


async def test_without_permission_nothing_goes_until_a_trial_succeeds() -> None:
    objects = nodes_and(*(make_pod(f"p{number}", node="node-1") for number in range(3)))
    async with world(objects=objects) as running:
        forbidden = running.fault(evictions(status=403, message=RBAC))
        await running.live()
        await running.taint()
        await running.rest(59)
        sent = forbidden.hits
        assert 1 <= sent <= 3  # those that were in flight together
        assert running.closed() == "permission"
        assert "cannot create resource" in running.daemon.not_ready()[0]

        await running.rest(60)
        assert forbidden.hits == sent + 1  # one trial a minute, not three
        forbidden.times = forbidden.hits
        await running.rest(62)

        assert await running.leaving() == {"p0", "p1", "p2"}
        assert running.daemon.not_ready() == []


def under_a_budget() -> list[Manifest]:
    budget = make_budget("web", allowed=5, healthy=6, expected=6)
    return nodes_and(make_pod("a", node="node-1"), budget)


async def test_a_grant_whose_answer_is_lost_is_known_where_the_watch_was_faster() -> None:
    async with world(objects=under_a_budget()) as running:
        running.fault(evictions(drop="after", times=1))
        await running.live()
        await running.taint()
        await running.rest(100)

        assert running.answers() == [("a", "evicted")]
        assert running.status()["lanesInFlight"] == 0
        assert running.metric("pods_evicted", result="success") == 1


async def test_a_lost_answer_is_told_as_evicted_once_the_watch_shows_the_pod_going() -> None:
    async with world(objects=under_a_budget()) as running:
        running.fault(evictions(drop="after", times=1))
        await running.live()
        running.faults.silence_watches("pods")
        await running.taint()
        await eventually(lambda: ("a", "unknown") in running.answers())
        assert running.status()["lanesInFlight"] == 1
        running.faults.unsilence_watches("pods")
        await running.rest(100)

        assert running.answers() == [("a", "unknown"), ("a", "evicted")]
        assert running.status()["lanesInFlight"] == 0
        assert running.metric("pods_evicted", result="success") == 1


async def test_a_lost_answer_is_settled_by_a_look_where_the_watch_shows_nothing() -> None:
    async with world(objects=under_a_budget()) as running:
        running.fault(evictions(drop="before", times=1))
        await running.live()
        await running.taint()
        await eventually(lambda: ("a", "unknown") in running.answers())
        await running.rest(55)
        assert running.answers() == [("a", "unknown")]
        assert running.status()["lanesInFlight"] == 1
        assert await running.leaving() == set()
        await running.rest(20)

        assert running.answers() == [("a", "unknown"), ("a", "evicted")]
        assert running.status()["lanesInFlight"] == 0
        assert running.requests.hits == 1


async def test_a_lost_answer_counts_in_limits() -> None:
    policy = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
maxNoOfPodsToEvictTotal: 1
profiles:
- name: default
  plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaints]}}
reactive: {settle: {default: 0s}, debounce: {quiet: 0s}, resync: 10h, limits: {window: 5m}}
"""
    objects = nodes_and(make_pod("a", node="node-1"), make_pod("c", node="node-2"))
    async with world(policy, objects) as running:
        running.fault(evictions(drop="before", times=1))
        await running.live()
        await running.taint("node-1")
        await eventually(lambda: ("a", "unknown") in running.answers())
        await running.taint("node-2")
        await running.rest(100)

        assert set(running.held().values()) == {"limits"}
        assert running.answers() == [("a", "unknown")]


async def test_a_definite_refusal_gives_its_permit_back_and_others_go_at_once() -> None:
    policy = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
maxNoOfPodsToEvictTotal: 1
profiles:
- name: default
  plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaints]}}
reactive: {settle: {default: 0s}, debounce: {quiet: 0s}, resync: 10h, limits: {window: 5m}}
"""
    objects = nodes_and(make_pod("a", node="node-1"), make_pod("b", node="node-1"))
    async with world(policy, objects) as running:
        running.fault(evictions(status=404, message="not found", times=1, latency=1.0))
        await running.live()
        await running.taint("node-1")
        await running.rest(5)

        assert [answer for _, answer in running.answers()] == ["not-found", "evicted"]


async def test_pods_under_two_budgets_are_refused_without_a_request() -> None:
    objects = nodes_and(make_pod("a", node="node-1"), make_budget("one"), make_budget("two"))
    async with world(objects=objects) as running:
        await running.live()
        await running.taint()
        await running.rest(10)
        assert running.requests.hits == 0
        assert running.metric("rejections", filter="lane") >= 1

        await running.client.delete("poddisruptionbudgets", "two", namespace="default")
        await running.rest(1)
        assert running.answers() == [("a", "evicted")]


async def _with_a_budget_unseen(running: World, budget: Manifest) -> None:
    await running.live()
    running.faults.silence_watches("poddisruptionbudgets.policy")
    metadata = {"name": "web", "namespace": "default"}
    await running.client.create(budget | {"metadata": metadata})
    status = {"status": budget["status"]}
    await running.client.patch(
        "poddisruptionbudgets", "web", status, namespace="default", subresource="status"
    )
    await running.taint()


async def test_a_budget_that_only_the_server_knows_is_not_asked_over_and_over() -> None:
    async with world(objects=nodes_and(make_pod("a", node="node-1"))) as running:
        await _with_a_budget_unseen(running, make_budget("web", allowed=0, healthy=1))
        await running.rest(15)

        assert {answer for _, answer in running.answers()} == {"budget"}
        assert running.requests.hits <= 3
        assert await running.leaving() == set()


async def test_under_one_budget_pods_go_one_after_another_as_it_allows() -> None:
    objects = nodes_and(
        *(make_pod(f"p{number}", node="node-1") for number in range(3)),
        make_budget("web", allowed=2, healthy=3, desired=1, expected=3),
    )
    async with world(objects=objects) as running:
        await running.live()
        await running.taint()
        await running.rest(5)

        assert len(await running.leaving()) == 2
        assert [answer for _, answer in running.answers()] == ["evicted", "evicted"]
        assert list(running.held().values()) == ["lane"]
