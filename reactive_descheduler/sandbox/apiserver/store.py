"""Objects, their one version counter, and the history that watches read.

Stored documents are never changed in place: each write stores a new one together with its bytes,
so that every list and watch shares both. All is synchronous; a write and its publication are one
step that nothing can come between.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import orjson

from reactive_descheduler.sandbox.apiserver.status import expired, too_large_version
from reactive_descheduler.sandbox.documents import JsonObject, attach, name_of, namespace_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactive_descheduler.sandbox.apiserver.resources import Resource

ObjectKey: TypeAlias = tuple[str, str]
EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]

TOO_OLD = "too old resource version: {wanted} ({oldest})"


@dataclass(frozen=True, slots=True)
class Stored:
    """One version of an object: the document (read-only by contract) and its bytes."""

    document: JsonObject
    raw: bytes
    version: int

    @property
    def key(self) -> ObjectKey:
        return namespace_of(self.document), name_of(self.document)

    def copy(self) -> JsonObject:
        """A document of the caller's own, to change."""
        return cast(JsonObject, orjson.loads(self.raw))


@dataclass(slots=True)
class StoredEvent:
    """One change in the history; `previous` decides what a watch with a selector sees."""

    type: EventType
    stored: Stored
    previous: Stored | None
    _line: bytes = field(default=b"", repr=False)

    @property
    def line(self) -> bytes:
        """The watch line, made once for all watches."""
        if not self._line:
            self._line = watch_line(self.type, self.stored.raw)
        return self._line


def watch_line(kind: str, raw: bytes) -> bytes:
    """One line of a watch stream."""
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), raw)


class ResourceStore:
    """The objects of one resource and the recent changes to them."""

    def __init__(self, resource: Resource, history: int) -> None:
        self.resource = resource
        self.objects: dict[ObjectKey, Stored] = {}
        self.compacted = 0
        self.history: deque[StoredEvent] = deque()
        self.listeners: set[Callable[[StoredEvent], None]] = set()
        self._history = history
        self._sorted: tuple[int, list[Stored]] = (-1, [])

    def append(self, event: StoredEvent) -> None:
        """Keep the event, forget the oldest beyond the bound, and tell the watches."""
        self.history.append(event)
        if len(self.history) > self._history:
            self.compacted = self.history.popleft().stored.version
        for listener in tuple(self.listeners):
            listener(event)

    def since(self, version: int) -> list[StoredEvent]:
        """The events after a version.

        Raises ApiError 410 if some of them are forgotten.
        """
        if version < self.compacted:
            raise expired(TOO_OLD.format(wanted=version, oldest=self.compacted))
        return [event for event in self.history if event.stored.version > version]

    def at(self, version: int) -> list[Stored]:
        """All objects as they were at a version, in the order of namespace and name.

        The history is undone from its end, so that pages of one list agree with each other.
        Raises ApiError 410 if the version is forgotten.
        """
        later = self.since(version)
        if self._sorted[0] == version:
            return self._sorted[1]
        objects = dict(self.objects)
        for event in reversed(later):
            if event.previous is None:
                objects.pop(event.stored.key, None)
            else:
                objects[event.stored.key] = event.previous
        self._sorted = (version, [objects[key] for key in sorted(objects)])
        return self._sorted[1]


class Store:
    """Every resource's objects under one version counter, as in etcd.

    `history` bounds the events kept of each resource; an older version answers 410.
    """

    def __init__(self, resources: tuple[Resource, ...], *, history: int = 4_000) -> None:
        self.version = 1
        self._resources = {r.qualified: ResourceStore(r, history) for r in resources}

    def of(self, resource: Resource) -> ResourceStore:
        return self._resources[resource.qualified]

    def put(self, resource: Resource, document: JsonObject) -> Stored:
        """Store a document that is the caller's to give away, and tell the watches."""
        store = self.of(resource)
        stored = self._encode(resource, document)
        previous = store.objects.get(stored.key)
        store.objects[stored.key] = stored
        store.append(StoredEvent("MODIFIED" if previous else "ADDED", stored, previous))
        return stored

    def remove(self, resource: Resource, key: ObjectKey) -> Stored:
        """Remove an object that exists; the last event carries the version of the removal."""
        store = self.of(resource)
        previous = store.objects.pop(key)
        stored = self._encode(resource, previous.copy())
        store.append(StoredEvent("DELETED", stored, previous))
        return stored

    def preview(self, resource: Resource, document: JsonObject) -> Stored:
        """What a dry run answers: the document as it would be stored, at no version of its own."""
        document = {"kind": resource.kind, "apiVersion": resource.api_version, **document}
        return Stored(document, orjson.dumps(document), self.version)

    def load(self, resource: Resource, document: JsonObject) -> None:
        """Bulk set-up: no history and no watch events, so only before anyone watches."""
        store = self.of(resource)
        stored = self._encode(resource, document)
        store.objects[stored.key] = stored
        store.compacted = self.version

    def compact(self) -> None:
        """Forget all history: older versions and open list pages answer 410."""
        # The version moves on, so that whoever holds the latest one notices too.
        self.version += 1
        for store in self._resources.values():
            store.history.clear()
            store.compacted = self.version

    def check_version(self, version: int) -> None:
        """Raises ApiError 504 for a version that has not come yet."""
        if version > self.version:
            raise too_large_version(version, self.version)

    def _encode(self, resource: Resource, document: JsonObject) -> Stored:
        """Give the document the next version.

        Kind and apiVersion come first, so that a list can leave them out by slicing.
        """
        self.version += 1
        document.pop("kind", None)
        document.pop("apiVersion", None)
        document = {"kind": resource.kind, "apiVersion": resource.api_version, **document}
        attach(document, "metadata")["resourceVersion"] = str(self.version)
        return Stored(document, orjson.dumps(document), self.version)
