"""What `pods/eviction` answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reactive_descheduler.sandbox.client import ApiRefused
from reactive_descheduler.sandbox.documents import (
    condition,
    integer,
    is_terminating,
    lookup,
    mapping,
    objects,
    text,
    uid_of,
)

if TYPE_CHECKING:
    from reactive_descheduler.sandbox.documents import JsonObject
    from tests.contract.world import World

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(60)]


async def refused(world: World, name: str, **options: object) -> ApiRefused:
    with pytest.raises(ApiRefused) as caught:
        await world.evict(name, **options)
    return caught.value


async def budget_status(world: World, name: str) -> JsonObject:
    found = await world.client.get("poddisruptionbudgets", name, world.namespace)
    return mapping(found, "status")


async def test_a_bound_running_pod_is_marked_and_terminates(world: World) -> None:
    await world.pod("a", node="node", phase="Running")

    answer = await world.evict("a")

    assert answer["status"] == "Success"
    assert answer["code"] == 201
    pod = await world.client.get("pods", "a", world.namespace)
    assert is_terminating(pod)
    assert integer(pod, "metadata", "deletionGracePeriodSeconds") == 30
    assert text(pod, "status", "phase") == "Running"
    mark = condition(pod, "DisruptionTarget")
    assert (mark["status"], mark["reason"]) == ("True", "EvictionByEvictionAPI")


async def test_a_terminating_pod_is_evicted_again_with_success(world: World) -> None:
    await world.pod("a", node="node", phase="Running")
    await world.evict("a")

    assert (await world.evict("a"))["code"] == 201


async def test_watches_see_the_mark_before_the_deletion(world: World) -> None:
    pod = await world.pod("a", node="node", phase="Running")
    await world.evict("a")
    seen = []

    version = text(pod, "metadata", "resourceVersion")
    async for kind, document in world.client.watch("pods", version, world.namespace):
        seen.append((kind, bool(condition(document, "DisruptionTarget")), is_terminating(document)))
        if is_terminating(document):
            break

    assert seen == [("MODIFIED", True, False), ("MODIFIED", True, True)]


async def test_grace_zero_removes_a_bound_pod_at_once(world: World) -> None:
    await world.pod("a", node="node", phase="Running")

    await world.evict("a", gracePeriodSeconds=0)

    assert not await world.is_there("a")


async def test_a_grace_period_is_honoured(world: World) -> None:
    await world.pod("a", node="node", phase="Running")

    await world.evict("a", gracePeriodSeconds=7)

    pod = await world.client.get("pods", "a", world.namespace)
    assert integer(pod, "metadata", "deletionGracePeriodSeconds") == 7


@pytest.mark.parametrize(
    ("node", "phase", "stays"),
    [
        pytest.param("", "", False, id="unbound-pending"),
        pytest.param("node", "", True, id="bound-pending"),
        pytest.param("node", "Succeeded", False, id="succeeded"),
        pytest.param("node", "Failed", False, id="failed"),
    ],
)
async def test_pods_that_are_not_running_need_no_budget(
    world: World, node: str, phase: str, stays: bool
) -> None:
    await world.budget("b", allowed=0)
    await world.pod("a", node=node, phase=phase, ready=False)

    assert (await world.evict("a"))["code"] == 201

    assert await world.is_there("a") is stays


async def test_a_missing_pod_is_not_found(world: World) -> None:
    error = await refused(world, "a")

    assert (error.code, error.status["reason"]) == (404, "NotFound")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"kind": "Eviction", "metadata": {"name": "b"}}, id="another-name"),
        pytest.param({"kind": "Eviction"}, id="no-name"),
        pytest.param({"kind": "Pod", "metadata": {"name": "a"}}, id="another-kind"),
    ],
)
async def test_what_is_no_eviction_of_the_pod_is_a_bad_request(
    world: World, body: JsonObject
) -> None:
    await world.pod("a", node="node", phase="Running")
    body = {"apiVersion": "policy/v1"} | body
    path = f"/api/v1/namespaces/{world.namespace}/pods/a/eviction"

    with pytest.raises(ApiRefused) as caught:
        await world.client.request("POST", path, body=body)

    assert caught.value.code == 400


async def test_another_uid_is_a_conflict_that_names_both(world: World) -> None:
    pod = await world.pod("a", node="node", phase="Running")

    error = await refused(world, "a", preconditions={"uid": "another"})

    assert (error.code, error.status["reason"]) == (409, "Conflict")
    assert "another" in text(error.status, "message")
    assert uid_of(pod) in text(error.status, "message")
    assert not is_terminating(await world.client.get("pods", "a", world.namespace))


async def test_a_stale_version_is_a_conflict_and_the_current_one_is_none(world: World) -> None:
    pod = await world.pod("a", node="node", phase="Running")
    version = text(pod, "metadata", "resourceVersion")

    error = await refused(world, "a", preconditions={"resourceVersion": "1"})
    assert error.code == 409

    right = {"uid": uid_of(pod), "resourceVersion": version}
    assert (await world.evict("a", preconditions=right))["code"] == 201


async def test_a_refused_precondition_burns_budget(world: World) -> None:
    await world.budget("b", allowed=1)
    await world.pod("a", node="node", phase="Running")

    await refused(world, "a", preconditions={"uid": "another"})

    assert (await budget_status(world, "b"))["disruptionsAllowed"] == 0


async def test_dry_run_changes_nothing(world: World) -> None:
    await world.budget("b", allowed=1)
    await world.pod("a", node="node", phase="Running")

    assert (await world.evict("a", dryRun=["All"]))["code"] == 201

    assert not is_terminating(await world.client.get("pods", "a", world.namespace))
    assert (await budget_status(world, "b"))["disruptionsAllowed"] == 1


async def test_an_eviction_spends_the_budget_at_once(world: World) -> None:
    await world.budget("b", allowed=2, healthy=3)
    await world.pod("a", node="node", phase="Running")

    await world.evict("a")

    status = await budget_status(world, "b")
    assert status["disruptionsAllowed"] == 1
    assert list(mapping(status, "disruptedPods")) == ["a"]


async def test_an_exhausted_budget_refuses_without_retry_after(world: World) -> None:
    await world.budget("b", allowed=0, healthy=1)
    await world.pod("a", node="node", phase="Running")

    error = await refused(world, "a")

    assert (error.code, error.status["reason"]) == (429, "TooManyRequests")
    assert error.retry_after is None
    assert lookup(error.status, "details", "retryAfterSeconds") is None
    (cause,) = objects(error.status, "details", "causes")
    assert cause["reason"] == "DisruptionBudget"
    assert "needs 1 healthy pods and has 1 currently" in text(cause, "message")


async def test_a_budget_that_allows_none_though_healthy_says_so(world: World) -> None:
    await world.budget("b", allowed=0, healthy=2)
    await world.pod("a", node="node", phase="Running")

    error = await refused(world, "a")

    assert (error.code, error.retry_after) == (429, None)
    (cause,) = objects(error.status, "details", "causes")
    assert cause["reason"] == "DisruptionBudget"
    assert "does not allow evicting pods currently" in text(cause, "message")


async def test_a_budget_not_yet_observed_refuses_with_retry_after(world: World) -> None:
    await world.budget("b", allowed=1, observed=False)
    await world.pod("a", node="node", phase="Running")

    error = await refused(world, "a")

    assert (error.code, error.retry_after) == (429, "10")
    assert integer(error.status, "details", "retryAfterSeconds") == 10
    (cause,) = objects(error.status, "details", "causes")
    assert cause["reason"] == "DisruptionBudget"
    assert "still being processed" in text(cause, "message")


async def test_two_budgets_on_a_pod_are_a_server_error(world: World) -> None:
    await world.budget("b", allowed=1)
    await world.budget("c", allowed=1)
    await world.pod("a", node="node", phase="Running")

    error = await refused(world, "a")

    assert error.code == 500
    assert "more than one PodDisruptionBudget" in text(error.status, "message")


@pytest.mark.parametrize(
    ("policy", "healthy", "passes"),
    [
        pytest.param("", 2, True, id="default-healthy"),
        pytest.param("", 0, False, id="default-broken"),
        pytest.param("IfHealthyBudget", 0, False, id="if-healthy-broken"),
        pytest.param("AlwaysAllow", 0, True, id="always-allow"),
    ],
)
async def test_an_unready_pod_passes_without_budget(
    world: World, policy: str, healthy: int, passes: bool
) -> None:
    await world.budget("b", allowed=0, healthy=healthy, policy=policy)
    await world.pod("a", node="node", phase="Running", ready=False)

    if passes:
        assert (await world.evict("a"))["code"] == 201
    else:
        assert (await refused(world, "a")).code == 429
