"""Events have two forms, `v1` and `events.k8s.io/v1`, of the same stored objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from reactive_descheduler.sandbox.apiserver.resources import BY_PATH, Resource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reactive_descheduler.sandbox.apiserver.store import Stored
    from reactive_descheduler.sandbox.documents import JsonObject

CORE_EVENTS = BY_PATH["", "v1", "events"]
NEW_EVENTS = BY_PATH["events.k8s.io", "v1", "events"]

_TO_CORE = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedCount": "count",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
}
_FROM_CORE = {core: new for new, core in _TO_CORE.items()}


def stored_as(resource: Resource) -> Resource:
    """The resource under which objects of this one are kept."""
    return CORE_EVENTS if resource is NEW_EVENTS else resource


def to_stored(resource: Resource, document: JsonObject) -> JsonObject:
    """An object, or a merge patch of one, in the form in which it is kept."""
    if resource is not NEW_EVENTS:
        return document
    renamed = {_TO_CORE.get(key, key): value for key, value in document.items()}
    if "apiVersion" in renamed:
        renamed["apiVersion"] = CORE_EVENTS.api_version
    return renamed


class NewEventView:
    """Stored Events in the form of `events.k8s.io/v1`."""

    def one(self, stored: Stored) -> bytes:
        return orjson.dumps(_convert(stored))

    def many(self, items: Sequence[Stored], metadata: JsonObject) -> bytes:
        return orjson.dumps(
            {
                "kind": "EventList",
                "apiVersion": NEW_EVENTS.api_version,
                "metadata": metadata,
                "items": [_convert(item) for item in items],
            }
        )


def _convert(stored: Stored) -> JsonObject:
    renamed = {_FROM_CORE.get(key, key): value for key, value in stored.document.items()}
    return renamed | {"apiVersion": NEW_EVENTS.api_version}
