"""The watch streams of one process: one reflector per kind, and what the gates ask about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random

from anyio.abc import TaskGroup

from reactive_descheduler.cache.reflector import (
    DEFAULT_TIMING,
    ListerWatcher,
    Reflector,
    ReflectorStatistics,
    Sink,
    Timing,
)
from reactive_descheduler.kit.clock import Clock
from reactive_descheduler.kit.supervise import Crash, supervise

BUDGETS = "PodDisruptionBudget"


class Streams:
    """Reflectors by kind. Decisions rest on all of them but budgets, whose lanes ask the server."""

    def __init__(
        self,
        sources: Sequence[ListerWatcher],
        sink: Sink,
        *,
        clock: Clock,
        random: Random,
        timing: Timing = DEFAULT_TIMING,
        on_state: Callable[[ReflectorStatistics], None],
        budgets_decide: bool,
    ) -> None:
        """`budgets_decide`: some profile protects Pods without a budget, so budgets count too."""
        self._clock = clock
        self._budgets_decide = budgets_decide
        self._reflectors = {
            source.kind: Reflector(
                source, sink, clock=clock, random=random, timing=timing, on_state=on_state
            )
            for source in sources
        }

    def start(self, tasks: TaskGroup, on_crash: Callable[[Crash], bool]) -> None:
        """Run every reflector; one that fails never takes another down."""
        for kind, reflector in self._reflectors.items():
            run = partial(
                supervise, f"reflector-{kind}", reflector.run, on_crash=on_crash, clock=self._clock
            )
            tasks.start_soon(run)

    async def wait_synced(self) -> None:
        for reflector in self._reflectors.values():
            await reflector.wait_synced()

    def not_synced(self) -> list[str]:
        """Return the kinds that have no complete list yet, each with what stands in the way."""
        missing = []
        for kind, reflector in self._reflectors.items():
            if not reflector.synced:
                error = reflector.statistics().error
                missing.append(f"{kind} ({error})" if error else kind)
        return missing

    def ages(self) -> Mapping[str, float]:
        """Return seconds since the last sign of life of each stream that decisions rest on."""
        return {
            kind: age
            for kind, age in self.all_ages().items()
            if kind != BUDGETS or self._budgets_decide
        }

    def all_ages(self) -> Mapping[str, float]:
        now = self._clock.monotonic()
        return {
            kind: now - last
            for kind, reflector in self._reflectors.items()
            if (last := reflector.statistics().last_byte) is not None
        }

    def stale(self, kind: str, max_age: float) -> bool:
        return self.all_ages().get(kind, 0.0) > max_age

    def statistics(self) -> list[ReflectorStatistics]:
        return [reflector.statistics() for reflector in self._reflectors.values()]
