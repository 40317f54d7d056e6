"""Which state a list or a watch shows: versions, pages, tokens, bookmarks."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import anyio
import pytest

from reactive_descheduler.sandbox.client import ApiRefused
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    integer,
    mapping,
    name_of,
    objects,
    text,
    version_of,
)

if TYPE_CHECKING:
    from tests.contract.world import World

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(60)]

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


async def create(world: World, *names: str) -> int:
    """ConfigMaps labelled with their names; gives the version of the last."""
    version = 0
    for name in names:
        metadata = {"name": name, "namespace": world.namespace, "labels": {"name": name}}
        made = await world.client.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}
        )
        version = version_of(made)
    return version


async def page(world: World, **query: str) -> JsonObject:
    path = f"/api/v1/namespaces/{world.namespace}/configmaps"
    return await world.client.request("GET", path, query=query)


def names(listed: JsonObject) -> list[str]:
    return [name_of(item) for item in objects(listed, "items")]


def token(listed: JsonObject) -> str:
    return text(listed, "metadata", "continue")


async def watched(
    world: World, *, plural: str = "configmaps", **query: str
) -> list[tuple[str, JsonObject]]:
    """All that a watch says until its timeout of a second."""
    query = {"timeoutSeconds": "1", **query}
    version = query.pop("resourceVersion", "")
    seen = []
    async with aclosing(world.client.watch(plural, version, world.namespace, **query)) as events:
        async for kind, document in events:
            seen.append((kind, document))
    return seen


@pytest.mark.parametrize(
    ("query", "found", "remaining"),
    [
        pytest.param({"limit": "1"}, ["a"], 2, id="limit"),
        pytest.param({"limit": "0"}, ["a", "b", "c"], None, id="no-limit"),
        pytest.param({"limit": "-1"}, ["a", "b", "c"], None, id="negative-limit"),
        pytest.param({"limit": "3"}, ["a", "b", "c"], None, id="limit-of-all"),
        pytest.param({"limit": "1", "labelSelector": "name"}, ["a"], None, id="limit-and-labels"),
        pytest.param(
            {"limit": "1", "fieldSelector": "metadata.name!=z"}, ["a"], None, id="limit-and-fields"
        ),
        pytest.param({"resourceVersion": "0"}, ["a", "b", "c"], None, id="any-version"),
        pytest.param(
            {"resourceVersion": "0", "limit": "1"}, ["a", "b", "c"], None, id="any-version-whole"
        ),
        pytest.param({"resourceVersion": "RV", "limit": "1"}, ["a"], 2, id="version-and-limit"),
        pytest.param(
            {"resourceVersion": "RV", "resourceVersionMatch": "NotOlderThan"},
            ["a", "b", "c"],
            None,
            id="not-older",
        ),
        pytest.param(
            {"resourceVersion": "RV", "resourceVersionMatch": "Exact", "limit": "2"},
            ["a", "b"],
            1,
            id="exact-in-pages",
        ),
    ],
)
async def test_a_list_shows(
    world: World, query: dict[str, str], found: list[str], remaining: int | None
) -> None:
    version = str(await create(world, "a", "b", "c"))
    listed = await page(world, **{k: v.replace("RV", version) for k, v in query.items()})

    assert names(listed) == found
    assert listed["metadata"].get("remainingItemCount") == remaining  # type: ignore[attr-defined]
    assert bool(token(listed)) is (len(found) < 3)
    assert version_of(listed) >= int(version)


async def test_later_pages_show_the_first_ones_state_and_version(world: World) -> None:
    await create(world, "a", "b", "c")
    first = await page(world, limit="1")
    await world.client.delete("configmaps", "b", namespace=world.namespace)
    await create(world, "bb")
    second = await page(world, limit="1", **{"continue": token(first)})
    third = await page(world, limit="5", **{"continue": token(second)})

    assert [names(first), names(second), names(third)] == [["a"], ["b"], ["c"]]
    assert version_of(first) == version_of(second) == version_of(third)
    assert not token(third)


async def test_an_expired_token_comes_with_one_for_the_rest_as_it_is_now(world: World) -> None:
    for name in ("a", "b", "c"):
        await world.client.create(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": name, "namespace": world.namespace},
                "involvedObject": {"kind": "Pod", "name": "p", "namespace": world.namespace},
            }
        )
    path = f"/api/v1/namespaces/{world.namespace}/events"
    first = await world.client.request("GET", path, query={"limit": "1"})
    await world.client.delete("events", "b", namespace=world.namespace)
    await create(world, "something-else")
    await asyncio.to_thread(world.endpoint.forget_history)

    with pytest.raises(ApiRefused) as refused:
        await world.client.request("GET", path, query={"limit": "1", "continue": token(first)})
    rest = await world.client.request("GET", path, query={"continue": token(refused.value.status)})
    exact = {"resourceVersion": str(version_of(first)), "resourceVersionMatch": "Exact"}
    with pytest.raises(ApiRefused) as too_old:
        await world.client.request("GET", path, query=exact)

    assert (refused.value.code, text(refused.value.status, "reason")) == (410, "Expired")
    assert names(rest) == ["c"]
    assert version_of(rest) > version_of(first)
    assert (too_old.value.code, text(too_old.value.status, "reason")) == (410, "Expired")


@pytest.mark.parametrize("match", ["", "Exact", "NotOlderThan"])
async def test_a_version_yet_to_come_times_out(world: World, match: str) -> None:
    version = await create(world, "a")
    query = {"resourceVersion": str(version + 100_000)}
    if match:
        query["resourceVersionMatch"] = match

    with pytest.raises(ApiRefused, match="Too large resource version") as refused:
        await page(world, **query)

    details = mapping(refused.value.status, "details")
    assert (refused.value.code, text(refused.value.status, "reason")) == (504, "Timeout")
    assert [text(c, "reason") for c in objects(details, "causes")] == ["ResourceVersionTooLarge"]
    assert (integer(details, "retryAfterSeconds"), refused.value.retry_after) == (1, "1")


async def test_a_watch_of_any_version_begins_with_what_is_there(world: World) -> None:
    await create(world, "a", "b")
    seen = await watched(world, resourceVersion="0", labelSelector="name")

    assert sorted((kind, name_of(document)) for kind, document in seen) == [
        ("ADDED", "a"),
        ("ADDED", "b"),
    ]


async def test_a_watch_of_one_object_sees_no_other(world: World) -> None:
    version = await create(world, "a")
    query = {"resourceVersion": str(version), "fieldSelector": "metadata.name=b"}
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(create, world, "b", "c")
        seen = await watched(world, **query)

    assert [(kind, name_of(document)) for kind, document in seen] == [("ADDED", "b")]


async def test_a_watch_without_initial_events_begins_at_its_version(world: World) -> None:
    version = await create(world, "a")
    seen = await watched(
        world,
        resourceVersion=str(version),
        sendInitialEvents="false",
        resourceVersionMatch="NotOlderThan",
    )

    assert seen == []


async def test_a_streaming_list_without_bookmarks_ends_unmarked(world: World) -> None:
    await create(world, "a")
    seen = await watched(
        world,
        labelSelector="name",
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
    )

    assert [(kind, name_of(document)) for kind, document in seen] == [("ADDED", "a")]


async def test_only_the_first_table_of_a_watch_names_its_columns(world: World) -> None:
    await create(world, "a", "b")
    world.client._headers["Accept"] = TABLE
    seen = await watched(world, resourceVersion="0", labelSelector="name")

    tables = [document for _, document in seen]
    assert [table["kind"] for table in tables] == ["Table", "Table"]
    assert [bool(table["columnDefinitions"]) for table in tables] == [True, False]
    assert all(len(objects(table, "rows")) == 1 for table in tables)


@pytest.mark.parametrize(
    ("include", "kind"),
    [
        pytest.param("", "PartialObjectMetadata", id="unsaid"),
        pytest.param("Metadata", "PartialObjectMetadata", id="metadata"),
        pytest.param("Object", "ConfigMap", id="object"),
        pytest.param("None", None, id="none"),
    ],
)
async def test_a_tables_rows_hold_as_much_of_the_object_as_is_asked_for(
    world: World, include: str, kind: str | None
) -> None:
    await create(world, "a")
    path = f"/api/v1/namespaces/{world.namespace}/configmaps/a"
    query = {"includeObject": include} if include else None
    table = await world.client.request("GET", path, query=query, accept=TABLE)

    (row,) = objects(table, "rows")
    assert row["cells"][:2] == ["a", 1]  # type: ignore[index]
    assert mapping(row, "object").get("kind") == kind


COLUMNS = {
    "/api/v1/pods": "Name Ready Status Restarts Age IP Node Nominated_Node Readiness_Gates",
    "/api/v1/nodes": (
        "Name Status Roles Age Version Internal-IP External-IP OS-Image Kernel-Version "
        "Container-Runtime"
    ),
    "/api/v1/namespaces": "Name Status Age",
    "/api/v1/configmaps": "Name Data Age",
    "/api/v1/secrets": "Name Type Data Age",
    "/api/v1/services": "Name Type Cluster-IP External-IP Port(s) Age Selector",
    "/api/v1/events": (
        "Last_Seen Type Reason Object Subobject Source Message First_Seen Count Name"
    ),
    "/api/v1/persistentvolumes": (
        "Name Capacity Access_Modes Reclaim_Policy Status Claim StorageClass "
        "VolumeAttributesClass Reason Age VolumeMode"
    ),
    "/apis/apps/v1/deployments": (
        "Name Ready Up-to-date Available Age Containers Images Selector"
    ),
    "/apis/apps/v1/replicasets": "Name Desired Current Ready Age Containers Images Selector",
    "/apis/apps/v1/daemonsets": (
        "Name Desired Current Ready Up-to-date Available Node_Selector Age Containers Images "
        "Selector"
    ),
    "/apis/apps/v1/statefulsets": "Name Ready Age Containers Images",
    "/apis/batch/v1/jobs": "Name Status Completions Duration Age Containers Images Selector",
    "/apis/policy/v1/poddisruptionbudgets": (
        "Name Min_Available Max_Unavailable Allowed_Disruptions Age"
    ),
    "/apis/coordination.k8s.io/v1/leases": "Name Holder Age",
    "/apis/scheduling.k8s.io/v1/priorityclasses": (
        "Name Value Global-Default Age PreemptionPolicy"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("path", "columns"), COLUMNS.items(), ids=COLUMNS)
async def test_tables_have_their_columns(world: World, path: str, columns: str) -> None:
    table = await world.client.request("GET", path, accept=TABLE)

    titles = [text(column, "name") for column in objects(table, "columnDefinitions")]
    assert titles == [title.replace("_", " ") for title in columns.split()]
