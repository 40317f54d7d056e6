"""Named fault points of the embedded API server, for tests and simulations.

They strike clients from outside. The cluster's own controllers and its set-up client, known by
their user agent, are spared, so that a fault tests the program and not the sandbox.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable

SPARED_USER_AGENT = "sandbox-internal"

Verb: TypeAlias = Literal[
    "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"
]


@dataclass
class Fault:
    """What goes wrong with requests of one kind.

    `verb` and `resource` ("pods", "pods/eviction"; None for any) choose the requests, `times` how
    many of them (default: all). `latency` seconds pass first. Then `status` is answered in place
    of the real answer, with `message`, `retry_after` seconds and `reason`; or the connection is
    closed: `drop="before"` without doing the work, `drop="after"` having done it.
    """

    verb: Verb | None = None
    resource: str | None = None
    latency: float = 0.0
    status: int | None = None
    message: str = "injected fault"
    reason: str | None = None
    retry_after: int = 0
    drop: Literal["before", "after"] | None = None
    times: float = math.inf
    hits: int = 0

    def covers(self, verb: str, resource: str) -> bool:
        return (
            self.hits < self.times
            and self.verb in (None, verb)
            and self.resource in (None, resource)
        )


class Faults:
    """The faults in force, and the switches for all open watches."""

    def __init__(self) -> None:
        self.active: list[Fault] = []
        self._silent: set[str | None] = set()
        self._watches: dict[Callable[[], None], tuple[str, bool]] = {}
        self._speaks = anyio.Event()

    def add(self, fault: Fault) -> Fault:
        """Put a fault in force; the first that covers a request acts on it."""
        self.active.append(fault)
        return fault

    def clear(self) -> None:
        """End all faults and silences."""
        self.active.clear()
        self._silent.clear()
        self._wake()

    def strike(self, verb: str, resource: str) -> Fault | None:
        """The fault that acts on this request, counted, or None."""
        for fault in self.active:
            if fault.covers(verb, resource):
                fault.hits += 1
                return fault
        return None

    def cut_watches(self, resource: str | None = None, *, spared: bool = False) -> int:
        """Close the connections of open watches at once; gives their number.

        `spared` takes the cluster's own along.
        """
        doomed = [
            cut
            for cut, (name, is_spared) in self._watches.items()
            if resource in (None, name) and (spared or not is_spared)
        ]
        for cut in doomed:
            cut()
        return len(doomed)

    def silence_watches(self, resource: str | None = None) -> None:
        """Let open watches send nothing more, while their connections stay."""
        self._silent.add(resource)

    def unsilence_watches(self, resource: str | None = None) -> None:
        """Let watches speak again; what they held back goes out first."""
        self._silent.discard(resource)
        self._wake()

    @property
    def open_watches(self) -> list[str]:
        """The resource of each open watch from outside."""
        return [name for name, spared in self._watches.values() if not spared]

    def register_watch(
        self, resource: str, cut: Callable[[], None], *, spared: bool
    ) -> Callable[[], None]:
        """Called by each watch as it opens; gives what it calls as it closes."""
        self._watches[cut] = (resource, spared)

        def unregister() -> None:
            self._watches.pop(cut, None)

        return unregister

    async def until_audible(self, resource: str) -> None:
        """Return once watches of this resource may send."""
        while self._silent & {None, resource}:
            await self._speaks.wait()

    def _wake(self) -> None:
        speaks, self._speaks = self._speaks, anyio.Event()
        speaks.set()
