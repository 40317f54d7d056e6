"""List and watch one resource over HTTP, in the form in which the reflector reads it."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing

import anyio
import anyio.lowlevel
import structlog

from reactive_descheduler.api.changes import WatchEvent, WatchEventType
from reactive_descheduler.api.decoding import Decoder, UnreadableError
from reactive_descheduler.api.errors import ApiStatusError, Unreachable
from reactive_descheduler.api.meta import KubeObject
from reactive_descheduler.cache.list_watch import Page
from reactive_descheduler.client.kube import KubeConnection, Params
from reactive_descheduler.client.lines import LineSplitter
from reactive_descheduler.client.resources import RESOURCES
from reactive_descheduler.client.statuses import plain_status
from reactive_descheduler.kit.clock import Clock

log = structlog.get_logger()

PAGE_SIZE = 250
"""Objects on a page: decoding one takes a few milliseconds, in one stretch."""
SLICE = 0.008
"""Seconds of decoding after which a block of lines is broken off, for the loop to breathe."""
STREAM_SILENCE = 10.0
"""Seconds without a byte after which a streaming list counts as not served: servers before it
ignore the parameters, send what they have as a watch, and never say that it was all."""
NOT_SERVED = frozenset({400, 406, 415, 422, 500, 501})
"""Answers to a streaming list that mean: not by this server (an older one, its feature gate off,
or an etcd too old for it, which answers 500)."""
END_OF_LIST = re.compile(rb'"k8s\.io/initial-events-end"\s*:\s*"true"')
"""The annotation of the bookmark that closes the list."""


class HttpListWatch:
    """A ListerWatcher on a connection."""

    def __init__(
        self,
        connection: KubeConnection,
        decoder: Decoder,
        kind: str,
        *,
        clock: Clock,
        page_size: int = PAGE_SIZE,
        streaming: bool = True,
        stream_silence: float = STREAM_SILENCE,
    ) -> None:
        """`streaming`: try the streaming list first; what a server refused once is not tried
        again."""
        self._connection = connection
        self._decoder = decoder
        self._clock = clock
        self._page_size = page_size
        self._streaming = streaming
        self._stream_silence = stream_silence
        self._path = RESOURCES[kind].path
        self.kind = kind

    async def pages(self) -> AsyncGenerator[Page, None]:
        """Yield the pages of one consistent list."""
        if self._streaming:
            any_page = False
            try:
                async with aclosing(self._list_as_stream()) as pages:
                    async for page in pages:
                        any_page = True
                        yield page
            except _NotServedError as error:
                self._streaming = False
                log.info("listing in pages, not as a stream", kind=self.kind, reason=str(error))
                if any_page:
                    # What came may be outdated by now, and cannot be taken back.
                    raise Unreachable("the API server broke off a streaming list") from error
            else:
                return
        async with aclosing(self._list_in_pages()) as pages:
            async for page in pages:
                yield page

    async def watch(
        self, resource_version: str, *, timeout_seconds: int
    ) -> AsyncGenerator[Sequence[WatchEvent], None]:
        """Yield blocks of events; see the Protocol."""
        params: Params = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": timeout_seconds,
        }
        async with aclosing(self._lines(params)) as blocks:
            async for lines in blocks:
                if not lines:
                    yield ()
                for events in self._slices(lines):
                    yield events
                    await anyio.lowlevel.checkpoint()

    async def _list_in_pages(self) -> AsyncGenerator[Page, None]:
        token = ""
        while True:
            params: dict[str, str | int] = {"limit": self._page_size}
            if token:
                params["continue"] = token
            answer = await self._connection.get(self._path, params)
            answer.raise_for_status()
            if status := plain_status(answer.body):
                raise status.error()
            page = self._decoder.decode_list(self.kind, answer.body)
            yield Page(page.items, page.resource_version)
            token = page.continue_token
            if not token:
                return

    async def _list_as_stream(self) -> AsyncGenerator[Page, None]:
        """Yield the list as a watch sends it, up to the bookmark that says it was all."""
        params: Params = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
            "timeoutSeconds": 300,
        }
        try:
            async with aclosing(self._lines(params, silence=self._stream_silence)) as blocks:
                async for lines in blocks:
                    end = next((n for n, line in enumerate(lines, 1) if _ends_list(line)), None)
                    for events in self._slices(lines[:end]):
                        for page in _pages(events):
                            yield page
                        await anyio.lowlevel.checkpoint()
                    if end is not None:
                        return
        except ApiStatusError as error:
            if error.status in NOT_SERVED:
                raise _NotServedError(str(error)) from error
            raise
        raise Unreachable("the API server ended a streaming list before it was complete")

    async def _lines(
        self, params: Params, *, silence: float | None = None
    ) -> AsyncGenerator[list[bytes], None]:
        """Yield the lines of each block of bytes; none at first, for the accepted request.

        Half a line at the end is dropped: the stream goes on from the version before it.
        """
        splitter = LineSplitter()
        async with self._connection.stream(self._path, params) as body:
            yield []
            while True:
                if silence is None:
                    block = await body.readany()
                else:
                    with anyio.move_on_after(silence) as waiting:
                        block = await body.readany()
                    if waiting.cancelled_caught:
                        raise _NotServedError("it fell silent before the end of the list")
                if not block and body.at_eof():
                    break
                yield splitter.feed(block)
        if status := plain_status(splitter.tail):
            raise status.error()

    def _slices(self, lines: Sequence[bytes]) -> Iterator[list[WatchEvent]]:
        """Decode lines, and break off whenever that took as long as the loop may be kept busy."""
        events: list[WatchEvent] = []
        until = self._clock.monotonic() + SLICE
        for line in lines:
            events.append(self._decode(line))
            if self._clock.monotonic() >= until:
                yield events
                events = []
                until = self._clock.monotonic() + SLICE
        if events:
            yield events

    def _decode(self, line: bytes) -> WatchEvent:
        try:
            return self._decoder.decode_line(self.kind, line)
        except UnreadableError:
            if status := plain_status(line):
                raise status.error() from None
            raise


def _ends_list(line: bytes) -> bool:
    return b"BOOKMARK" in line[:32] and END_OF_LIST.search(line) is not None


class _NotServedError(Exception):
    """Raised within this module when the server turns out not to serve streaming lists."""


def _pages(events: Sequence[WatchEvent]) -> Iterator[Page]:
    """Turn the events before the end of a streaming list into pages.

    They are not all additions: what happens while the list is sent comes in between.
    """
    items: list[KubeObject] = []
    version = ""
    for event in events:
        version = event.resource_version
        if event.type is WatchEventType.DELETED and event.object is not None:
            yield Page(items, version, gone=[event.object])
            items = []
        elif event.object is not None:
            items.append(event.object)
    yield Page(items, version)
