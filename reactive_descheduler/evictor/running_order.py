"""The running order of candidates: who goes next, found without looking at all of them.

Order: urgency of the strategy (one step up per minute waited), round robin over namespaces, Pod
priority ascending, the strategy's own order (the rank among its keys, then the order within one).
Urgency and waiting change together for all candidates of one strategy and one minute, so these
stand in one line, which has a heap per namespace.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import datetime
from typing import Protocol, TypeVar

_SECONDS_A_STEP = 60
_LOWEST = -(2**31)


class Entry(Protocol):
    @property
    def urgency(self) -> int: ...
    @property
    def enqueued(self) -> datetime: ...
    @property
    def namespace(self) -> str: ...
    @property
    def priority(self) -> int | None: ...
    @property
    def rank(self) -> float: ...
    @property
    def order(self) -> int: ...


E = TypeVar("E", bound=Entry)

_Place = tuple[int, float, int, datetime, int, E]
_Heap = list[_Place[E]]
_Line = dict[str, _Heap[E]]


class RunningOrder(dict[int, E]):
    """Entries by identity, in running order; a dict, so that membership and length come for
    free."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: dict[tuple[int, int], _Line[E]] = {}
        self._places: dict[int, _Place[E]] = {}
        self._served: dict[str, int] = {}
        self._turn = 0
        self._sequence = 0

    def add(self, entry: E) -> None:
        """Put an entry at its place; one that is there already moves to the place it has now."""
        priority = entry.priority if entry.priority is not None else _LOWEST
        known = self._places.get(id(entry))
        if known is not None and known[:3] == (priority, entry.rank, entry.order):
            return  # offered anew, over and over while nothing may go: the heap must not grow
        self._sequence += 1
        minute = int(entry.enqueued.timestamp() // _SECONDS_A_STEP)
        line = self._lines.setdefault((entry.urgency, minute), {})
        # Among equals who came first: an entry that was held, or offered anew, keeps its place.
        place = (priority, entry.rank, entry.order, entry.enqueued, self._sequence, entry)
        self[id(entry)] = entry
        self._places[id(entry)] = place
        heapq.heappush(line.setdefault(entry.namespace, []), place)

    def discard(self, entry: E) -> None:
        """Take an entry out; its place in the heap is skipped when it comes up."""
        if self.pop(id(entry), None) is not None:
            del self._places[id(entry)]

    def served(self, namespace: str) -> None:
        """Let every other namespace come before this one."""
        self._turn += 1
        self._served[namespace] = self._turn

    def best(self, now: datetime) -> E | None:
        """Return the entry that is next; it stays."""
        if not self:
            self._lines.clear()
            self._served.clear()
            return None
        minute = int(now.timestamp() // _SECONDS_A_STEP)
        for urgency in sorted({urgency - (minute - at) for urgency, at in self._lines}):
            heads = [
                (self._served.get(namespace, 0), head)
                for key in tuple(self._lines)
                if key[0] - (minute - key[1]) == urgency
                for namespace, head in self._heads(key)
            ]
            if heads:
                return min(heads)[1][-1]
        return None

    def _heads(self, key: tuple[int, int]) -> Iterator[tuple[str, _Place[E]]]:
        """Yield the first entry of each namespace of a line, dropping what is gone."""
        line = self._lines[key]
        for namespace, heap in tuple(line.items()):
            while heap and self._places.get(id(heap[0][-1])) is not heap[0]:
                heapq.heappop(heap)
            if heap:
                yield namespace, heap[0]
            else:
                del line[namespace]
        if not line:
            del self._lines[key]
