"""How much of a node is used, as upstream reckons it (spec/strategies 4.9, step 1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reactive_descheduler.api.node import Node
from reactive_descheduler.api.quantity import NANOS, milli_value, value

from .arguments import METRIC_RESOURCE

Amounts = Mapping[str, int]
"""By resource name, in nanos."""
Shares = Mapping[str, float]
"""Percent of a node, by resource name."""

_MILLIS = NANOS // 1000


@dataclass(slots=True)
class NodeUse:
    """A node, what is used of it, and what it has. `used` follows what goes."""

    node: Node
    used: dict[str, int]
    before: list[Shares] = field(default_factory=list)
    """Shares by earlier samples, where usage is measured and several are asked for."""
    capacity: Amounts = field(init=False)
    shares: Shares = field(init=False)
    """As they were at the start."""

    def __post_init__(self) -> None:
        self.capacity = capacity_of(self.node)
        self.shares = shares_of(self.used, self.capacity)

    @property
    def weight(self) -> int:
        """Return upstream's measure for the order of nodes: everything added up raw, so that
        memory outweighs the rest."""
        return sum(scaled(name, amount) for name, amount in self.used.items())

    def add(self, amounts: Amounts, sign: int = 1) -> None:
        """Let what is used grow by these amounts, or shrink."""
        for name in self.used:
            self.used[name] += sign * amounts.get(name, 0)

    def limit(self, name: str, high: Shares) -> int:
        """Return how much of a resource may be used, in nanos: all of it where no share is set."""
        capacity = self.capacity.get(name)
        if capacity is None:
            return 0
        if name not in high:
            return capacity
        unit = _MILLIS if name == "cpu" else NANOS
        return int(high[name] * 0.01 * scaled(name, capacity)) * unit


def capacity_of(node: Node) -> Amounts:
    """Return what the node has: allocatable, or capacity where nothing is allocatable."""
    return {**(node.allocatable or node.capacity), METRIC_RESOURCE: 100 * NANOS}


def shares_of(used: Amounts, capacity: Amounts) -> Shares:
    """Return the percentages of what the node has at all."""
    return {
        name: share(name, amount, capacity[name])
        for name, amount in used.items()
        if name in capacity
    }


def share(name: str, used: int, capacity: int) -> float:
    of = scaled(name, capacity)
    return scaled(name, used) / of * 100 if of > 0 else 0.0


def scaled(name: str, amount: int) -> int:
    """Return a number as upstream compares it: cpu in millis, all else in whole units."""
    return milli_value(amount) if name == "cpu" else value(amount)


def mean_shares(uses: Iterable[NodeUse], names: Iterable[str]) -> tuple[Shares, Mapping[str, int]]:
    """Return the plain mean of each resource over the nodes that have it, and their number."""
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    wanted = tuple(names)
    for use in uses:
        for name in wanted:
            if name in use.shares:
                sums[name] = sums.get(name, 0.0) + use.shares[name]
                counts[name] = counts.get(name, 0) + 1
    return {name: sums[name] / counts[name] for name in sums}, counts


def clamped(share: float) -> float:
    return min(max(share, 0.0), 100.0)


def is_under(shares: Shares, low: Shares) -> bool:
    """Say whether nothing is above its threshold."""
    return all(shares.get(name, 0.0) <= most for name, most in low.items())


def is_over(shares: Shares, high: Shares) -> bool:
    """Say whether something is above its target."""
    return any(shares.get(name, 0.0) > most for name, most in high.items())
