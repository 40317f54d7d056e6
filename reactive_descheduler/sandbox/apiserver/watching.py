"""WATCH: a stream of lines, each one change."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

import anyio
import orjson

from reactive_descheduler.sandbox.apiserver.bookmarks import INITIAL_EVENTS_END, bookmark
from reactive_descheduler.sandbox.apiserver.event_forms import stored_as
from reactive_descheduler.sandbox.apiserver.status import ApiError
from reactive_descheduler.sandbox.apiserver.store import Stored, StoredEvent, watch_line
from reactive_descheduler.sandbox.apiserver.views import WholeView
from reactive_descheduler.sandbox.documents import attach

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from reactive_descheduler.sandbox.apiserver.requests import ListQuery
    from reactive_descheduler.sandbox.apiserver.resources import Resource
    from reactive_descheduler.sandbox.apiserver.store import Store
    from reactive_descheduler.sandbox.apiserver.views import View


class Watch:
    """One open watch: what it must still send, filled by the store in the step of the write.

    `bookmark_every` and `timeout` are in seconds.
    """

    def __init__(
        self,
        store: Store,
        resource: Resource,
        query: ListQuery,
        *,
        view: View,
        bookmark_every: float,
        timeout: float,
    ) -> None:
        self._store = store
        self._resource = resource
        self._objects = store.of(stored_as(resource))
        self._query = query
        self._view = view
        self._bookmark_every = bookmark_every
        self._timeout = timeout
        self._lines: deque[bytes] = deque()
        self._filled = asyncio.Event()
        self._failed = False
        self._begin()

    def close(self) -> None:
        """Stop being told of changes."""
        self._objects.listeners.discard(self._on_event)

    async def chunks(self) -> AsyncIterator[bytes]:
        """What to write, until the timeout ends the watch."""
        ends = anyio.current_time() + self._timeout
        next_bookmark = anyio.current_time() + self._bookmark_every
        while True:
            if self._lines:
                # Joined in one go: a burst costs one write.
                chunk = b"".join(self._lines)
                self._lines.clear()
                yield chunk
                continue
            now = anyio.current_time()
            if self._failed or now >= ends:
                return
            if self._query.bookmarks and now >= next_bookmark:
                next_bookmark = now + self._bookmark_every
                self._lines.append(self._bookmark({}))
                continue
            self._filled.clear()
            wake_at = min(ends, next_bookmark) if self._query.bookmarks else ends
            with anyio.move_on_at(wake_at):
                await self._filled.wait()

    def _begin(self) -> None:
        version = self._query.version or 0
        store = self._objects
        if self._query.initial_events or (self._query.initial_events is None and not version):
            for stored in store.at(self._store.version):
                if self._query.matches(stored.document):
                    self._lines.append(watch_line("ADDED", self._view.one(stored)))
            if self._query.initial_events and self._query.bookmarks:
                self._lines.append(self._bookmark(INITIAL_EVENTS_END))
        elif version:
            try:
                missed = store.since(version)
            except ApiError as error:
                # A real server has sent the 200 by then, so the error comes as an event.
                self._lines.append(watch_line("ERROR", orjson.dumps(error.document())))
                self._failed = True
                return
            for event in missed:
                self._on_event(event)
        store.listeners.add(self._on_event)

    def _on_event(self, event: StoredEvent) -> None:
        line = self._line(event)
        if line is not None:
            self._lines.append(line)
            self._filled.set()

    def _line(self, event: StoredEvent) -> bytes | None:
        """What this watch sees of a change: objects may come into its selector and leave it."""
        if not self._query.selects and isinstance(self._view, WholeView):
            return event.line
        matched = event.previous is not None and self._query.matches(event.previous.document)
        matches = self._query.matches(event.stored.document)
        if event.type == "DELETED":
            return self._encode("DELETED", event.stored) if matched else None
        if matches:
            return self._encode("MODIFIED" if matched else "ADDED", event.stored)
        if matched and event.previous is not None:
            return self._encode("DELETED", _at_version(event.previous, event.stored.version))
        return None

    def _encode(self, kind: str, stored: Stored) -> bytes:
        return watch_line(kind, self._view.one(stored))

    def _bookmark(self, annotations: Mapping[str, str]) -> bytes:
        return bookmark(self._resource, self._store.version, annotations)


def _at_version(stored: Stored, version: int) -> Stored:
    document = stored.copy()
    attach(document, "metadata")["resourceVersion"] = str(version)
    return Stored(document, orjson.dumps(document), version)
