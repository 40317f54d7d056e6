"""How full a destination may become: not so full that its Pods would have to go again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from .sums import Amounts, NodeUse, Shares, clamped, is_over, share

_HAIR = 1e-9
"""Percent by which a mean that is worked out anew may come out otherwise."""


class Ceiling(Protocol):
    def allows(self, after: Shares, amounts: Amounts, source: NodeUse, /) -> bool:
        """Say whether a destination may be used that much once these amounts have come there."""

    def moved(self, after: Shares, amounts: Amounts, source: NodeUse, /) -> None:
        """Reckon with that move."""


class FixedCeiling:
    """The same shares whatever moves."""

    def __init__(self, high: Shares) -> None:
        self._high = high

    def allows(self, after: Shares, _amounts: Amounts, _source: NodeUse, /) -> bool:
        return not is_over(after, self._high)

    def moved(self, after: Shares, amounts: Amounts, source: NodeUse, /) -> None:
        """Change nothing."""


class MeanCeiling:
    """Shares above the mean of all nodes.

    A Pod that left and is not bound yet, or went to a bigger node, lowers the mean, and with it the
    ceiling for all that was moved. So nothing is counted but what leaves.
    """

    def __init__(self, means: Shares, nodes: Mapping[str, int], above: Shares) -> None:
        """`nodes`: over how many each mean goes. `above`: the distance from the mean."""
        self._means = dict(means)
        self._nodes = nodes
        self._above = above
        self._fullest: dict[str, float] = {}

    def allows(self, after: Shares, amounts: Amounts, source: NodeUse, /) -> bool:
        return all(
            max(after.get(name, 0.0), self._fullest.get(name, 0.0))
            <= clamped(mean + self._above[name]) - _HAIR
            for name, mean in self._means_after(amounts, source).items()
        )

    def moved(self, after: Shares, amounts: Amounts, source: NodeUse, /) -> None:
        self._means = self._means_after(amounts, source)
        for name in self._means:
            self._fullest[name] = max(after.get(name, 0.0), self._fullest.get(name, 0.0))

    def _means_after(self, amounts: Amounts, source: NodeUse) -> dict[str, float]:
        return {
            name: mean
            - share(name, amounts.get(name, 0), source.capacity.get(name, 0)) / self._nodes[name]
            for name, mean in self._means.items()
        }
