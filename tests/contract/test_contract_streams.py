"""LIST and WATCH."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from reactive_descheduler.sandbox.client import ApiRefused
from reactive_descheduler.sandbox.documents import integer, lookup, name_of, objects, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactive_descheduler.sandbox.documents import JsonObject
    from tests.contract.world import World

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(60)]


def pods_path(world: World) -> str:
    return f"/api/v1/namespaces/{world.namespace}/pods"


async def list_pods(world: World, **query: str) -> JsonObject:
    return await world.client.request("GET", pods_path(world), query=query)


def names(page: JsonObject) -> list[str]:
    return [name_of(item) for item in objects(page, "items")]


async def watch_until(
    world: World, version: str, done: Callable[[str, JsonObject], bool], **query: str
) -> list[tuple[str, str]]:
    """Types and names of the events up to the first that is done."""
    seen = []
    async with aclosing(world.client.watch("pods", version, world.namespace, **query)) as events:
        async for kind, document in events:
            seen.append((kind, name_of(document)))
            if done(kind, document):
                break
    return seen


async def create_event(world: World, name: str) -> None:
    await world.client.create(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": world.namespace},
            "involvedObject": {"kind": "Pod", "name": "a", "namespace": world.namespace},
            "reason": "Tested",
        }
    )


async def label(world: World, name: str, app: str) -> None:
    patch = {"metadata": {"labels": {"app": app}}}
    await world.client.patch("pods", name, patch, namespace=world.namespace)


async def test_list_items_carry_no_kind(world: World) -> None:
    await world.pod("a")

    page = await list_pods(world)

    assert (page["kind"], page["apiVersion"]) == ("PodList", "v1")
    (item,) = objects(page, "items")
    assert item.keys().isdisjoint({"kind", "apiVersion"})


async def test_pages_are_of_one_state(world: World) -> None:
    for name in ("a", "b", "c", "d"):
        await world.pod(name)

    first = await list_pods(world, limit="2")
    await world.client.delete("pods", "c", namespace=world.namespace)
    await world.pod("bb")
    token = text(first, "metadata", "continue")
    second = await list_pods(world, limit="2", **{"continue": token})

    assert names(first) == ["a", "b"]
    assert integer(first, "metadata", "remainingItemCount") == 2
    assert names(second) == ["c", "d"]
    assert not text(second, "metadata", "continue")
    version = ("metadata", "resourceVersion")
    assert lookup(first, *version) == lookup(second, *version)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        pytest.param({"labelSelector": "app=x"}, ["a"], id="label-equals"),
        pytest.param({"labelSelector": "app!=x"}, ["b", "c"], id="label-differs"),
        pytest.param({"labelSelector": "app in (x, y)"}, ["a", "b"], id="label-in"),
        pytest.param({"labelSelector": "app notin (x,y)"}, ["c"], id="label-not-in"),
        pytest.param({"labelSelector": "!app"}, [], id="label-missing"),
        pytest.param({"labelSelector": "app,app!=z"}, ["a", "b"], id="label-two-terms"),
        pytest.param({"fieldSelector": "metadata.name=b"}, ["b"], id="field-name"),
        pytest.param({"fieldSelector": "spec.nodeName=n"}, ["c"], id="field-node"),
        pytest.param({"fieldSelector": "spec.nodeName="}, ["a", "b"], id="field-no-node"),
        pytest.param({"fieldSelector": "status.phase!=Pending"}, ["c"], id="field-phase"),
    ],
)
async def test_selectors_choose(world: World, query: dict[str, str], found: list[str]) -> None:
    await world.pod("a", app="x")
    await world.pod("b", app="y")
    await world.pod("c", app="z", node="n", phase="Running")

    assert names(await list_pods(world, **query)) == found


@pytest.mark.parametrize(
    "query",
    [
        pytest.param({"fieldSelector": "spec.nothing=a"}, id="unknown-field"),
        pytest.param({"labelSelector": "a b c"}, id="broken-selector"),
        pytest.param({"continue": "nonsense"}, id="broken-token"),
    ],
)
async def test_queries_that_cannot_be_read_are_bad_requests(
    world: World, query: dict[str, str]
) -> None:
    with pytest.raises(ApiRefused) as caught:
        await list_pods(world, **query)

    assert caught.value.code == 400


async def test_a_list_at_an_exact_version_shows_the_past(world: World) -> None:
    await world.pod("a")
    version = text(await list_pods(world), "metadata", "resourceVersion")
    await world.client.delete("pods", "a", namespace=world.namespace)

    past = await list_pods(world, resourceVersion=version, resourceVersionMatch="Exact")

    assert names(past) == ["a"]
    assert names(await list_pods(world)) == []


async def test_a_watch_gives_every_change_after_its_version(world: World) -> None:
    version = text(await list_pods(world), "metadata", "resourceVersion")
    await world.pod("a")
    await label(world, "a", "x")

    seen = await watch_until(world, version, lambda kind, _: kind == "MODIFIED")

    assert seen == [("ADDED", "a"), ("MODIFIED", "a")]


@pytest.mark.parametrize("node", [pytest.param("", id="unbound"), pytest.param("n", id="bound")])
async def test_a_removed_pod_is_seen_terminating_first(world: World, node: str) -> None:
    pod = await world.pod("a", node=node)
    if node:
        pod = await world.client.delete("pods", "a", namespace=world.namespace, grace=30)
    await world.client.delete("pods", "a", namespace=world.namespace, grace=0)
    seen: list[tuple[str, int]] = []

    def done(kind: str, document: JsonObject) -> bool:
        grace = integer(document, "metadata", "deletionGracePeriodSeconds", default=-1)
        seen.append((kind, grace))
        return kind == "DELETED"

    await watch_until(world, text(pod, "metadata", "resourceVersion"), done)

    assert seen == [("MODIFIED", 0), ("DELETED", 0)]


async def test_a_deletion_carries_a_version_of_its_own(world: World) -> None:
    pod = await world.pod("a")
    version = text(pod, "metadata", "resourceVersion")
    await world.client.delete("pods", "a", namespace=world.namespace)
    seen: list[JsonObject] = []

    def done(_kind: str, document: JsonObject) -> bool:
        seen.append(document)
        return True

    await watch_until(world, version, done)

    assert int(text(seen[0], "metadata", "resourceVersion")) > int(version)


async def test_objects_come_into_a_selector_and_leave_it(world: World) -> None:
    pod = await world.pod("a", app="x")
    version = text(pod, "metadata", "resourceVersion")
    for app in ("y", "x", "y"):
        await label(world, "a", app)

    seen = await watch_until(world, version, lambda kind, _: kind == "ADDED", labelSelector="app=x")

    assert seen == [("DELETED", "a"), ("ADDED", "a")]


async def test_a_watch_without_a_version_begins_with_what_is_there(world: World) -> None:
    await world.pod("a")
    await world.pod("b")

    seen = await watch_until(world, "", lambda _, pod: name_of(pod) == "b")

    assert seen == [("ADDED", "a"), ("ADDED", "b")]


async def test_a_streaming_list_ends_with_a_marked_bookmark(world: World) -> None:
    await world.pod("a")
    last: list[JsonObject] = []

    def done(kind: str, document: JsonObject) -> bool:
        last[:] = [document]
        return kind == "BOOKMARK"

    seen = await watch_until(
        world,
        "",
        done,
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        allowWatchBookmarks="true",
    )

    assert [kind for kind, _ in seen] == ["ADDED", "BOOKMARK"]
    mark = ("metadata", "annotations", "k8s.io/initial-events-end")
    assert lookup(last[0], *mark) == "true"
    assert int(text(last[0], "metadata", "resourceVersion")) > 0


@pytest.mark.parametrize(
    ("plural", "spec", "status"),
    [
        pytest.param("pods", {"containers": None}, {}, id="pods"),
        pytest.param("namespaces", {}, {}, id="namespaces"),
        pytest.param("configmaps", None, None, id="configmaps"),
        pytest.param(
            "poddisruptionbudgets",
            {},
            {
                "disruptionsAllowed": 0,
                "currentHealthy": 0,
                "desiredHealthy": 0,
                "expectedPods": 0,
            },
            id="budgets",
        ),
        pytest.param(
            "replicasets",
            {
                "replicas": 0,
                "selector": None,
                "template": {"metadata": {}, "spec": {"containers": None}},
            },
            {"replicas": 0},
            id="replicasets",
        ),
    ],
)
async def test_a_bookmark_has_the_fields_of_an_empty_object(
    world: World, plural: str, spec: JsonObject | None, status: JsonObject | None
) -> None:
    query = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
        "labelSelector": "no-such-label",
    }
    async with aclosing(world.client.watch(plural, "", **query)) as events:
        kind, mark = await anext(events)

    assert kind == "BOOKMARK"
    assert (mark.get("spec"), mark.get("status")) == (spec, status)


async def test_a_streaming_list_needs_its_version_match(world: World) -> None:
    with pytest.raises(ApiRefused) as caught:
        await watch_until(world, "", lambda *_: True, sendInitialEvents="true")

    assert caught.value.code == 422


async def test_a_watch_from_a_forgotten_version_gets_an_error_event(world: World) -> None:
    await create_event(world, "a")
    world.endpoint.forget_history()

    events = world.client.watch("events", "1", world.namespace)
    with pytest.raises(ApiRefused) as caught:
        await anext(events)

    assert (caught.value.code, caught.value.status["reason"]) == (410, "Expired")
    assert "too old" in text(caught.value.status, "message")
    assert not caught.value.by_http


async def test_a_page_of_a_forgotten_list_is_refused(world: World) -> None:
    await create_event(world, "a")
    await create_event(world, "b")
    path = f"/api/v1/namespaces/{world.namespace}/events"
    page = await world.client.request("GET", path, query={"limit": "1"})
    await create_event(world, "c")
    world.endpoint.forget_history()

    token = text(page, "metadata", "continue")
    with pytest.raises(ApiRefused) as caught:
        await world.client.request("GET", path, query={"limit": "1", "continue": token})

    assert (caught.value.code, caught.value.status["reason"]) == (410, "Expired")
    assert caught.value.by_http


async def test_a_watch_ends_after_its_timeout(world: World) -> None:
    version = text(await list_pods(world), "metadata", "resourceVersion")

    seen = await watch_until(world, version, lambda *_: False, timeoutSeconds="1")

    assert seen == []


async def test_metadata_alone_is_served(world: World) -> None:
    await world.pod("a")
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

    page = await world.client.request("GET", pods_path(world), accept=accept)

    (item,) = objects(page, "items")
    assert page["kind"] == "PartialObjectMetadataList"
    assert name_of(item) == "a"
    assert "spec" not in item


async def test_tables_are_served_for_people(world: World) -> None:
    await world.pod("a", node="n", phase="Running")
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

    table = await world.client.request("GET", pods_path(world), accept=accept)

    columns = [text(column, "name") for column in objects(table, "columnDefinitions")]
    assert (table["kind"], columns[:4]) == ("Table", ["Name", "Ready", "Status", "Restarts"])
    (row,) = objects(table, "rows")
    assert name_of(row["object"]) == "a"
