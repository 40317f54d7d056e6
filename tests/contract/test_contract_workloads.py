"""How Deployments, StatefulSets and Jobs go, and what budgets make of their Pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reactive_descheduler.sandbox.documents import (
    JsonObject,
    condition,
    integer,
    is_ready,
    is_terminating,
    labels,
    mapping,
    name_of,
    string_map,
    text,
    uid_of,
)
from reactive_descheduler.sandbox.sample import make_budget, make_deployment
from tests.contract.live import Live, eventually
from tests.contract.world import make_pod

if TYPE_CHECKING:
    from tests.contract.live import Opener

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(120)]

REVISION = "deployment.kubernetes.io/revision"


async def change_template(cluster: Live, plural: str, name: str, version: str) -> None:
    patch = {"spec": {"template": {"metadata": {"annotations": {"version": version}}}}}
    await cluster.client.patch(plural, name, patch, namespace=cluster.world.namespace)


async def until_rolled(cluster: Live, name: str) -> JsonObject:
    """Return the Deployment once `kubectl rollout status` would say that it is through."""
    found: JsonObject = {}

    async def rolled() -> bool:
        nonlocal found
        found = await cluster.client.get("deployments", name, cluster.world.namespace)
        status, wanted = mapping(found, "status"), integer(found, "spec", "replicas")
        counts = {status.get(f) for f in ("replicas", "updatedReplicas", "availableReplicas")}
        observed = status.get("observedGeneration") == integer(found, "metadata", "generation")
        reason = condition(found, "Progressing").get("reason")
        return observed and counts == {wanted} and reason == "NewReplicaSetAvailable"

    await eventually(rolled)
    return found


async def replica_sets_of(cluster: Live) -> dict[str, int]:
    """The sizes of the namespace's ReplicaSets by revision."""
    found, _ = await cluster.client.list("replicasets", cluster.world.namespace)
    return {
        string_map(rs, "metadata", "annotations")[REVISION]: integer(rs, "spec", "replicas")
        for rs in found
    }


async def test_a_changed_template_rolls_out_under_a_new_revision(live: Opener) -> None:
    async with live() as cluster:
        await cluster.deploy("web", 3)
        before = await until_rolled(cluster, "web")
        for version in ("2", "3", "2"):
            await change_template(cluster, "deployments", "web", version)
            after = await until_rolled(cluster, "web")
        sizes = await replica_sets_of(cluster)

    assert string_map(before, "metadata", "annotations")[REVISION] == "1"
    assert string_map(after, "metadata", "annotations")[REVISION] == "4"
    assert sizes == {"1": 0, "3": 0, "4": 3}
    verdicts = {kind: condition(after, kind)["status"] for kind in ("Available", "Progressing")}
    assert verdicts == {"Available": "True", "Progressing": "True"}
    assert condition(after, "Available")["reason"] == "MinimumReplicasAvailable"
    assert "unavailableReplicas" not in mapping(after, "status")


async def test_an_update_that_fits_nowhere_stops_at_its_bounds(live: Opener) -> None:
    async with live() as cluster:
        await cluster.deploy("web", 4)
        stuck = {"spec": {"template": {"spec": {"nodeSelector": {"no": "where"}}}}}
        namespace = cluster.world.namespace
        await cluster.client.patch("deployments", "web", stuck, namespace=namespace)
        found: JsonObject = {}

        async def stopped() -> bool:
            nonlocal found
            found = await cluster.client.get("deployments", "web", namespace)
            counts = ("replicas", "updatedReplicas", "availableReplicas", "unavailableReplicas")
            return [integer(found, "status", field) for field in counts] == [5, 2, 3, 2]

        await eventually(stopped)
        sizes = await replica_sets_of(cluster)

    assert sizes == {"1": 3, "2": 2}
    assert condition(found, "Available")["status"] == "True"
    assert condition(found, "Progressing")["reason"] == "ReplicaSetUpdated"


async def test_a_recreated_deployment_has_none_of_its_old_pods(live: Opener) -> None:
    async with live() as cluster:
        await cluster.deploy("web", 2)
        namespace = cluster.world.namespace
        strategy = {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}}
        await cluster.client.patch("deployments", "web", strategy, namespace=namespace)
        await change_template(cluster, "deployments", "web", "2")
        await until_rolled(cluster, "web")
        pods = await cluster.pods("web")

    versions = [string_map(pod, "metadata", "annotations").get("version") for pod in pods]
    assert versions == ["2", "2"]


