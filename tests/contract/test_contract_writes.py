"""What writes keep and change: statuses, versions, Leases, Events, dry runs, defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from reactive_descheduler.sandbox.client import ApiRefused
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    integer,
    is_terminating,
    labels,
    lookup,
    mapping,
    name_of,
    objects,
    string_map,
    strings,
    text,
    uid_of,
    version_of,
)

if TYPE_CHECKING:
    from tests.contract.world import World

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(60)]


def config_map(world: World, name: str = "a", **metadata: object) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": world.namespace, **metadata},
        "data": {"a": "b"},
    }


def workload(world: World, kind: str, **spec: object) -> JsonObject:
    template = {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "main", "image": "example/image:1"}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "w", "namespace": world.namespace},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": template, **spec},
    }


def lease(world: World, holder: str = "me", **metadata: object) -> JsonObject:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "l", "namespace": world.namespace, **metadata},
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": 15,
            "renewTime": "2026-01-01T00:00:00.123456Z",
        },
    }


async def patch_status(
    world: World,
    plural: str,
    name: str,
    *,
    spec: JsonObject,
    status: JsonObject,
    namespace: str | None = None,
) -> JsonObject:
    """Try to change all parts at once through the status."""
    metadata = {"labels": {"x": "y"}, "annotations": {"x": "y"}}
    patch = {"metadata": metadata, "spec": spec, "status": status}
    namespace = world.namespace if namespace is None else namespace
    return await world.client.patch(plural, name, patch, namespace=namespace, subresource="status")


async def test_a_pods_status_may_be_written_along_with_labels(world: World) -> None:
    await world.pod("p")
    pod = await patch_status(
        world, "pods", "p", spec={"nodeName": "n"}, status={"phase": "Running"}
    )

    assert labels(pod) == {"app": "app", "x": "y"}
    assert string_map(pod, "metadata", "annotations") == {"x": "y"}
    assert (text(pod, "spec", "nodeName"), text(pod, "status", "phase")) == ("", "Running")
    assert integer(pod, "metadata", "generation") == 1


async def test_a_nodes_status_may_be_written_along_with_labels(world: World) -> None:
    name = world.unique("node")
    await world.client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    node = await patch_status(
        world,
        "nodes",
        name,
        namespace="",
        spec={"unschedulable": True},
        status={"phase": "Running"},
    )
    plain = await world.client.patch("nodes", name, {"status": {"phase": "Pending"}})
    await world.client.delete("nodes", name)

    assert (labels(node)["x"], text(node, "status", "phase")) == ("y", "Running")
    assert "unschedulable" not in mapping(node, "spec")
    assert text(plain, "status", "phase") == "Running"


async def test_a_budgets_status_may_be_written_along_with_labels(world: World) -> None:
    await world.budget("b", allowed=1)
    budget = await patch_status(
        world,
        "poddisruptionbudgets",
        "b",
        spec={"minAvailable": 5},
        status={"disruptionsAllowed": 3},
    )

    assert labels(budget) == {"x": "y"}
    assert integer(budget, "spec", "minAvailable") == 1
    assert integer(budget, "status", "disruptionsAllowed") == 3
    assert integer(budget, "metadata", "generation") == 1


async def test_a_deployments_status_may_be_written_along_with_annotations_alone(
    world: World,
) -> None:
    await world.client.create(workload(world, "Deployment"))
    deployment = await patch_status(
        world, "deployments", "w", spec={"replicas": 5}, status={"replicas": 3}
    )

    assert labels(deployment) == {}
    assert string_map(deployment, "metadata", "annotations") == {"x": "y"}
    assert integer(deployment, "spec", "replicas") == 1
    assert mapping(deployment, "status") == {"replicas": 3}


ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
KEEP = {"whenDeleted": "Retain", "whenScaled": "Retain"}


@pytest.mark.parametrize(
    ("kind", "given", "spec", "status"),
    [
        pytest.param(
            "Deployment",
            {},
            {
                "replicas": 1,
                "revisionHistoryLimit": 10,
                "progressDeadlineSeconds": 600,
                "strategy": ROLLING,
            },
            {},
            id="deployment",
        ),
        pytest.param(
            "Deployment",
            {"strategy": {"type": "Recreate"}},
            {
                "replicas": 1,
                "revisionHistoryLimit": 10,
                "progressDeadlineSeconds": 600,
                "strategy": {"type": "Recreate"},
            },
            {},
            id="deployment-recreated",
        ),
        pytest.param("ReplicaSet", {}, {"replicas": 1}, {"replicas": 0}, id="replica-set"),
        pytest.param(
            "StatefulSet",
            {"serviceName": "s"},
            {
                "replicas": 1,
                "revisionHistoryLimit": 10,
                "serviceName": "s",
                "podManagementPolicy": "OrderedReady",
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
                "persistentVolumeClaimRetentionPolicy": KEEP,
            },
            {"replicas": 0, "availableReplicas": 0},
            id="stateful-set",
        ),
        pytest.param(
            "DaemonSet",
            {},
            {
                "revisionHistoryLimit": 10,
                "updateStrategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0},
                },
            },
            {
                "currentNumberScheduled": 0,
                "numberMisscheduled": 0,
                "desiredNumberScheduled": 0,
                "numberReady": 0,
            },
            id="daemon-set",
        ),
    ],
)
async def test_workloads_get_their_defaults(
    world: World, kind: str, given: JsonObject, spec: JsonObject, status: JsonObject
) -> None:
    made = await world.client.create(workload(world, kind, **given))
    template = mapping(made, "spec", "template", "spec")

    own = {k: v for k, v in mapping(made, "spec").items() if k not in ("selector", "template")}
    assert own == spec
    assert made["status"] == status
    assert (template["restartPolicy"], template["dnsPolicy"]) == ("Always", "ClusterFirst")
    assert objects(template, "containers") == [
        {
            "name": "main",
            "image": "example/image:1",
            "imagePullPolicy": "IfNotPresent",
            "resources": {},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
        }
    ]


async def test_a_job_is_given_what_finds_its_pods(world: World) -> None:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example/image:1"}]}
    made = await world.client.create(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "j", "namespace": world.namespace},
            "spec": {"template": {"spec": pod}},
        }
    )

    spec, uid = mapping(made, "spec"), uid_of(made)
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    marks = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "j",
        "controller-uid": uid,
        "job-name": "j",
    }
    assert labels(mapping(spec, "template")) == labels(made) == marks
    counts = {name: spec[name] for name in ("parallelism", "completions", "backoffLimit")}
    assert counts == {"parallelism": 1, "completions": 1, "backoffLimit": 6}


@pytest.mark.parametrize("field", ["name", "image"])
async def test_a_selector_never_changes(world: World, field: str) -> None:
    await world.client.create(workload(world, "Deployment"))
    selector = {"matchLabels": {"app": "a", "more": field}}
    template = {"metadata": {"labels": {"more": field}}}
    with pytest.raises(ApiRefused, match="field is immutable") as refused:
        await world.client.patch(
            "deployments",
            "w",
            {"spec": {"selector": selector, "template": template}},
            namespace=world.namespace,
        )

    assert refused.value.code == 422


@pytest.mark.parametrize("version", ["", "0", None])
async def test_an_update_without_a_version_is_taken(world: World, version: str | None) -> None:
    await world.client.create(config_map(world))
    changed = config_map(world, resourceVersion=version) | {"data": {"c": "d"}}
    await world.client.replace(changed)

    found = await world.client.get("configmaps", "a", world.namespace)
    assert found["data"] == {"c": "d"}


async def test_a_replacing_json_patch_adds_what_an_object_lacks(world: World) -> None:
    await world.client.create(config_map(world))
    operations = [{"op": "replace", "path": "/data/new", "value": "1"}]
    patched = await world.client.patch(
        "configmaps", "a", operations, namespace=world.namespace, kind="json"
    )

    assert patched["data"] == {"a": "b", "new": "1"}


@pytest.mark.parametrize("verb", ["create", "update", "patch", "delete"])
async def test_a_dry_run_answers_and_changes_nothing(world: World, verb: str) -> None:
    if verb != "create":
        await world.client.create(config_map(world))
    before, _ = await world.client.list("configmaps", world.namespace)
    path = f"/api/v1/namespaces/{world.namespace}/configmaps"
    method, body, kind = {
        "create": ("POST", config_map(world), "application/json"),
        "update": ("PUT", config_map(world) | {"data": {"c": "d"}}, "application/json"),
        "patch": ("PATCH", {"data": {"c": "d"}}, "application/merge-patch+json"),
        "delete": ("DELETE", None, "application/json"),
    }[verb]
    answer = await world.client.request(
        method,
        path if verb == "create" else f"{path}/a",
        body=body,
        query={"dryRun": "All"},
        content_type=kind,
    )
    after, _ = await world.client.list("configmaps", world.namespace)

    assert answer["kind"] == ("Status" if verb == "delete" else "ConfigMap")
    assert [(name_of(o), version_of(o)) for o in after] == [
        (name_of(o), version_of(o)) for o in before
    ]


async def test_finalizers_hold_a_deleted_object_and_no_more_can_be_added(world: World) -> None:
    await world.client.create(config_map(world, finalizers=["example.com/hold"]))
    held = await world.client.delete("configmaps", "a", namespace=world.namespace)
    more = {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}
    with pytest.raises(ApiRefused, match="no new finalizers can be added") as refused:
        await world.client.patch("configmaps", "a", more, namespace=world.namespace)
    none = {"metadata": {"finalizers": None}}
    await world.client.patch("configmaps", "a", none, namespace=world.namespace)
    with pytest.raises(ApiRefused) as gone:
        await world.client.get("configmaps", "a", world.namespace)

    assert is_terminating(held)
    assert strings(held, "metadata", "finalizers") == ["example.com/hold"]
    assert (refused.value.code, gone.value.code) == (422, 404)


async def test_a_lease_is_made_by_an_update_and_keeps_its_microseconds(world: World) -> None:
    await world.client.replace(lease(world))
    found = await world.client.get("leases", "l", world.namespace)

    assert text(found, "spec", "renewTime") == "2026-01-01T00:00:00.123456Z"


async def test_of_two_who_take_a_lease_one_conflicts(world: World) -> None:
    made = await world.client.create(lease(world))
    version = text(made, "metadata", "resourceVersion")
    answers: list[int] = []

    async def take(holder: str) -> None:
        try:
            await world.client.replace(lease(world, holder, resourceVersion=version))
            answers.append(200)
        except ApiRefused as error:
            answers.append(error.code)

    async with anyio.create_task_group() as tasks:
        for holder in ("you", "they"):
            tasks.start_soon(take, holder)

    assert sorted(answers) == [200, 409]


@pytest.mark.parametrize("plural", ["leases", "poddisruptionbudgets"])
async def test_leases_and_budgets_are_not_updated_blindly(world: World, plural: str) -> None:
    if plural == "leases":
        document = lease(world)
    else:
        document = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "b", "namespace": world.namespace},
            "spec": {"minAvailable": 1, "selector": {}},
        }
    await world.client.create(document)
    with pytest.raises(ApiRefused, match="must be specified for an update") as refused:
        await world.client.replace(document)

    assert refused.value.code == 422


@pytest.mark.parametrize("stamp", ["2026-01-01T00:00:00Z", "nonsense"])
async def test_a_leases_times_have_microseconds(world: World, stamp: str) -> None:
    document = lease(world)
    mapping(document, "spec")["renewTime"] = stamp
    with pytest.raises(ApiRefused, match="parsing time") as refused:
        await world.client.create(document)

    assert refused.value.code == 400


async def test_a_newer_event_is_seen_in_the_older_form(world: World) -> None:
    about = {"kind": "Pod", "name": "p", "namespace": world.namespace}
    await world.client.request(
        "POST",
        f"/apis/events.k8s.io/v1/namespaces/{world.namespace}/events",
        body={
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": "e"},
            "eventTime": "2026-01-01T00:00:00.000001Z",
            "reportingController": "example.com/controller",
            "reportingInstance": "one",
            "action": "Act",
            "reason": "Tested",
            "regarding": about,
            "note": "told",
            "type": "Normal",
        },
    )
    found = await world.client.get("events", "e", world.namespace)

    assert {k: v for k, v in found.items() if k not in ("kind", "apiVersion", "metadata")} == {
        "action": "Act",
        "eventTime": "2026-01-01T00:00:00.000001Z",
        "firstTimestamp": None,
        "involvedObject": about,
        "lastTimestamp": None,
        "message": "told",
        "reason": "Tested",
        "reportingComponent": "example.com/controller",
        "reportingInstance": "one",
        "source": {},
        "type": "Normal",
    }


async def test_tolerations_of_lost_nodes_come_back(world: World) -> None:
    await world.pod("p")
    patch: JsonObject = {"spec": {"tolerations": []}}
    pod = await world.client.patch("pods", "p", patch, namespace=world.namespace)

    keys = [text(entry, "key") for entry in objects(pod, "spec", "tolerations")]
    assert keys == ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]


@pytest.mark.parametrize(
    ("taints", "field"),
    [
        pytest.param([{"key": "a", "effect": "Nope"}], "effect", id="unknown-effect"),
        pytest.param([{"key": "a", "effect": "NoSchedule"}] * 2, "unique", id="twice"),
    ],
)
async def test_taints_that_are_not_valid_are_refused(
    world: World, taints: list[JsonObject], field: str
) -> None:
    name = world.unique("node")
    await world.client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    with pytest.raises(ApiRefused, match=field) as refused:
        await world.client.patch("nodes", name, {"spec": {"taints": taints}})
    await world.client.delete("nodes", name)

    assert refused.value.code == 422


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"a b": "c"}, id="key"),
        pytest.param({"a": "b c"}, id="value"),
        pytest.param({"UP.example/a": "b"}, id="prefix"),
        pytest.param({"a": "b" * 64}, id="long-value"),
    ],
)
async def test_labels_that_are_not_valid_are_refused(world: World, wrong: JsonObject) -> None:
    with pytest.raises(ApiRefused, match=r"metadata\.labels") as refused:
        await world.client.create(config_map(world, labels=wrong))

    assert refused.value.code == 422


async def test_a_budget_has_one_bound(world: World) -> None:
    with pytest.raises(ApiRefused, match="cannot be both set") as refused:
        await world.client.create(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "b", "namespace": world.namespace},
                "spec": {"minAvailable": 1, "maxUnavailable": 1, "selector": {}},
            }
        )

    assert refused.value.code == 422


@pytest.mark.parametrize(
    ("target", "why"),
    [
        pytest.param({}, "target.name: Required value", id="to-nothing"),
        pytest.param({"kind": "Pod", "name": "n"}, "target.kind: Unsupported", id="to-no-node"),
    ],
)
async def test_a_binding_is_to_a_node(world: World, target: JsonObject, why: str) -> None:
    await world.pod("p")
    with pytest.raises(ApiRefused, match=why) as refused:
        await world.client.request(
            "POST",
            f"/api/v1/namespaces/{world.namespace}/pods/p/binding",
            body={"metadata": {"name": "p"}, "target": target},
        )
    pod = await world.client.get("pods", "p", world.namespace)

    assert refused.value.code == 500
    assert lookup(pod, "spec", "nodeName") is None
