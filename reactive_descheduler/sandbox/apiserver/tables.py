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


def table_rows(resource: Resource, documents: Sequence[JsonObject], now: float) -> list[JsonObject]:
    """One row an object; each carries the object's metadata, which kubectl sorts and labels by."""
    _, cells = LAYOUTS.get(resource.qualified, PLAIN)
    return [
        {
            "cells": cells(document, now),
            "object": {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": document["metadata"],
            },
        }
        for document in documents
    ]


def _column(name: str) -> JsonObject:
    """A name ending in + shows with `-o wide` only; underscores stand for spaces."""
    wide = name.endswith("+")
    title = name.rstrip("+").replace("_", " ")
    return {
        "name": title,
        "type": "string",
        "format": "name" if title == "Name" else "",
        "description": "",
        "priority": int(wide),
    }
