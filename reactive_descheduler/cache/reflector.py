"""Keep one resource in step with the API server: list it, watch it, and come back after any fault.

The reflector knows no HTTP. It reads pages and blocks of watch events from a `ListerWatcher`, hands
them to a `Sink`, and decides what each fault means: go on from the version it has (loss, silence,
overload), or list anew and let the sink work out the difference (the version is too old, or a line
could not be read).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from enum import StrEnum
from random import Random
from typing import NamedTuple

import anyio
import anyio.lowlevel
import structlog

from reactive_descheduler.api.changes import WatchEvent, WatchEventType
from reactive_descheduler.api.decoding import UnreadableError
from reactive_descheduler.api.errors import (
    ApiStatusError,
    ClientError,
    DeschedulerError,
    ExpiredError,
    Unreachable,
)
from reactive_descheduler.api.meta import KubeObject
from reactive_descheduler.cache.list_watch import ListerWatcher, Page, Sink
from reactive_descheduler.cache.opaque import OpaqueObjects
from reactive_descheduler.kit.backoff import Backoff
from reactive_descheduler.kit.clock import Clock

log = structlog.get_logger()

WATCH_INTERRUPTED = "Watch interrupted; it is tried again"
LIST_FAILED = "First list failed; it is tried again"
SLICE = 0.005
"""Seconds of taking in a list after which the event loop gets its turn."""


class Timing(NamedTuple):
    """How long to wait for what, in seconds; pairs are the bounds of a random choice."""

    silence: tuple[float, float] = (20.0, 25.0)
    """With no byte for this long a watch counts as dead. A quiet watch is then opened again every
    20-25 s, which proves the server alive and costs it next to nothing."""
    list_silence: float = 60.0
    """The same between two pages of a list: the server may work on a page for a while."""
    watch: tuple[int, int] = (300, 600)
    """After which time the server is asked to end the watch, so that load spreads out again."""
    short_watch: float = 1.0
    """A watch that ends sooner, and without an event, counts as a failure."""
    catch_up: float = 1.0
    """For this long after a watch was accepted the server may still be telling what was missed."""
    retry_initial: float = 0.8
    retry_ceiling: float = 30.0


DEFAULT_TIMING = Timing()


class Trouble(StrEnum):
    """What kind of error stands in the way: whether to wait is of use."""

    NONE = ""
    DENIED = "denied"
    """401 or 403: only somebody with more rights mends it."""
    UNREACHABLE = "unreachable"
    OTHER = "other"


class ReflectorStatistics(NamedTuple):
    kind: str
    synced: bool
    """The first list is complete. It stays true: staleness shows in `in_step`."""
    last_byte: float | None
    """When the server last gave a sign of life, on the monotonic clock."""
    in_step: float | None
    """When the cache was last known to hold what the server has, on the monotonic clock; None
    before the first list. A list on its way shows that the server lives, not that the cache is
    fresh: until it is complete the cache holds what it held before."""
    cut_off: bool
    """The watch failed, and neither another nor a list has told since what it missed."""
    bookmark_age: float | None
    """Seconds since the last bookmark."""
    version: str
    """Where a watch would go on; empty before the first list and when a new one is due."""
    restarts: int
    """Watches opened after the first."""
    relists: int
    """Lists begun after the first complete one."""
    unreadable: int
    """Watch lines that could not be told whom they are about."""
    opaque: int
    """Objects now present that could not be read."""
    error: str
    """What went wrong last; empty while the watch is open."""
    hint: str
    """What would mend it."""
    trouble: Trouble


class Reflector:
    """Lists and watches one resource for ever."""

    def __init__(
        self,
        source: ListerWatcher,
        sink: Sink,
        *,
        clock: Clock,
        random: Random,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        timing: Timing = DEFAULT_TIMING,
        on_state: Callable[[ReflectorStatistics], None] | None = None,
    ) -> None:
        """`on_state` is called when the resource becomes synced, and when an error comes, changes
        or goes."""
        self._source = source
        self._sink = sink
        self._clock = clock
        self._random = random
        self._sleep = sleep
        self._timing = timing
        self._on_state = on_state
        self._backoff = Backoff(random, initial=timing.retry_initial, ceiling=timing.retry_ceiling)
        self._synced = anyio.Event()
        self._version = ""
        self._last_byte: float | None = None
        self._in_step: float | None = None
        self._opened: float | None = None
        """When the watch was accepted; None while there is none."""
        self._last_bookmark: float | None = None
        self._watches = 0
        self._relists = 0
        self._accepted = False
        self._failed = False
        self._expired = 0
        self._unreadable = 0
        self._opaque = OpaqueObjects(source.kind)
        self._error = ""
        self._hint = ""
        self._trouble = Trouble.NONE

    @property
    def kind(self) -> str:
        return self._source.kind

    @property
    def synced(self) -> bool:
        return self._synced.is_set()

    @property
    def in_step(self) -> float | None:
        """See `ReflectorStatistics`."""
        return self._last_in_step()

    @property
    def cut_off(self) -> bool:
        """See `ReflectorStatistics`."""
        return self._is_cut_off()

    async def wait_synced(self) -> None:
        """Return once the first list is complete."""
        await self._synced.wait()

    def statistics(self) -> ReflectorStatistics:
        now = self._clock.monotonic()
        bookmark = self._last_bookmark
        return ReflectorStatistics(
            kind=self.kind,
            synced=self.synced,
            last_byte=self._last_byte,
            in_step=self._last_in_step(),
            cut_off=self._is_cut_off(),
            bookmark_age=None if bookmark is None else now - bookmark,
            version=self._version,
            restarts=max(0, self._watches - 1),
            relists=self._relists,
            unreadable=self._unreadable,
            opaque=len(self._opaque),
            error=self._error,
            hint=self._hint,
            trouble=self._trouble,
        )

    async def run(self) -> None:
        """List and watch until cancelled. No fault of server, network or sink ends it."""
        while True:
            try:
                if not self._version:
                    await self._list()
                try:
                    delay = await self._watch()
                finally:
                    self._failed = self._is_cut_off()
                    self._in_step, self._opened = self._last_in_step(), None
            except TimeoutError:
                delay = self._delay_after_silence()
            except Exception as error:
                # Whatever it is: one watch failing never takes another down.
                delay = self._delay_after(error)
            if delay:
                await self._sleep(delay)

    async def _list(self) -> None:
        self._accepted = False
        if self.synced:
            self._relists += 1
        objects: dict[tuple[str, str], KubeObject] = {}
        version = ""
        began = self._clock.monotonic()
        with anyio.fail_after(self._timing.list_silence) as scope:
            async with aclosing(self._source.pages()) as pages:
                async for page in pages:
                    self._alive()
                    scope.deadline = anyio.current_time() + self._timing.list_silence
                    version = page.resource_version
                    objects.update(((each.namespace, each.name), each) for each in page.items)
                    for each in page.gone:
                        objects.pop((each.namespace, each.name), None)
                    if not self.synced:
                        await self._fill(page)
        await self._replace(objects.values(), version)
        self._opaque.listed(objects.values())
        self._version = version
        self._in_step = began  # what happened since is for the watch to tell
        self._failed = False
        if not self.synced:
            self._synced.set()
            self._tell()

    async def _fill(self, page: Page) -> None:
        """Hand on what came so far, page by page.

        Before the first sync nobody decides on what the cache holds, so half a list does no harm,
        and the loop breathes between pages; `replace` then finds little left to do. After it the
        cache stays as it is until the list is complete, for half a list does not tell what is gone.
        """
        for each in page.items:
            self._sink.apply(WatchEvent(WatchEventType.ADDED, each, each.resource_version))
        for each in page.gone:
            self._sink.apply(WatchEvent(WatchEventType.DELETED, each, each.resource_version))
        await anyio.lowlevel.checkpoint()

    async def _replace(self, objects: Iterable[KubeObject], version: str) -> None:
        until = self._clock.monotonic() + SLICE
        for _ in self._sink.replace(self.kind, objects, version):
            if self._clock.monotonic() >= until:
                await anyio.lowlevel.checkpoint()
                until = self._clock.monotonic() + SLICE

    async def _watch(self) -> float:
        """Follow one watch to its end; return the seconds to wait before the next."""
        timing = self._timing
        silence = self._random.uniform(*timing.silence)
        began = self._clock.monotonic()
        any_event = self._accepted = False
        self._watches += 1
        with anyio.fail_after(silence) as scope:
            blocks = self._source.watch(
                self._version, timeout_seconds=self._random.randint(*timing.watch)
            )
            async with aclosing(blocks):
                async for block in blocks:
                    self._alive()
                    if self._opened is None:
                        self._opened = self._last_byte
                    for event in block:
                        self._apply(event)
                    any_event = any_event or bool(block)
                    self._working(progress=bool(block))
                    # Last, since applying a block takes time that is not the server's silence.
                    scope.deadline = anyio.current_time() + silence
        if any_event or self._clock.monotonic() - began >= timing.short_watch:
            self._backoff.reset()
            return 0.0
        self._failed = True
        self._report("the API server ended the watch at once", "", Trouble.OTHER)
        return self._backoff.next()

    def _apply(self, event: WatchEvent) -> None:
        if event.type is WatchEventType.BOOKMARK:
            self._last_bookmark = self._clock.monotonic()
        elif event.object is not None:
            self._sink.apply(event)
            self._opaque.changed(event)
        self._version = event.resource_version or self._version

    def _delay_after_silence(self) -> float:
        """Go on at once: the wait is over already. Only a server that never answered is at
        fault."""
        if self._accepted:
            self._backoff.reset()
        else:
            self._failed = True
            self._report(
                "no answer from the API server in time",
                "is it reachable, and awake?",
                Trouble.UNREACHABLE,
            )
        return 0.0

    def _delay_after(self, error: Exception) -> float:
        """Note what went wrong; return the seconds to wait before the next attempt."""
        self._failed = True
        hint = error.hint if isinstance(error, DeschedulerError) else ""
        if self._expired or not isinstance(error, ExpiredError):
            self._report(str(error) or type(error).__name__, hint, _trouble(error))
        match error:
            case ExpiredError():
                return self._expire()
            case UnreadableError():
                self._unreadable += 1
                return self._expire()
            case ApiStatusError():
                return self._delay_after_status(error)
            case ClientError():
                return self._backoff.next()
        log.error("reflector failed", kind=self.kind, exc_info=error)
        # Whatever raised, an event may not have reached the store.
        self._version = ""
        return self._backoff.next()

    def _expire(self) -> float:
        """List anew: at once the first time, then ever later, until a watch has made progress."""
        self._version = ""
        self._expired += 1
        return self._backoff.next() if self._expired > 1 else 0.0

    def _delay_after_status(self, error: ApiStatusError) -> float:
        if error.status == 400 or "too large resource version" in error.message.lower():
            # The server does not know the version (it was restored from a backup, say): to ask for
            # it again would fail for ever.
            self._version = ""
        if error.status >= 500 or error.status in (408, 429):
            return self._backoff.next(at_least=error.retry_after or 0.0)
        return self._backoff.longest()

    def _last_in_step(self) -> float | None:
        """A watch proves the cache fresh only a moment after it was accepted: what was missed
        comes first, and until it is in the cache is as old as it was."""
        last = self._last_byte
        if last is None or self._in_step is None or not self._has_caught_up():
            return self._in_step
        return max(self._in_step, last)

    def _is_cut_off(self) -> bool:
        return self._failed and self.synced and not self._has_caught_up()

    def _has_caught_up(self) -> bool:
        opened = self._opened
        return opened is not None and self._clock.monotonic() - opened >= self._timing.catch_up

    def _alive(self) -> None:
        self._last_byte = self._clock.monotonic()

    def _working(self, *, progress: bool) -> None:
        """The server answers. An accepted watch clears the error; only an event proves progress,
        since a watch may be accepted and then fail, over and over."""
        self._accepted = True
        if progress:
            self._backoff.reset()
            self._expired = 0
        if self._error:
            self._report("", "", Trouble.NONE)

    def _report(self, error: str, hint: str, trouble: Trouble) -> None:
        if error == self._error:
            return
        self._error, self._hint, self._trouble = error, hint, trouble
        if error:
            more = {"hint": hint} if hint else {}
            what = WATCH_INTERRUPTED if self.synced else LIST_FAILED
            log.warning(what, kind=self.kind, error=error, **more)
        else:
            log.info("Watch restored", kind=self.kind)
        self._tell()

    def _tell(self) -> None:
        if self._on_state is not None:
            self._on_state(self.statistics())


def _trouble(error: Exception) -> Trouble:
    if isinstance(error, ApiStatusError) and error.status in (401, 403):
        return Trouble.DENIED
    return Trouble.UNREACHABLE if isinstance(error, Unreachable) else Trouble.OTHER
