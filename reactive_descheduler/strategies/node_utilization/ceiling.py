"""How full a destination may become: not so full that its Pods would have to go again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from .sums import Amounts, NodeUse, Shares, clamped, most_below, share

_HAIR = 1e-9
"""Percent by which a mean that is worked out anew may come out otherwise."""


class Ceiling(Protocol):
    def most(self, name: str, use: NodeUse, /) -> int:
        """Return how much of a resource may be used at the start; it never becomes more."""

    def allows(self, destination: NodeUse, amounts: Amounts, source: NodeUse, /) -> bool:
        """Say whether these amounts may still come to where `most` allows them."""

    def moved(self, destination: NodeUse, amounts: Amounts, source: NodeUse, /) -> None:
        """Reckon with amounts that have come to a destination."""


class FixedCeiling:
    """The same shares whatever moves."""

    def __init__(self, high: Shares) -> None:
        self._high = high

    def most(self, name: str, use: NodeUse, /) -> int:
        return most_below(self._high[name], name, use.capacity.get(name, 0))

    def allows(self, _destination: NodeUse, _amounts: Amounts, _source: NodeUse, /) -> bool:
        return True

    def moved(self, destination: NodeUse, amounts: Amounts, source: NodeUse, /) -> None:
        """Change nothing."""


class MeanCeiling:
    """Shares above the mean of all nodes.

    A Pod that has left and is not bound yet lowers the mean, and with it the ceiling for those that
    were moved before. So of what leaves only that is counted which comes to the very destination.
    """

    def __init__(self, means: Shares, nodes: Mapping[str, int], above: Shares) -> None:
        """`nodes`: over how many each mean goes. `above`: the distance from the mean."""
        self._means = dict(means)
        self._nodes = nodes
        self._above = above
        self._gained: dict[tuple[str, str], float] = {}
        """By destination and resource, by how much what came there raises the mean."""
        self._fullest: dict[str, float] = {}
        """The share of the fullest destination, less what it raises the mean by."""

    def most(self, name: str, use: NodeUse, /) -> int:
        if name not in self._means:
            return 0
        high = clamped(self._means[name] + self._above[name])
        return most_below(high, name, use.capacity.get(name, 0))

    def allows(self, destination: NodeUse, amounts: Amounts, source: NodeUse, /) -> bool:
        for name, mean in self._means.items():
            high = clamped(mean - self._weight(name, amounts, source) + self._above[name])
            fullest = max(self._share(name, destination, amounts), self._fullest.get(name, 0.0))
            if fullest > high - _HAIR:
                return False
        return True

    def moved(self, destination: NodeUse, amounts: Amounts, source: NodeUse, /) -> None:
        for name in self._means:
            at = (destination.node.name, name)
            gained = self._weight(name, amounts, destination)
            self._means[name] -= self._weight(name, amounts, source)
            self._gained[at] = self._gained.get(at, 0.0) + gained
            share_now = self._share(name, destination, {})
            self._fullest[name] = max(share_now, self._fullest.get(name, 0.0))

    def _share(self, name: str, destination: NodeUse, more: Amounts) -> float:
        """Return the share of a destination with more on it, less what it raises the mean by."""
        used = destination.used.get(name, 0) + more.get(name, 0)
        gained = self._gained.get((destination.node.name, name), 0.0)
        whole = share(name, used, destination.capacity.get(name, 0))
        return whole - gained - self._weight(name, more, destination)

    def _weight(self, name: str, amounts: Amounts, use: NodeUse) -> float:
        """Return what these amounts, on that node, make of the mean."""
        return share(name, amounts.get(name, 0), use.capacity.get(name, 0)) / self._nodes[name]
