"""Whether there is room for what leaves: as upstream reckons, in all; and as we do, for each Pod.

Upstream adds up what the destinations have left and goes on while every sum is above zero. With the
correction `utilizationPlacement` each victim is given a destination: one that it fits, and that is
not overused with it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from itertools import count
from typing import Protocol

from reactive_descheduler.api.eviction import Pause
from reactive_descheduler.api.pod import Pod, kin
from reactive_descheduler.api.scheduling.pod_affinity import needed_by
from reactive_descheduler.api.scheduling.tolerations import HARD_EFFECTS, tolerates, untolerated
from reactive_descheduler.api.terms import Taint
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.framework.fitting import Fitting

from .ceiling import Ceiling
from .sums import Amounts, NodeUse, Shares

_BREATH = 50
"""Destinations that are tried before the event loop may have its turn."""
_BITS = 4
"""Of an amount, by which those are told that are alike."""

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

    Room only shrinks while one evaluation goes on, so what a destination has refused once it will
    always refuse: to Pods that use as much, and to Pods that node fit treats alike.
    """

    def __init__(
        self,
        destinations: Iterable[NodeUse],
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
        self._ceiling = ceiling
        self._names = tuple(names)
        self._destinations = [_Destination(each, ceiling, self._names) for each in destinations]
        self._total = total
        self._fitting = fitting
        self._lister, self._gone, self._promised = lister.fork()
        self._full: dict[tuple[int, ...], _Skips] = {}
        """By amounts, which destinations have no room for as much."""
        self._next: dict[tuple[object, ...], int] = {}
        """By likeness and amounts, the first destination that may take such a Pod."""
        self._found: _Destination | None = None

    def open(self) -> bool:
        return self._total.open()

    def find(self, pod: Pod, amounts: Amounts | None, source: NodeUse, /) -> Finding:
        wanted = tuple((amounts or {}).get(name, 0) for name in self._names)
        least = tuple(map(_floor, wanted))
        full = self._full.setdefault(least, _Skips())
        alike = (self._alike(pod), least)
        place = self._next.get(alike, 0)
        refused_so_far = True
        for tried in count(1):
            place = full.after(place)
            if place >= len(self._destinations):
                return False
            destination = self._destinations[place]
            if not destination.takes(least):
                full.add(place)
            elif not self._has_room(destination, wanted, amounts, source):
                refused_so_far = False
            elif self._fits(pod, destination):
                self._found = destination
                return True
            elif refused_so_far:
                self._next[alike] = place + 1
            place += 1
            if tried % _BREATH == 0:
                yield Pause()
        raise AssertionError  # the count has no end

    def take(self, pod: Pod, amounts: Amounts, source: NodeUse, /) -> None:
        found = self._found
        assert found is not None  # `find` has said so
        found.add(amounts)
        self._ceiling.moved(found.use, amounts, source)
        self._total.take(pod, amounts, source)
        self._gone.add(pod)
        self._promised.promise(pod, found.use.node.name)

    def _has_room(
        self,
        destination: _Destination,
        wanted: tuple[int, ...],
        amounts: Amounts | None,
        source: NodeUse,
    ) -> bool:
        if amounts is None:
            return True
        return destination.takes(wanted) and self._ceiling.allows(destination.use, amounts, source)

    def _alike(self, pod: Pod) -> Hashable:
        template = pod.template
        near = template.pod_affinity or template.anti_affinity or template.spread_constraints
        if self._fitting is None or not (near or needed_by(pod, self._lister)):
            return kin(pod)
        return self._fitting.alike(pod, self._lister)  # no Pod is in its own way, nor near itself

    def _fits(self, pod: Pod, destination: _Destination) -> bool:
        if self._fitting is None:
            return True
        return self._fitting.misfit(pod, destination.use.node, self._lister) is None


class _Destination:
    """A destination, and what it has left of each resource that counts, in nanos."""

    __slots__ = ("_ceiling", "_left", "_names", "use")

    def __init__(self, use: NodeUse, ceiling: Ceiling, names: Sequence[str]) -> None:
        self.use = use
        self._ceiling = ceiling
        self._names = names
        self._left: tuple[int, ...] | None = None
        """Worked out when first asked for: most of thousands never are."""

    def takes(self, wanted: tuple[int, ...]) -> bool:
        # One that has nothing left still takes who wants nothing.
        left = self._left = self._left or self._left_at_first()
        return all(amount <= room or not amount for amount, room in zip(wanted, left, strict=True))

    def add(self, amounts: Amounts) -> None:
        """Reckon with amounts that have come here."""
        left = self._left or self._left_at_first()
        wanted = (amounts.get(name, 0) for name in self._names)
        self._left = tuple(room - amount for room, amount in zip(left, wanted, strict=True))
        self.use.add(amounts)

    def _left_at_first(self) -> tuple[int, ...]:
        use = self.use
        return tuple(self._ceiling.most(name, use) - use.used.get(name, 0) for name in self._names)


class _Skips:
    """Places that are passed over; each run of them in one step."""

    def __init__(self) -> None:
        self._after: dict[int, int] = {}

    def add(self, place: int) -> None:
        self._after[place] = place + 1

    def after(self, place: int) -> int:
        """Return the first place, from this one on, that is not passed over."""
        passed = []
        while (following := self._after.get(place)) is not None:
            passed.append(place)
            place = following
        for each in passed:
            self._after[each] = place
        return place


def _floor(amount: int) -> int:
    """Round down, so that amounts that are alike share what is known: to an eighth or less."""
    spare = max(amount.bit_length() - _BITS, 0)
    return amount >> spare << spare


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
