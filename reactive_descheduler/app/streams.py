"""The watch streams of one process: one reflector per kind, and what the gates ask about them."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from random import Random

import anyio
from anyio.abc import TaskGroup

from reactive_descheduler.cache.list_watch import ListerWatcher, Sink
from reactive_descheduler.cache.reflector import (
    DEFAULT_TIMING,
    Reflector,
    ReflectorStatistics,
    Timing,
)
from reactive_descheduler.kit.clock import Clock
from reactive_descheduler.kit.supervise import Crash, restart_always, supervise

BUDGETS = "PodDisruptionBudget"


class Streams:
    """Reflectors by kind. More may be added while it runs."""

    def __init__(
        self,
        sources: Sequence[ListerWatcher],
        sink: Sink,
        *,
        clock: Clock,
        random: Random,
        timing: Timing = DEFAULT_TIMING,
        on_state: Callable[[ReflectorStatistics], None],
    ) -> None:
        self._sink = sink
        self._clock = clock
        self._random = random
        self._timing = timing
        self._on_state = on_state
        self._tasks: TaskGroup | None = None
        self._on_crash: Callable[[Crash], bool] = restart_always
        self._reflectors: dict[str, Reflector] = {}
        self._scopes: dict[str, anyio.CancelScope] = {}
        for source in sources:
            self.add(source)

    def __contains__(self, kind: object) -> bool:
        return kind in self._reflectors

    def start(self, tasks: TaskGroup, on_crash: Callable[[Crash], bool]) -> None:
        """Run every reflector; one that fails never takes another down."""
        self._tasks, self._on_crash = tasks, on_crash
        for kind in self._reflectors:
            self._run(kind)

    def add(self, source: ListerWatcher) -> None:
        """Watch another kind; at once if the others run already."""
        self._reflectors[source.kind] = Reflector(
            source,
            self._sink,
            clock=self._clock,
            random=self._random,
            timing=self._timing,
            on_state=self._on_state,
        )
        self._run(source.kind)

    def remove(self, kind: str) -> None:
        """Watch a kind no longer; what the cache has of it stays."""
        del self._reflectors[kind]
        if (scope := self._scopes.pop(kind, None)) is not None:
            scope.cancel()

    async def wait_synced(self) -> None:
        for reflector in tuple(self._reflectors.values()):
            await reflector.wait_synced()

    def not_synced(self, kinds: Container[str] | None = None) -> list[str]:
        """Return the kinds, of these or of all, that have no complete list yet, each with what
        stands in the way."""
        missing = []
        for kind, reflector in self._reflectors.items():
            if not reflector.synced and (kinds is None or kind in kinds):
                error = reflector.statistics().error
                missing.append(f"{kind} ({error})" if error else kind)
        return missing

    def ages(self, kinds: Container[str] | None = None) -> Mapping[str, float]:
        """Return for how many seconds what the cache has of each of these kinds, or of all, may be
        outdated.

        A kind without a first list is not among them: it is not synced.
        """
        now = self._clock.monotonic()
        return {
            kind: now - last
            for kind, reflector in self._reflectors.items()
            if (kinds is None or kind in kinds) and (last := reflector.in_step) is not None
        }

    def cut_off(self, kinds: Container[str] | None = None) -> set[str]:
        """Return those of the kinds, or of all, whose watch failed and has not caught up since."""
        return {
            kind
            for kind, reflector in self._reflectors.items()
            if (kinds is None or kind in kinds) and reflector.cut_off
        }

    def statistics(self) -> list[ReflectorStatistics]:
        return [reflector.statistics() for reflector in self._reflectors.values()]

    def _run(self, kind: str) -> None:
        if self._tasks is not None:
            self._tasks.start_soon(self._supervised, kind)

    async def _supervised(self, kind: str) -> None:
        run = self._reflectors[kind].run
        with anyio.CancelScope() as self._scopes[kind]:
            await supervise(f"reflector-{kind}", run, on_crash=self._on_crash, clock=self._clock)
