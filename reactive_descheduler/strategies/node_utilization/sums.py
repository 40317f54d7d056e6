"""How much of a node is used, as upstream reckons it (spec/strategies 4.9, step 1)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.quantity import NANOS, milli_value, value

from .arguments import METRIC_RESOURCE

Amounts = Mapping[str, int]
"""By resource name, in nanos."""
Shares = Mapping[str, float]
"""Percent of a node, by resource name."""

_MILLIS = NANOS // 1000


@dataclass(slots=True)
class NodeUse:
    """A node, what is used of it, and what it has."""

    node: Node
    used: dict[str, int]
    """Follows what comes and goes."""
    named: Collection[str]
    """The resources that have thresholds."""
    before: Sequence[Shares] = ()
    """Shares by earlier samples, where usage is measured and several are asked for."""
    unreadable: Pod | None = None
    """A Pod of it that cannot be read: this much is used, and nobody knows how much more."""
    capacity: Amounts = field(init=False)
    shares: Shares = field(init=False)
    """Of the resources that have thresholds, as they were at the start."""

    def __post_init__(self) -> None:
        self.capacity = capacity_of(self.node, self.used)
        self.shares = shares_of(self.used, self.capacity, self.named)

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
        return int(high[name] * 0.01 * scaled(name, capacity)) * _unit(name)


def capacity_of(node: Node, used: Amounts) -> Amounts:
    """Return what the node has: allocatable, or capacity where nothing is allocatable."""
    found = node.allocatable or node.capacity
    return {**found, METRIC_RESOURCE: 100 * NANOS} if METRIC_RESOURCE in used else found


def _unit(name: str) -> int:
    return _MILLIS if name == "cpu" else NANOS


def shares_of(used: Amounts, capacity: Amounts, names: Iterable[str]) -> Shares:
    """Return the percentages of what the node has at all."""
    return {
        name: share(name, used[name], capacity[name])
        for name in names
        if name in capacity and name in used
    }


def share(name: str, used: int, capacity: int) -> float:
    # Asked for every node at every look, hence in one place; see `scaled`.
    unit = _unit(name)
    of = -(-capacity // unit)
    return -(-used // unit) / of * 100 if of > 0 else 0.0


def scaled(name: str, amount: int) -> int:
    """Return a number as upstream compares it: cpu in millis, all else in whole units."""
    return milli_value(amount) if name == "cpu" else value(amount)


def most_below(high: float, name: str, capacity: int) -> int:
    """Return the greatest amount, in nanos, whose share is not above `high`."""
    unit = _unit(name)
    most = int(high * 0.01 * scaled(name, capacity))
    # Shares are floats: the product may miss the greatest by one, either way.
    while most > 0 and share(name, most * unit, capacity) > high:
        most -= 1
    while most * unit < capacity and share(name, (most + 1) * unit, capacity) <= high:
        most += 1
    return most * unit


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
    # Asked of every node: a generator would take twice as long.
    for name, most in low.items():  # noqa: SIM110
        if shares.get(name, 0.0) > most:
            return False
    return True


def is_over(shares: Shares, high: Shares) -> bool:
    """Say whether something is above its target."""
    return not is_under(shares, high)
