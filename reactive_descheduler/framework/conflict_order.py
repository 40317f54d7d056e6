"""Who goes first of the Pods that have conflicts."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from reactive_descheduler.api.pod import Pod
from reactive_descheduler.framework.conflicts import Conflicts
from reactive_descheduler.framework.pod_order import importance

_STEP = 1000
"""Groups that are ranked between two pauses."""


class _Rank(NamedTuple):
    listed: str
    """The node, where upstream's order holds: it goes through one after the other."""
    importance: tuple[bool, int, int, bool]
    ends: int
    """The conflicts that the leaving ends, negative so that most come first."""
    node: str
    namespace: str
    name: str
    group: int
    """Tells apart, so that nothing behind it is compared."""


class ConflictOrder:
    """First all are added, then the order is made and they are taken one by one.

    Args:
        fewest: over all nodes the least important goes first, and within them whose leaving ends
            most conflicts; else node by node.
    """

    def __init__(self, conflicts: Conflicts, *, fewest: bool) -> None:
        self._conflicts = conflicts
        self._fewest = fewest
        # Thousands may share a topology domain, and with each that goes all of them end fewer.
        self._groups: dict[Hashable, list[Pod]] = {}
        self._left: list[tuple[_Rank, list[Pod]]] = []

    def add(self, pod: Pod) -> None:
        alike = self._conflicts.alike(pod) if self._fewest else pod.node_name
        self._groups.setdefault((importance(pod), alike), []).append(pod)

    def make(self) -> Iterator[None]:
        """Yields at places where it can give way."""
        for group, pods in enumerate(self._groups.values(), 1):
            pods.sort(key=_place, reverse=True)
            self._left.append((self._rank(pods[-1], group), pods))
            if group % _STEP == 0:
                yield
        heapify(self._left)

    def __bool__(self) -> bool:
        return bool(self._left)

    def pop(self) -> Pod | None:
        """Take the next Pod; None for nobody yet, since others come before it by now."""
        rank, pods = heappop(self._left)
        # What was taken since may have ended some of its conflicts: it never added any.
        ends = self._ends(pods[-1])
        if ends != rank.ends:
            heappush(self._left, (rank._replace(ends=ends), pods))
            return None
        pod = pods.pop()
        if pods:
            heappush(self._left, (self._rank(pods[-1], rank.group), pods))
        return pod

    def _rank(self, pod: Pod, group: int) -> _Rank:
        listed = "" if self._fewest else pod.node_name
        return _Rank(listed, importance(pod), self._ends(pod), *_place(pod), group)

    def _ends(self, pod: Pod) -> int:
        return -self._conflicts.ended_by(pod) if self._fewest else 0


def _place(pod: Pod) -> tuple[str, str, str]:
    return pod.node_name, pod.namespace, pod.name
