"""Whether there is room for what leaves: as upstream reckons, in all; and as we do, for each Pod.

Upstream adds up what the destinations have left and goes on while every sum is above zero. With the
correction `utilizationPlacement` each victim is given a destination: one that it fits, and that is
not overused with it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Protocol

from reactive_descheduler.api.eviction import Pause
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.scheduling.tolerations import HARD_EFFECTS, tolerates, untolerated
from reactive_descheduler.api.terms import Taint
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.framework.fitting import Fitting

from .ceiling import Ceiling
from .sums import Amounts, NodeUse, Shares, shares_of

_BREATH = 100
"""Destinations that are tried before the event loop may have its turn."""

Finding = Generator[Pause, None, bool]


class Room(Protocol):
    def open(self) -> bool:
        """Say whether anything more may leave."""

    def find(self, pod: Pod, amounts: Amounts | None, source: NodeUse, /) -> Finding:
        """Say whether there is room for the Pod; `take` takes what was found.

        Amounts None: what the Pod uses is not known.
        """

    def take(self, pod: Pod, amounts: Amounts, source: NodeUse, /) -> None:
        """Reckon with the Pod that was found room for last."""


class SumRoom:
    """Upstream's: what all destinations have left together, by resource."""

    def __init__(self, destinations: Iterable[NodeUse], high: Shares, names: Iterable[str]) -> None:
        nodes = tuple(destinations)
        self._left = {
            name: sum(each.limit(name, high) - each.used.get(name, 0) for each in nodes)
            for name in names
        }

    def open(self) -> bool:
        return all(left > 0 for left in self._left.values())

    def find(self, _pod: Pod, _amounts: Amounts | None, _source: NodeUse, /) -> Finding:
        yield from ()
        return True

    def take(self, _pod: Pod, amounts: Amounts, _source: NodeUse, /) -> None:
        for name in self._left:
            self._left[name] -= amounts.get(name, 0)


class PlacedRoom:
    """Ours: each Pod on a destination of its own, tried in the order given.

    Room only shrinks while one evaluation goes on, so what a destination refused once it refuses to
    every later Pod of the same template that uses as much: each is tried once.
    """

    def __init__(
        self,
        destinations: Sequence[NodeUse],
        ceiling: Ceiling,
        *,
        names: Iterable[str],
        total: SumRoom,
        fitting: Fitting | None,
        lister: Lister,
    ) -> None:
        """Make room.

        Args:
            destinations: in the order in which they are tried.
            ceiling: up to where each may be used.
            names: the resources that this is said of.
            total: what ends all, beside; see the correction utilizationResources.
            fitting: None where what fits other nodes is not looked at.
            lister: the state at the start.
        """
        self._destinations = destinations
        self._ceiling = ceiling
        self._names = tuple(names)
        self._total = total
        self._fitting = fitting
        self._lister, self._gone, self._promised = lister.fork()
        self._tried: dict[tuple[object, ...], int] = {}
        self._found: NodeUse | None = None

    def open(self) -> bool:
        return self._total.open()

    def find(self, pod: Pod, amounts: Amounts | None, source: NodeUse, /) -> Finding:
        used = tuple(amounts.items()) if amounts is not None else ()
        alike = (pod.namespace, pod.template, used)
        for index in range(self._tried.get(alike, 0), len(self._destinations)):
            destination = self._destinations[index]
            if self._takes(destination, pod, amounts, source):
                self._found = destination
                return True
            self._tried[alike] = index + 1
            if index % _BREATH == _BREATH - 1:
                yield Pause()
        return False

    def take(self, pod: Pod, amounts: Amounts, source: NodeUse, /) -> None:
        found = self._found
        assert found is not None  # `find` has said so
        self._ceiling.moved(self._after(found, amounts), amounts, source)
        found.add(amounts)
        self._total.take(pod, amounts, source)
        self._gone.add(pod)
        self._promised.promise(pod, found.node.name)

    def _takes(
        self, destination: NodeUse, pod: Pod, amounts: Amounts | None, source: NodeUse
    ) -> bool:
        if amounts is not None:
            if any(
                amounts.get(name, 0) and not destination.capacity.get(name) for name in self._names
            ):
                return False
            after = self._after(destination, amounts)
            if not self._ceiling.allows(after, amounts, source):
                return False
        if self._fitting is None:
            return True
        return self._fitting.misfit(pod, destination.node, self._lister) is None

    def _after(self, destination: NodeUse, amounts: Amounts) -> Shares:
        used = {name: destination.used.get(name, 0) + amounts.get(name, 0) for name in self._names}
        return shares_of(used, destination.capacity)


Tolerance = Callable[[Pod], bool]


def tolerance(destinations: Iterable[NodeUse], *, as_scheduler: bool) -> Tolerance:
    """Return whether a Pod tolerates the taints of one of the destinations.

    `as_scheduler`: the correction utilizationTolerations. Upstream wants as many tolerations as the
    node has taints, of any effect.
    """
    sets = tuple(dict.fromkeys(each.node.taints for each in destinations))
    fits = _tolerates_hard if as_scheduler else _tolerates_all
    return lambda pod: any(fits(pod, taints) for taints in sets)


def _tolerates_hard(pod: Pod, taints: tuple[Taint, ...]) -> bool:
    return untolerated(pod.template.tolerations, taints, HARD_EFFECTS) is None


def _tolerates_all(pod: Pod, taints: tuple[Taint, ...]) -> bool:
    tolerations = pod.template.tolerations
    return len(tolerations) >= len(taints) and all(
        any(tolerates(each, taint) for each in tolerations) for taint in taints
    )
