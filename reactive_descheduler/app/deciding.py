"""Finds which correction decides what becomes of a Pod, by passes under other sets of corrections.

What is known of each Pod is its verdict: any value that can be compared, None for a Pod of which a
pass says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from enum import StrEnum
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
    """Without all of these the verdict is upstream's; to switch one off changes nothing."""


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
        candidates: corrections in force, all that can change a verdict, the first to be tried
            first. Of several that would do alone the first is told, and the rest is not tried.
        ours: the corrections in force.
        verdicts_under: costs a pass for each new set: one for each candidate, two where none
            decides alone, and a few times that for what it takes several to decide.
    """
    search = _Search(candidates, ours, verdicts_under)
    found: dict[Ref, Decision] = {}
    for step in (search.alone, search.each, search.together):
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
        found: dict[Ref, Decision] = {}
        for correction in self._candidates:
            left = [pod for pod in pods if pod not in found]
            if not left:
                break
            told = Decision(Manner.ALONE, (correction,))
            found |= {pod: told for pod in left if self._is_upstream(pod, without={correction})}
        return found

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
        return {pod: Decision(Manner.TOGETHER, self._least_without(pod)) for pod in pods}

    def _least_without(self, pod: Ref) -> tuple[Correction, ...]:
        """Return a set to do without, none of which can be put back."""
        without = set(self._candidates)
        for correction in self._candidates:
            if self._is_upstream(pod, without=without - {correction}):
                without.remove(correction)
        return tuple(each for each in self._candidates if each in without)

    def _is_upstream(self, pod: Ref, *, without: Collection[Correction]) -> bool:
        upstream, verdicts = self._under(NONE), self._under(self._ours.difference(without))
        return verdicts.get(pod) == upstream.get(pod)
