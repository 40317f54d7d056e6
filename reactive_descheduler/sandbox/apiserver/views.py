"""How objects are shown: whole, as metadata alone, or as rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import orjson

from reactive_descheduler.sandbox.apiserver.event_forms import NEW_EVENTS, NewEventView
from reactive_descheduler.sandbox.apiserver.status import ApiError
from reactive_descheduler.sandbox.apiserver.tables import table, table_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reactive_descheduler.sandbox.apiserver.resources import Resource
    from reactive_descheduler.sandbox.apiserver.store import Stored
    from reactive_descheduler.sandbox.documents import JsonObject

_META = "meta.k8s.io/v1"


class View(Protocol):
    """Bytes of one object and of a list."""

    def one(self, stored: Stored) -> bytes: ...

    def many(self, items: Sequence[Stored], metadata: JsonObject) -> bytes: ...


class WholeView:
    """Objects as they are stored; list items carry no kind, as on a real server."""

    def __init__(self, resource: Resource) -> None:
        head = b'{"kind":"%b","apiVersion":"%b",'
        names = (resource.kind.encode(), resource.api_version.encode())
        self._skip = len(head % names)
        self._list = b'{"kind":"%bList","apiVersion":"%b","metadata":' % names

    def one(self, stored: Stored) -> bytes:
        return stored.raw

    def many(self, items: Sequence[Stored], metadata: JsonObject) -> bytes:
        body = b",".join([b"{" + item.raw[self._skip :] for item in items])
        return b'%b%b,"items":[%b]}' % (self._list, orjson.dumps(metadata), body)


class MetadataView:
    """PartialObjectMetadata: what informers ask for that need no spec."""

    def one(self, stored: Stored) -> bytes:
        return orjson.dumps(self._partial(stored))

    def many(self, items: Sequence[Stored], metadata: JsonObject) -> bytes:
        return orjson.dumps(
            {
                "kind": "PartialObjectMetadataList",
                "apiVersion": _META,
                "metadata": metadata,
                "items": [self._partial(item) for item in items],
            }
        )

    @staticmethod
    def _partial(stored: Stored) -> JsonObject:
        return {
            "kind": "PartialObjectMetadata",
            "apiVersion": _META,
            "metadata": stored.document["metadata"],
        }


class TableView:
    """What `kubectl get` prints; of several tables only the first tells its columns.

    `include` says how much of each object comes along: Metadata (or nothing said), Object, None.
    """

    def __init__(self, resource: Resource, now: float, *, include: str = "") -> None:
        if include not in ("", "Metadata", "Object", "None"):
            why = f"includeObject: Invalid value: \"{include}\": must be 'Metadata', 'Object', "
            message = f"Unable to convert to Table as requested: {why}'None', or empty"
            raise ApiError(400, message)
        self._resource = resource
        self._now = now
        self._include = include
        self._told = False

    def one(self, stored: Stored) -> bytes:
        return self.many([stored], {"resourceVersion": str(stored.version)})

    def many(self, items: Sequence[Stored], metadata: JsonObject) -> bytes:
        documents = [item.document for item in items]
        rows = table_rows(self._resource, documents, now=self._now, include=self._include)
        whole = table(self._resource, rows, metadata)
        if self._told:
            whole["columnDefinitions"] = None
        self._told = True
        return orjson.dumps(whole)


def choose_view(resource: Resource, accept: str, *, now: float, include: str = "") -> View:
    """The first media type that the server can give; whole objects if none asks for more.

    Raises ApiError 400 for a table that is to include what there is not.
    """
    for media_type in accept.split(","):
        if "as=Table" in media_type:
            return TableView(resource, now, include=include)
        if "as=PartialObjectMetadata" in media_type:
            return MetadataView()
        if media_type.strip().startswith(("application/json", "*/*")) and "as=" not in media_type:
            break
    return NewEventView() if resource is NEW_EVENTS else WholeView(resource)
