"""Objects of one kind that cannot be read: counted, and each told once when it becomes so."""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from reactive_descheduler.api.changes import WatchEvent, WatchEventType
from reactive_descheduler.api.meta import KubeObject

log = structlog.get_logger()

TOLD_OF_A_LIST = 20
"""Of so many each is told; if a whole cluster cannot be read, more lines say no more."""


class OpaqueObjects:
    """`len` is how many there are now."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._names: set[tuple[str, str]] = set()

    def __len__(self) -> int:
        return len(self._names)

    def listed(self, objects: Iterable[KubeObject]) -> None:
        """Take a complete list for what was known before."""
        found = {(each.namespace, each.name): each for each in objects if each.opaque}
        new = [each for name, each in found.items() if name not in self._names]
        self._names = set(found)
        for each in new[:TOLD_OF_A_LIST]:
            self._tell(each)
        if len(new) > TOLD_OF_A_LIST:
            more = len(new) - TOLD_OF_A_LIST
            log.warning("More objects cannot be read", kind=self._kind, count=more)

    def changed(self, event: WatchEvent) -> None:
        """Take in one event of the watch."""
        found = event.object
        if found is None or not (found.opaque or self._names):
            return
        name = (found.namespace, found.name)
        if not found.opaque or event.type is WatchEventType.DELETED:
            self._names.discard(name)
        elif name not in self._names:
            self._names.add(name)
            self._tell(found)

    def _tell(self, found: KubeObject) -> None:
        name = f"{found.namespace}/{found.name}" if found.namespace else found.name
        log.warning(
            "Object cannot be read; the Pods concerned stay",
            kind=self._kind,
            name=name,
            error=found.opaque,
        )
