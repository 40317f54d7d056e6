"""Finds which correction decides what becomes of a Pod, by passes under other sets of corrections.

What is known of each Pod is its verdict: any value that can be compared, None for a Pod of which a
pass says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import combinations
from typing import NamedTuple

from reactive_descheduler.api.meta import Ref
from reactive_descheduler.config.corrections import NONE, Correction, Corrections

Verdicts = Mapping[Ref, Hashable]
VerdictsUnder = Callable[[Corrections], Verdicts]
"""Runs a pass. It is asked for a set again and again, so it has to remember."""


class Manner(StrEnum):
    """How corrections decide; the value stands in JSON."""

    ALONE = "alone"
    """Without this one the verdict is upstream's."""
    EACH = "each"
    """Each of these is enough for our verdict, so switching one off changes nothing."""
    TOGETHER = "together"
    """Without these two the verdict is upstream's; one of them does not change it."""
    SEVERAL = "several"
    """It takes more than two of these, and no smaller set was found."""


class Decision(NamedTuple):
    manner: Manner
    corrections: tuple[Correction, ...]


def decide(
    differing: Collection[Ref],
    candidates: Sequence[Correction],
    ours: Corrections,
    verdicts_under: VerdictsUnder,
) -> dict[Ref, Decision]:
    """Return what decides each of these Pods, whose verdict is not the same with and without.

    Args:
        candidates: corrections in force, the first to be tried first. Of several that would do
            alone the first is told, and the rest is not tried.
        ours: the corrections in force.
        verdicts_under: costs a pass for each new set: at most two for each candidate, and one for
            each pair of those that change anything.
    """
    search = _Search(candidates, ours, verdicts_under)
    found: dict[Ref, Decision] = {}
    for step in (search.alone, search.each, search.together, search.several):
        left = [pod for pod in differing if pod not in found]
        if not left:
            break
        found |= step(left)
    return found


class _Search:
    def __init__(
        self, candidates: Sequence[Correction], ours: Corrections, verdicts_under: VerdictsUnder
    ) -> None:
        self._candidates = candidates
        self._ours = ours
        self._under = verdicts_under

    def alone(self, pods: Collection[Ref]) -> dict[Ref, Decision]:
        sets = ((each,) for each in self._candidates)
        return self._taken_away(pods, sets, Manner.ALONE)

    def each(self, pods: Collection[Ref]) -> dict[Ref, Decision]:
        wanted = self._under(self._ours)
        enough: dict[Ref, list[Correction]] = {}
        for correction in self._candidates:
            verdicts = self._under(frozenset({correction}))
            for pod in pods:
                if verdicts.get(pod) == wanted.get(pod):
                    enough.setdefault(pod, []).append(correction)
        return {pod: Decision(Manner.EACH, tuple(each)) for pod, each in enough.items()}

    def together(self, pods: Collection[Ref]) -> dict[Ref, Decision]:
        return self._taken_away(pods, combinations(self._effective(), 2), Manner.TOGETHER)

    def several(self, pods: Collection[Ref]) -> dict[Ref, Decision]:
        found = self._effective() or tuple(self._candidates)
        return dict.fromkeys(pods, Decision(Manner.SEVERAL, found))

    def _taken_away(
        self,
        pods: Collection[Ref],
        sets: Iterable[tuple[Correction, ...]],
        manner: Manner,
    ) -> dict[Ref, Decision]:
        """Return for each Pod the first set without which its verdict is upstream's."""
        upstream = self._under(NONE)
        found: dict[Ref, Decision] = {}
        for taken in sets:
            left = [pod for pod in pods if pod not in found]
            if not left:
                break
            verdicts = self._under(self._ours.difference(taken))
            for pod in left:
                if verdicts.get(pod) == upstream.get(pod):
                    found[pod] = Decision(manner, taken)
        return found

    def _effective(self) -> tuple[Correction, ...]:
        """Return the candidates that change anything when taken from all or added to none."""
        ours, upstream = self._under(self._ours), self._under(NONE)
        return tuple(
            each
            for each in self._candidates
            if self._under(self._ours - {each}) != ours
            or self._under(frozenset({each})) != upstream
        )
