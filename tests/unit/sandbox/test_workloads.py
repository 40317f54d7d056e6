"""Deployments, StatefulSets, Jobs and DaemonSets become Pods and change them, on virtual time."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING

import anyio
import pytest

from reactive_descheduler.kit.clock import LoopClock
from reactive_descheduler.sandbox.client import ApiClient, ApiRefused
from reactive_descheduler.sandbox.cluster import running_sandbox
from reactive_descheduler.sandbox.documents import (
    condition,
    integer,
    is_ready,
    is_terminating,
    labels,
    lookup,
    mapping,
    name_of,
    string_map,
    text,
    uid_of,
)
from reactive_descheduler.sandbox.kubelet import Pace
from reactive_descheduler.sandbox.sample import (
    make_budget,
    make_daemon_set,
    make_deployment,
    until_settled,
)
from reactive_descheduler.sandbox.workloads.deployments import bounds_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from reactive_descheduler.sandbox.documents import JsonObject

REVISION = "deployment.kubernetes.io/revision"


@asynccontextmanager
async def sandbox(*, job: float = 1.0) -> AsyncIterator[ApiClient]:
    clock = LoopClock(datetime(2030, 1, 1, tzinfo=UTC))
    pace = Pace(start=0.2, stop_cap=1.0, job=job, heartbeat=3_600.0)
    async with running_sandbox(
        nodes=3, tls=False, clock=clock, random=Random(1), pace=pace
    ) as cluster:
        yield cluster.client


async def eventually(holds: Callable[[], Awaitable[bool]], *, within: float = 30) -> None:
    with anyio.fail_after(within):
        while not await holds():  # noqa: ASYNC110 - the state is the server's
            await anyio.sleep(0.05)


async def pods_of(client: ApiClient, app: str) -> list[JsonObject]:
    pods, _ = await client.list("pods", labelSelector=f"app={app}")
    return sorted(pods, key=name_of)


def deployment(replicas: int, **strategy: object) -> JsonObject:
    document = make_deployment("web", replicas=replicas)
    mapping(document, "spec")["strategy"] = strategy
    return document


async def change_template(client: ApiClient, plural: str, name: str, version: str) -> None:
    patch = {"spec": {"template": {"metadata": {"annotations": {"version": version}}}}}
    await client.patch(plural, name, patch, namespace="default")


def version_of(pod: JsonObject) -> str:
    return string_map(pod, "metadata", "annotations").get("version", "")


async def until_rolled(client: ApiClient, replicas: int) -> None:
    """Return once `kubectl rollout status` would."""

    async def rolled() -> bool:
        found = await client.get("deployments", "web", "default")
        status = mapping(found, "status")
        counts = {status.get(f) for f in ("replicas", "updatedReplicas", "availableReplicas")}
        generation = integer(found, "metadata", "generation")
        return counts == {replicas} and status.get("observedGeneration") == generation

    await eventually(rolled)


@pytest.mark.parametrize(
    ("replicas", "strategy", "most", "least"),
    [
        pytest.param(4, {}, 5, 3, id="a-quarter-by-default"),
        pytest.param(3, {}, 4, 3, id="shares-are-rounded-towards-safety"),
        pytest.param(10, {"maxSurge": "11%", "maxUnavailable": "19%"}, 12, 9, id="shares"),
        pytest.param(4, {"maxSurge": 0, "maxUnavailable": 2}, 4, 2, id="counts"),
        pytest.param(4, {"maxSurge": 0, "maxUnavailable": 0}, 4, 3, id="it-can-always-move"),
        pytest.param(2, {"maxUnavailable": 5, "maxSurge": 0}, 2, 0, id="never-below-none"),
    ],
)
def test_bounds_of_a_rolling_update(
    replicas: int, strategy: JsonObject, most: int, least: int
) -> None:
    bounds = bounds_of(deployment(replicas, type="RollingUpdate", rollingUpdate=strategy))

    assert (bounds.most, bounds.least) == (most, least)


@pytest.mark.parametrize(
    "rolling",
    [
        pytest.param({}, id="default"),
        pytest.param({"maxSurge": 0, "maxUnavailable": 1}, id="no-surge"),
        pytest.param({"maxSurge": 2, "maxUnavailable": 0}, id="none-unavailable"),
    ],
)
async def test_a_rolling_update_stays_within_its_bounds(rolling: JsonObject) -> None:
    async with sandbox() as client:
        document = deployment(4, type="RollingUpdate", rollingUpdate=rolling)
        await client.create(document)
        await until_settled(client)
        seen = {uid_of(pod): pod for pod in await pods_of(client, "web")}
        _, version = await client.list("pods")
        counts: list[tuple[int, int]] = []

        async def count() -> None:
            async for kind, pod in client.watch("pods", version):
                seen[uid_of(pod)] = pod
                if kind == "DELETED":
                    del seen[uid_of(pod)]
                here = [pod for pod in seen.values() if not is_terminating(pod)]
                counts.append((len(here), sum(map(is_ready, here))))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(count)
            await change_template(client, "deployments", "web", "2")
            await until_rolled(client, 4)
            tasks.cancel_scope.cancel()
        pods = [pod for pod in await pods_of(client, "web") if not is_terminating(pod)]

    bounds = bounds_of(document)
    assert max(total for total, _ in counts) == bounds.most
    assert min(ready for _, ready in counts) == bounds.least
    assert {version_of(pod) for pod in pods} == {"2"}


async def test_recreate_starts_no_pod_before_the_old_ones_are_gone() -> None:
    async with sandbox() as client:
        await client.create(deployment(2, type="Recreate"))
        await until_settled(client)
        mixed = False

        async def only_new() -> bool:
            nonlocal mixed
            versions = {version_of(pod) for pod in await pods_of(client, "web")}
            mixed |= len(versions) > 1
            return versions == {"2"}

        await change_template(client, "deployments", "web", "2")
        await eventually(only_new)
        await until_rolled(client, 2)

    assert not mixed


async def test_going_back_to_a_template_takes_its_replica_set_with_a_new_revision() -> None:
    async with sandbox() as client:
        await client.create(deployment(2))
        await until_settled(client)
        for version in ("2", "3", "2"):
            await change_template(client, "deployments", "web", version)
            await until_rolled(client, 2)
        replica_sets, _ = await client.list("replicasets")
        found = await client.get("deployments", "web", "default")

    sizes = {
        string_map(rs, "metadata", "annotations")[REVISION]: integer(rs, "spec", "replicas")
        for rs in replica_sets
    }
    assert sizes == {"1": 0, "3": 0, "4": 2}
    assert string_map(found, "metadata", "annotations")[REVISION] == "4"


async def test_old_replica_sets_are_forgotten_beyond_the_limit() -> None:
    async with sandbox() as client:
        document = deployment(1)
        mapping(document, "spec")["revisionHistoryLimit"] = 1
        await client.create(document)
        await until_settled(client)
        for version in ("2", "3", "4"):
            await change_template(client, "deployments", "web", version)
            await until_rolled(client, 1)

        async def two_left() -> bool:
            return len((await client.list("replicasets"))[0]) == 2

        await eventually(two_left)


async def test_a_paused_deployment_keeps_its_template_and_follows_its_size() -> None:
    async with sandbox() as client:
        await client.create(deployment(1))
        await until_settled(client)
        await client.patch("deployments", "web", {"spec": {"paused": True}}, namespace="default")
        await change_template(client, "deployments", "web", "2")
        await client.patch("deployments", "web", {"spec": {"replicas": 3}}, namespace="default")

        async def grown() -> bool:
            return len(await pods_of(client, "web")) == 3

        await eventually(grown)
        before = {version_of(pod) for pod in await pods_of(client, "web")}
        await client.patch("deployments", "web", {"spec": {"paused": None}}, namespace="default")
        await until_rolled(client, 3)

    assert before == {""}


async def test_conditions_tell_how_a_deployment_fares() -> None:
    async with sandbox() as client:
        await client.create(deployment(2))
        await until_settled(client)
        whole = await client.get("deployments", "web", "default")
        stuck: JsonObject = {"nodeSelector": {"no": "where"}}
        patch = {"spec": {"progressDeadlineSeconds": 20, "template": {"spec": stuck}}}
        await client.patch("deployments", "web", patch, namespace="default")
        await anyio.sleep(5)
        trying = await client.get("deployments", "web", "default")
        await anyio.sleep(25)
        failed = await client.get("deployments", "web", "default")

    def told(document: JsonObject) -> tuple[object, object, object]:
        progress = condition(document, "Progressing")
        available = condition(document, "Available").get("status")
        return available, progress.get("status"), progress.get("reason")

    assert told(whole) == ("True", "True", "NewReplicaSetAvailable")
    assert told(trying) == ("True", "True", "ReplicaSetUpdated")
    assert told(failed) == ("True", "False", "ProgressDeadlineExceeded")


async def test_pods_are_available_once_they_were_ready_for_long_enough() -> None:
    async with sandbox() as client:
        document = deployment(2)
        mapping(document, "spec")["minReadySeconds"] = 10
        await client.create(document)
        await until_settled(client)
        early = await client.get("deployments", "web", "default")
        await anyio.sleep(11)
        late = await client.get("deployments", "web", "default")

    assert integer(early, "status", "readyReplicas") == 2
    assert "availableReplicas" not in mapping(early, "status")
    assert integer(late, "status", "availableReplicas") == 2


def stateful_set(replicas: int, **spec: object) -> JsonObject:
    document = make_deployment("db", replicas=replicas)
    document["kind"] = "StatefulSet"
    mapping(document, "spec").update({"serviceName": "db", **spec})
    return document


async def until_ready(client: ApiClient, replicas: int, version: str = "") -> list[JsonObject]:
    async def whole() -> bool:
        pods = await pods_of(client, "db")
        return len(pods) == replicas and all(
            is_ready(pod) and version_of(pod) == version and not is_terminating(pod) for pod in pods
        )

    await eventually(whole)
    return await pods_of(client, "db")


async def test_a_stateful_set_starts_its_pods_in_order() -> None:
    async with sandbox() as client:
        await client.create(stateful_set(3))
        pods = await until_ready(client, 3)
        found = await client.get("statefulsets", "db", "default")

    started = [text(pod, "metadata", "creationTimestamp") for pod in pods]
    assert [name_of(pod) for pod in pods] == ["db-0", "db-1", "db-2"]
    assert started == sorted(started)
    assert labels(pods[1])["apps.kubernetes.io/pod-index"] == "1"
    assert lookup(pods[1], "spec", "hostname") == "db-1"
    status = mapping(found, "status")
    assert status["currentRevision"] == status["updateRevision"]
    assert (status["readyReplicas"], status["currentReplicas"]) == (3, 3)


async def test_an_evicted_pod_of_a_stateful_set_comes_back_by_its_name_once_it_is_gone() -> None:
    async with sandbox() as client:
        await client.create(stateful_set(2))
        await client.create(make_budget("db", minimum="50%"))
        before = await until_ready(client, 2)

        await client.evict("db-0")
        await anyio.sleep(0.5)
        meanwhile = await pods_of(client, "db")
        after = await until_ready(client, 2)

    assert [is_terminating(pod) for pod in meanwhile] == [True, False]
    assert [name_of(pod) for pod in after] == ["db-0", "db-1"]
    assert uid_of(after[0]) != uid_of(before[0])
    assert uid_of(after[1]) == uid_of(before[1])


async def test_a_stateful_set_shrinks_from_its_highest_number() -> None:
    async with sandbox() as client:
        await client.create(stateful_set(3, podManagementPolicy="Parallel"))
        await until_ready(client, 3)
        await client.patch("statefulsets", "db", {"spec": {"replicas": 1}}, namespace="default")
        pods = await until_ready(client, 1)

    assert [name_of(pod) for pod in pods] == ["db-0"]


async def test_a_stateful_set_updates_from_its_highest_number_down_to_the_partition() -> None:
    async with sandbox() as client:
        update = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
        await client.create(stateful_set(3, updateStrategy=update))
        await until_ready(client, 3)
        await change_template(client, "statefulsets", "db", "2")
        await anyio.sleep(10)
        pods = await pods_of(client, "db")
        found = await client.get("statefulsets", "db", "default")

    assert [version_of(pod) for pod in pods] == ["", "2", "2"]
    status = mapping(found, "status")
    assert (status["currentReplicas"], status["updatedReplicas"]) == (1, 2)
    assert status["currentRevision"] != status["updateRevision"]


def job(**spec: object) -> JsonObject:
    pod: JsonObject = {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "example/image:1"}],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "work", "namespace": "default"},
        "spec": {"template": {"metadata": {"labels": {"app": "work"}}, "spec": pod}, **spec},
    }


async def until_over(client: ApiClient, verdict: str) -> JsonObject:
    async def over() -> bool:
        found = await client.get("jobs", "work", "default")
        return condition(found, verdict).get("status") == "True"

    await eventually(over)
    return await client.get("jobs", "work", "default")


async def test_a_job_runs_pods_until_enough_have_succeeded() -> None:
    async with sandbox() as client:
        await client.create(job(completions=3, parallelism=2))
        await anyio.sleep(0.5)
        running = await pods_of(client, "work")
        found = await until_over(client, "Complete")
        pods = await pods_of(client, "work")

    assert len(running) == 2
    assert integer(found, "status", "succeeded") == 3
    assert "active" not in mapping(found, "status")
    assert {text(pod, "status", "phase") for pod in pods} == {"Succeeded"}
    assert labels(pods[0])["batch.kubernetes.io/controller-uid"] == uid_of(found)


async def test_an_evicted_pod_of_a_job_has_failed_and_is_replaced() -> None:
    async with sandbox(job=3.0) as client:
        await client.create(job())
        await anyio.sleep(0.5)
        (victim,) = await pods_of(client, "work")
        await client.evict(name_of(victim))
        found = await until_over(client, "Complete")

    assert (integer(found, "status", "failed"), integer(found, "status", "succeeded")) == (1, 1)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        pytest.param({"backoffLimit": 0}, "BackoffLimitExceeded", id="too-many-failed"),
        pytest.param({"activeDeadlineSeconds": 2}, "DeadlineExceeded", id="took-too-long"),
    ],
)
async def test_a_job_fails(spec: JsonObject, reason: str) -> None:
    async with sandbox(job=60.0) as client:
        await client.create(job(**spec))
        await anyio.sleep(0.5)
        (pod,) = await pods_of(client, "work")
        if reason == "BackoffLimitExceeded":
            await client.patch(
                "pods",
                name_of(pod),
                {"status": {"phase": "Failed"}},
                namespace="default",
                subresource="status",
            )
        found = await until_over(client, "Failed")

    assert condition(found, "Failed")["reason"] == reason


async def test_a_job_goes_after_its_time_to_live() -> None:
    async with sandbox() as client:
        await client.create(job(ttlSecondsAfterFinished=5))
        await until_over(client, "Complete")

        async def gone() -> bool:
            return not (await client.list("jobs"))[0] and not (await client.list("pods"))[0]

        await eventually(gone)


async def test_a_suspended_job_has_no_pods_until_it_is_resumed() -> None:
    async with sandbox() as client:
        await client.create(job(suspend=True))
        await anyio.sleep(1)
        before = await pods_of(client, "work")
        await client.patch("jobs", "work", {"spec": {"suspend": False}}, namespace="default")
        await until_over(client, "Complete")

    assert before == []


async def test_a_daemon_set_changes_its_template_one_pod_at_a_time() -> None:
    async with sandbox() as client:
        await client.create(make_daemon_set("agent"))
        await until_settled(client)
        fewest = 3

        async def rolled() -> bool:
            nonlocal fewest
            pods = await pods_of(client, "agent")
            fewest = min(fewest, sum(is_ready(p) and not is_terminating(p) for p in pods))
            return len(pods) == 3 and {version_of(pod) for pod in pods} == {"2"}

        await change_template(client, "daemonsets", "agent", "2")
        await eventually(rolled)

    assert fewest == 2


@pytest.mark.parametrize(
    ("document", "field"),
    [
        pytest.param(
            {**deployment(1), "spec": {"template": {"spec": {}}}}, "selector", id="no-selector"
        ),
        pytest.param(
            {
                **deployment(1),
                "spec": {
                    **mapping(deployment(1), "spec"),
                    "selector": {"matchLabels": {"app": "other"}},
                },
            },
            "template.metadata.labels",
            id="a-selector-for-others",
        ),
        pytest.param(
            {**job(), "spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}},
            "restartPolicy",
            id="a-job-that-always-restarts",
        ),
    ],
)
async def test_workloads_that_cannot_work_are_refused(document: JsonObject, field: str) -> None:
    async with sandbox() as client:
        with pytest.raises(ApiRefused, match=field) as refused:
            await client.create(document)

    assert refused.value.code == 422


async def test_an_object_that_makes_no_sense_does_not_stop_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with sandbox() as client:
        broken = deployment(1, type="RollingUpdate", rollingUpdate={"maxSurge": "many"})
        mapping(broken, "metadata")["name"] = "broken"
        await client.create(broken)
        await client.create(deployment(1))
        await until_rolled(client, 1)

    assert "Reconciling ('default', 'broken') failed" in caplog.text


async def test_a_selector_never_changes() -> None:
    async with sandbox() as client:
        await client.create(deployment(1))
        both = {"matchLabels": {"app": "web", "more": "b"}}
        with pytest.raises(ApiRefused, match="immutable") as refused:
            await client.patch(
                "deployments", "web", {"spec": {"selector": both}}, namespace="default"
            )

    assert refused.value.code == 422
