"""Reading and writing single objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reactive_descheduler.sandbox.client import ApiRefused, connect
from reactive_descheduler.sandbox.documents import (
    integer,
    is_terminating,
    labels,
    lookup,
    mapping,
    name_of,
    objects,
    strings,
    text,
)
from tests.contract.world import make_pod

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from reactive_descheduler.sandbox.client import PatchKind
    from reactive_descheduler.sandbox.documents import JsonObject
    from tests.contract.world import World

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(60)]


async def refused(call: Awaitable[JsonObject]) -> tuple[int, str]:
    with pytest.raises(ApiRefused) as caught:
        await call
    return caught.value.code, text(caught.value.status, "reason")


def config_map(world: World, name: str, **data: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": world.namespace},
        "data": data,
    }


async def make_node(world: World) -> str:
    name = world.unique("node")
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    await world.client.create(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"disk": "ssd"}},
            "status": {"capacity": amounts, "allocatable": amounts},
        }
    )
    return name


async def test_a_wrong_token_is_unauthorized(world: World) -> None:
    trust = world.endpoint.trust()
    async with connect(world.endpoint.url, token="wrong", ssl_context=trust) as client:
        assert await refused(client.get("nodes", "a")) == (401, "Unauthorized")


async def test_a_missing_token_is_refused(world: World) -> None:
    trust = world.endpoint.trust()
    async with connect(world.endpoint.url, ssl_context=trust) as client:
        code, _ = await refused(client.get("nodes", "a"))

    assert code in (401, 403)


async def test_a_pod_gets_its_defaults(world: World) -> None:
    pod = await world.client.create(make_pod("a", world.namespace))

    assert text(pod, "metadata", "uid")
    assert text(pod, "metadata", "creationTimestamp").endswith("Z")
    assert text(pod, "status", "phase") == "Pending"
    assert text(pod, "status", "qosClass") == "BestEffort"
    assert text(pod, "spec", "restartPolicy") == "Always"
    assert integer(pod, "spec", "terminationGracePeriodSeconds") == 30
    assert integer(pod, "spec", "priority", default=-1) == 0
    tolerations = {
        (text(t, "key"), text(t, "effect"), integer(t, "tolerationSeconds"))
        for t in objects(pod, "spec", "tolerations")
    }
    assert tolerations == {
        ("node.kubernetes.io/not-ready", "NoExecute", 300),
        ("node.kubernetes.io/unreachable", "NoExecute", 300),
    }


async def test_a_pods_priority_comes_from_its_class(world: World) -> None:
    name = world.unique("class")
    kind: JsonObject = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    await world.client.create(kind | {"metadata": {"name": name}, "value": 77})
    pod = make_pod("a", world.namespace)
    mapping(pod, "spec")["priorityClassName"] = name

    assert integer(await world.client.create(pod), "spec", "priority") == 77


async def test_a_generated_name_has_five_more_signs(world: World) -> None:
    pod = make_pod("", world.namespace)
    pod["metadata"] = {"generateName": "web-", "namespace": world.namespace}

    name = name_of(await world.client.create(pod))

    assert name.startswith("web-")
    assert len(name) == len("web-") + 5


async def test_what_is_missing_or_there_already_is_refused(world: World) -> None:
    await world.client.create(config_map(world, "a"))

    assert await refused(world.client.get("configmaps", "b", world.namespace)) == (404, "NotFound")
    again = world.client.create(config_map(world, "a"))
    assert await refused(again) == (409, "AlreadyExists")
    elsewhere = config_map(world, "a")
    elsewhere["metadata"] = {"name": "a", "namespace": "no-such-namespace"}
    assert await refused(world.client.create(elsewhere)) == (404, "NotFound")


async def test_what_is_not_valid_is_refused(world: World) -> None:
    pod = make_pod("Not_A_Name", world.namespace)
    assert await refused(world.client.create(pod)) == (422, "Invalid")
    pod = make_pod("a", world.namespace)
    pod["spec"] = {"containers": []}
    assert await refused(world.client.create(pod)) == (422, "Invalid")


async def test_an_update_with_an_old_version_conflicts(world: World) -> None:
    created = await world.client.create(config_map(world, "a", x="1"))
    newer = await world.client.replace({**created, "data": {"x": "2"}})

    assert await refused(world.client.replace(created)) == (409, "Conflict")
    assert text(newer, "data", "x") == "2"


async def test_a_write_that_changes_nothing_keeps_the_version(world: World) -> None:
    created = await world.client.create(config_map(world, "a", x="1"))

    patched = await world.client.patch(
        "configmaps", "a", {"data": {"x": "1"}}, namespace=world.namespace
    )

    assert lookup(patched, "metadata", "resourceVersion") == lookup(
        created, "metadata", "resourceVersion"
    )


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        pytest.param("merge", {"metadata": {"labels": {"disk": None, "a": "b"}}}, id="merge"),
        pytest.param(
            "strategic", {"metadata": {"labels": {"disk": None, "a": "b"}}}, id="strategic"
        ),
        pytest.param(
            "json",
            [
                {"op": "test", "path": "/metadata/labels/disk", "value": "ssd"},
                {"op": "remove", "path": "/metadata/labels/disk"},
                {"op": "add", "path": "/metadata/labels/a", "value": "b"},
            ],
            id="json",
        ),
    ],
)
async def test_each_kind_of_patch_changes_labels(
    world: World, kind: PatchKind, patch: object
) -> None:
    node = await make_node(world)

    patched = labels(await world.client.patch("nodes", node, patch, kind=kind))

    assert patched.get("a") == "b"
    assert "disk" not in patched


async def test_taints_are_replaced_whole_and_conditions_merge_by_type(world: World) -> None:
    node = await make_node(world)
    for key in ("first", "second"):
        patch = {"spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}}
        patched = await world.client.patch("nodes", node, patch, kind="strategic")
    assert [text(taint, "key") for taint in objects(patched, "spec", "taints")] == ["second"]

    for kind in ("Ready", "DiskPressure"):
        status = {"conditions": [{"type": kind, "status": "True"}]}
        patched = await world.client.patch(
            "nodes", node, {"status": status}, subresource="status", kind="strategic"
        )
    kinds = {text(entry, "type") for entry in objects(patched, "status", "conditions")}
    assert kinds == {"Ready", "DiskPressure"}


async def test_a_strategic_patch_deletes_list_members_and_finalizers(world: World) -> None:
    pod = make_pod("a", world.namespace)
    mapping(pod, "metadata")["finalizers"] = ["example.test/a", "example.test/b"]
    await world.client.create(pod)

    patched = await world.client.patch(
        "pods",
        "a",
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.test/a"]}},
        namespace=world.namespace,
        kind="strategic",
    )

    assert strings(patched, "metadata", "finalizers") == ["example.test/b"]
    emptied = {"metadata": {"finalizers": None}}
    await world.client.patch("pods", "a", emptied, namespace=world.namespace)


async def test_a_json_patch_whose_test_fails_is_refused(world: World) -> None:
    node = await make_node(world)
    patch = [{"op": "test", "path": "/metadata/labels/disk", "value": "hdd"}]

    assert (await refused(world.client.patch("nodes", node, patch, kind="json")))[0] == 422


async def test_an_unknown_patch_type_is_refused(world: World) -> None:
    node = await make_node(world)
    call = world.client.request(
        "PATCH", f"/api/v1/nodes/{node}", body={}, content_type="application/json"
    )

    assert await refused(call) == (415, "UnsupportedMediaType")


async def test_spec_and_status_are_written_apart(world: World) -> None:
    node = await make_node(world)
    both = {"spec": {"unschedulable": True}, "status": {"allocatable": {"cpu": "1"}}}

    main = await world.client.patch("nodes", node, both)
    assert lookup(main, "spec", "unschedulable") is True
    assert lookup(main, "status", "allocatable", "cpu") == "4"

    both["spec"] = {"unschedulable": False}
    status = await world.client.patch("nodes", node, both, subresource="status")
    assert lookup(status, "spec", "unschedulable") is True
    assert lookup(status, "status", "allocatable", "cpu") == "1"


async def test_generation_counts_changes_of_the_spec(world: World) -> None:
    await world.budget("b", allowed=1)
    patch = {"spec": {"minAvailable": 2}}
    patched = await world.client.patch(
        "poddisruptionbudgets", "b", patch, namespace=world.namespace
    )

    assert integer(patched, "metadata", "generation") == 2


async def test_a_pods_placement_cannot_be_updated(world: World) -> None:
    await world.pod("a")
    patch = {"spec": {"nodeName": "elsewhere"}}

    call = world.client.patch("pods", "a", patch, namespace=world.namespace)

    assert await refused(call) == (422, "Invalid")


async def test_a_pod_is_bound_once(world: World) -> None:
    pod = await world.pod("a", node="node")

    assert text(pod, "spec", "nodeName") == "node"
    with pytest.raises(ApiRefused) as caught:
        await world.client.bind(pod, "other")
    assert caught.value.code == 409


async def test_a_bound_pod_is_deleted_with_grace_and_then_for_good(world: World) -> None:
    await world.pod("a", node="node", phase="Running")

    deleted = await world.client.delete("pods", "a", namespace=world.namespace, grace=5)
    assert is_terminating(deleted)
    assert integer(deleted, "metadata", "deletionGracePeriodSeconds") == 5

    await world.client.delete("pods", "a", namespace=world.namespace, grace=0)
    assert not await world.is_there("a")


async def test_deleting_with_another_uid_conflicts(world: World) -> None:
    await world.pod("a")
    call = world.client.delete("pods", "a", namespace=world.namespace, uid="another")

    assert await refused(call) == (409, "Conflict")


async def test_deleting_a_collection_takes_what_the_selector_matches(world: World) -> None:
    await world.pod("a", app="x")
    await world.pod("b", app="y")

    path = f"/api/v1/namespaces/{world.namespace}/pods"
    await world.client.request("DELETE", path, query={"labelSelector": "app=x"})

    assert not await world.is_there("a")
    assert await world.is_there("b")


async def test_dry_run_creates_nothing(world: World) -> None:
    path = f"/api/v1/namespaces/{world.namespace}/configmaps"
    answer = await world.client.request(
        "POST", path, body=config_map(world, "a"), query={"dryRun": "All"}
    )

    assert name_of(answer) == "a"
    code, _ = await refused(world.client.get("configmaps", "a", world.namespace))
    assert code == 404


async def test_scale_changes_the_replicas(world: World) -> None:
    template = {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "main", "image": "example/image:1"}]},
    }
    await world.client.create(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "a", "namespace": world.namespace},
            "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": template},
        }
    )
    scaled = await world.client.patch(
        "deployments",
        "a",
        {"spec": {"replicas": 3}},
        namespace=world.namespace,
        subresource="scale",
    )

    assert (scaled["kind"], integer(scaled, "spec", "replicas")) == ("Scale", 3)
    deployment = await world.client.get("deployments", "a", world.namespace)
    assert integer(deployment, "spec", "replicas") == 3


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        pytest.param("GET", "/api/v1/nothings", 404, id="unknown-resource"),
        pytest.param("GET", "/apis/apps/v2/deployments", 404, id="unknown-version"),
        pytest.param("POST", "/api/v1/nodes/a", 405, id="create-by-name"),
        pytest.param("PUT", "/api/v1/nodes", 405, id="update-a-collection"),
        pytest.param("DELETE", "/api/v1/pods", 405, id="delete-in-all-namespaces"),
    ],
)
async def test_what_is_not_served_is_refused(
    world: World, method: str, path: str, code: int
) -> None:
    assert (await refused(world.client.request(method, path, body={})))[0] == code


@pytest.mark.parametrize("path", ["/apis/nothing.test/v1", "/apis/metrics.k8s.io/v1beta1/nodes"])
async def test_an_unknown_group_is_not_found_in_plain_text(world: World, path: str) -> None:
    with pytest.raises(ApiRefused) as caught:
        await world.client.request("GET", path)

    assert caught.value.code == 404
    assert caught.value.status == {"message": "404 page not found\n"}


async def test_discovery_names_what_is_served(world: World) -> None:
    core = await world.client.request("GET", "/api/v1")
    groups = await world.client.request("GET", "/apis")

    served = {text(entry, "name"): entry for entry in objects(core, "resources")}
    assert {"nodes", "pods", "pods/eviction", "events", "namespaces"} <= served.keys()
    assert text(served["pods/eviction"], "group") == "policy"
    names = {text(group, "name") for group in objects(groups, "groups")}
    assert {"apps", "policy", "coordination.k8s.io", "events.k8s.io"} <= names


async def test_events_have_two_forms_of_the_same_object(world: World) -> None:
    path = f"/apis/events.k8s.io/v1/namespaces/{world.namespace}/events"
    about = {"kind": "Pod", "name": "a", "namespace": world.namespace}
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "a", "namespace": world.namespace},
        "eventTime": "2030-01-01T00:00:00.000000Z",
        "regarding": about,
        "note": "First",
        "reason": "Tested",
        "action": "Testing",
        "type": "Normal",
        "reportingController": "example.test/suite",
        "reportingInstance": "suite-1",
    }
    created = await world.client.request("POST", path, body=event)
    series = {"count": 2, "lastObservedTime": "2030-01-01T00:00:01.000000Z"}
    patched = await world.client.request(
        "PATCH",
        f"{path}/a",
        body={"series": series},
        content_type="application/merge-patch+json",
    )
    core = await world.client.get("events", "a", world.namespace)
    listed = await world.client.request("GET", path)

    assert created["apiVersion"] == patched["apiVersion"] == "events.k8s.io/v1"
    assert (patched["note"], patched["regarding"]) == ("First", about)
    assert patched["series"] == core["series"] == series
    assert (core["apiVersion"], core["message"]) == ("v1", "First")
    assert core["involvedObject"] == about
    assert [text(item, "note") for item in objects(listed, "items")] == ["First"]
    assert listed["apiVersion"] == "events.k8s.io/v1"