async def test_a_stateful_set_keeps_its_pods_names(live: Opener) -> None:
    async with live() as cluster:
        namespace = cluster.world.namespace
        document = make_deployment("db", replicas=2, namespace=namespace, pod_spec=cluster.here)
        document["kind"] = "StatefulSet"
        mapping(document, "spec")["serviceName"] = "db"
        await cluster.client.create(document)

        async def whole() -> bool:
            pods = await cluster.pods("db")
            return len(pods) == 2 and all(is_ready(p) and not is_terminating(p) for p in pods)

        await eventually(whole)
        first, second = await cluster.pods("db")
        await cluster.world.evict(name_of(first))

        async def replaced() -> bool:
            return await whole() and uid_of((await cluster.pods("db"))[0]) != uid_of(first)

        await eventually(replaced)
        again, untouched = await cluster.pods("db")
        await change_template(cluster, "statefulsets", "db", "2")
        found: JsonObject = {}

        async def updated() -> bool:
            nonlocal found
            found = await cluster.client.get("statefulsets", "db", namespace)
            status = mapping(found, "status")
            counts = [status.get(f) for f in ("updatedReplicas", "readyReplicas", "replicas")]
            return counts == [2, 2, 2] and status["currentRevision"] == status["updateRevision"]

        await eventually(updated)

    assert (name_of(first), name_of(second)) == ("db-0", "db-1")
    assert (name_of(again), uid_of(untouched)) == ("db-0", uid_of(second))
    marks = {
        "app": "db",
        "apps.kubernetes.io/pod-index": "0",
        "statefulset.kubernetes.io/pod-name": "db-0",
    }
    assert marks.items() <= labels(first).items()
    assert labels(first)["controller-revision-hash"]
    assert text(first, "spec", "hostname") == "db-0"


async def test_a_job_completes(live: Opener) -> None:
    async with live() as cluster:
        namespace = cluster.world.namespace
        container = {"name": "main", "image": "example/image:1"}
        pod = {"restartPolicy": "Never", "containers": [container], **cluster.here}
        await cluster.client.create(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": "work", "namespace": namespace},
                "spec": {"completions": 2, "parallelism": 1, "template": {"spec": pod}},
            }
        )
        found: JsonObject = {}

        async def over() -> bool:
            nonlocal found
            found = await cluster.client.get("jobs", "work", namespace)
            return condition(found, "Complete").get("status") == "True"

        await eventually(over)
        pods, _ = await cluster.client.list("pods", namespace, labelSelector="job-name=work")

    status = mapping(found, "status")
    assert status["succeeded"] == 2
    assert "active" not in status
    assert text(status, "completionTime")
    assert {text(pod, "status", "phase") for pod in pods} == {"Succeeded"}


@pytest.mark.parametrize(
    ("bound", "expected", "desired", "allowed"),
    [
        pytest.param({"minAvailable": 0}, 3, 0, 3, id="none"),
        pytest.param({"minAvailable": 5}, 3, 5, 0, id="more-than-there-are"),
        pytest.param({"minAvailable": "34%"}, 3, 2, 1, id="share-rounds-up"),
        pytest.param({"minAvailable": "100%"}, 3, 3, 0, id="all"),
        pytest.param({"maxUnavailable": "34%"}, 3, 1, 2, id="missing-share-rounds-up-too"),
        pytest.param({"maxUnavailable": 7}, 3, 0, 3, id="more-missing-than-there-are"),
        pytest.param({}, 0, 0, 0, id="no-bound-allows-none"),
    ],
)
async def test_a_budget_reckons(
    live: Opener, bound: JsonObject, expected: int, desired: int, allowed: int
) -> None:
    async with live() as cluster:
        await cluster.deploy("store", 3)
        assert await _reckoned(cluster, "store", bound) == (expected, 3, desired, allowed)


async def test_a_budget_of_unready_pods_counts_them_as_expected(live: Opener) -> None:
    async with live() as cluster:
        await cluster.deploy("store", 3)
        namespace = cluster.world.namespace
        victim = name_of((await cluster.pods("store"))[0])
        unready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
        await cluster.client.patch(
            "pods", victim, unready, namespace=namespace, subresource="status", kind="strategic"
        )

        assert await _reckoned(cluster, "store", {"minAvailable": 2}) == (3, 2, 2, 0)


async def test_a_budget_of_pods_without_a_controller_counts_the_pods(live: Opener) -> None:
    async with live() as cluster:
        namespace = cluster.world.namespace
        for name in ("a", "b"):
            document = make_pod(name, namespace, app="bare")
            mapping(document, "spec").update(cluster.here)
            await cluster.client.create(document)

        async def ready() -> bool:
            return all(map(is_ready, await cluster.pods("bare")))

        await eventually(ready)
        assert await _reckoned(cluster, "bare", {"minAvailable": 1}) == (2, 2, 1, 1)


async def _reckoned(cluster: Live, app: str, bound: JsonObject) -> tuple[object, ...]:
    """Expected, healthy, desired and allowed, once the controller has seen the budget."""
    namespace = cluster.world.namespace
    budget = make_budget(app, minimum=0, namespace=namespace)
    budget["spec"] = {"selector": {"matchLabels": {"app": app}}, **bound}
    await cluster.client.create(budget)
    found: JsonObject = {}

    async def observed() -> bool:
        nonlocal found
        found = await cluster.client.get("poddisruptionbudgets", app, namespace)
        return integer(found, "status", "observedGeneration") == 1

    await eventually(observed)
    fields = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")
    return tuple(mapping(found, "status").get(field) for field in fields)
