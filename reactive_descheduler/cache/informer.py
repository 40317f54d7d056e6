"""Applies lists and watch events to the store, and tells of each change once it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from reactive_descheduler.api.changes import Change, WatchEvent, WatchEventType
from reactive_descheduler.api.meta import KubeObject
from reactive_descheduler.cache.store import Store


class Informer:
    """The one writer of a store, for all kinds.

    `on_change` is called for each change in order, after store, indexes and counts are updated, and
    before the next object is looked at. It must not write to the store.
    """

    def __init__(self, store: Store, on_change: Callable[[Change], None]) -> None:
        self._store = store
        self._on_change = on_change
        self._listed: dict[str, str] = {}

    def replace(
        self, kind: str, objects: Iterable[KubeObject], resource_version: str
    ) -> Iterator[list[Change]]:
        """Take in a whole list of a kind: what it lacks is deleted, what differs is changed.

        Yields the changes of each object in turn, so that the caller may let others run in between;
        they see a mixture of old and new, as between two events of a watch. The deletions come
        first, so that no one sees the room that a Pod left as still taken.
        """
        objects = list(objects)
        for gone in self._store.missing(kind, objects):
            yield self._tell(self._store.remove(gone))
        for found in objects:
            yield self._tell(self._store.put(found))
        self._listed[kind] = resource_version

    def apply(self, event: WatchEvent) -> list[Change]:
        """Take in one watch event. A bookmark changes nothing."""
        match event:
            case WatchEvent(type=WatchEventType.ADDED | WatchEventType.MODIFIED, object=found):
                return [] if found is None else self._tell(self._store.put(found))
            case WatchEvent(type=WatchEventType.DELETED, object=found):
                return [] if found is None else self._tell(self._store.remove(found))
            case _:
                return []

    def listed_version(self, kind: str) -> str:
        """Return the version of the last list of this kind; empty before the first."""
        return self._listed.get(kind, "")

    def _tell(self, changes: list[Change]) -> list[Change]:
        for change in changes:
            self._on_change(change)
        return changes
