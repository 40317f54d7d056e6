"""The domains of one constraint by size, and the search for one that takes a Pod."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping

from reactive_descheduler.api.eviction import Pause
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.scheduling.spread import DomainCounts

_NODES_AT_ONCE = 200
"""After how many that were tried a search gives way."""


class Targets:
    """`takes`: whether a node takes a Pod, None if any does. `like`: what is the same for Pods that
    the same nodes take, as long as nothing moves."""

    def __init__(
        self,
        nodes: Mapping[str, Node],
        counted: DomainCounts,
        *,
        takes: Callable[[Pod, Node], bool] | None,
        like: Callable[[Pod], Hashable],
    ) -> None:
        self._nodes = nodes
        self._like = like
        self._domains = counted.domains
        self._takes = takes
        self._by_size = sorted(
            (counted.counts.get(value, 0), value) for value in counted.domains.nodes
        )
        self._nowhere: set[Hashable] = set()

    def resize(self, value: str, old: int, new: int) -> None:
        """Follow a domain that has grown or shrunk: who found no place may find one now."""
        self._nowhere.clear()
        del self._by_size[bisect_left(self._by_size, (old, value))]
        insort(self._by_size, (new, value))

    def find(self, pod: Pod, most: int) -> Generator[Pause, None, tuple[Node | None, bool]]:
        """Return a node in the emptiest domain that takes the Pod, and whether another did not.

        `most`: how many Pods a domain may hold before.
        """
        like = self._like(pod)
        if like in self._nowhere:
            return None, True
        refused = False
        for tried, node in enumerate(self._candidates(pod, most), 1):
            if self._takes is None or self._takes(pod, node):
                return node, refused
            refused = True
            if tried % _NODES_AT_ONCE == 0:
                yield Pause()
        self._nowhere.add(like)
        return None, True

    def _candidates(self, pod: Pod, most: int) -> Iterator[Node]:
        for size, value in self._by_size:
            if size > most:
                return
            for name in self._domains.nodes[value]:
                node = self._nodes.get(name)
                if node is not None and name != pod.node_name:
                    yield node
