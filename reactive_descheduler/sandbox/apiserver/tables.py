"""Tables: what `kubectl get` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactive_descheduler.sandbox.apiserver.columns import LAYOUTS, PLAIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reactive_descheduler.sandbox.apiserver.resources import Resource
    from reactive_descheduler.sandbox.documents import JsonObject


def table(resource: Resource, rows: list[JsonObject], metadata: JsonObject) -> JsonObject:
    """A `Table` with the columns of a resource."""
    columns, _ = LAYOUTS.get(resource.qualified, PLAIN)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [_column(name) for name in columns.split()],
        "rows": rows,
    }


def table_rows(
    resource: Resource, documents: Sequence[JsonObject], *, now: float, include: str = ""
) -> list[JsonObject]:
    """One row an object; each carries the object's metadata, which kubectl sorts and labels by."""
    _, cells = LAYOUTS.get(resource.qualified, PLAIN)
    return [
        {"cells": cells(document, now), "object": _included(document, include)}
        for document in documents
    ]


def _included(document: JsonObject, include: str) -> JsonObject | None:
    if include == "Object":
        return document
    if include == "None":
        return None
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": document["metadata"],
    }


def _column(name: str) -> JsonObject:
    """A name ending in + shows with `-o wide` only, in # it is a number, in ? true or false;
    underscores stand for spaces."""
    wide = name.endswith("+")
    title = name.rstrip("+#?").replace("_", " ")
    return {
        "name": title,
        "type": {"#": "integer", "?": "boolean"}.get(name[-1], "string"),
        "format": "name" if title == "Name" else "",
        "description": "",
        "priority": int(wide),
    }
