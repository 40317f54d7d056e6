"""Which correction is told to decide, for every way in which corrections can act together."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reactive_descheduler.app.deciding import Decision, Manner, decide
from reactive_descheduler.config.corrections import Correction, Corrections

POD = ("Pod", "default", "web-1")
OTHER = ("Pod", "default", "web-2")
A, B, C, D = (
    Correction.CORDON_ALONE,
    Correction.DUPLICATES_ROOM,
    Correction.NODE_FIT_SPREAD,
    Correction.BOOKING,
)
ALL_FOUR = frozenset({A, B, C, D})


class Passes:
    """Passes in which a Pod stays where a rule says so, and goes elsewhere."""

    def __init__(self, *stays: Callable[[Corrections], bool]) -> None:
        self._stays = dict(zip((POD, OTHER), stays, strict=False))
        self.asked: list[Corrections] = []

    def under(self, corrections: Corrections) -> dict[tuple[str, str, str], str]:
        if corrections not in self.asked:
            self.asked.append(corrections)
        return {pod: "goes" for pod, stays in self._stays.items() if not stays(corrections)}


@pytest.mark.parametrize(
    ("stays", "decision"),
    [
        pytest.param(lambda on: B in on, Decision(Manner.ALONE, (B,)), id="one"),
        pytest.param(
            lambda on: A in on and C in on,
            Decision(Manner.ALONE, (A,)),
            id="two-needed-tells-first",
        ),
        pytest.param(
            lambda on: A in on or C in on, Decision(Manner.EACH, (A, C)), id="either-of-two"
        ),
        pytest.param(
            lambda on: A in on or {B, C} <= on,
            Decision(Manner.EACH, (A,)),
            id="one-or-others-together",
        ),
        pytest.param(
            lambda on: {A, B} <= on or {C, D} <= on or {A, D} <= on or {B, C} <= on,
            Decision(Manner.TOGETHER, (B, D)),
            id="two-together",
        ),
        pytest.param(
            lambda on: len(on & ALL_FOUR) > 1,
            Decision(Manner.TOGETHER, (B, C, D)),
            id="more-than-two",
        ),
    ],
)
def test_tells_what_decides(stays: Callable[[Corrections], bool], decision: Decision) -> None:
    assert decide([POD], (A, B, C, D), ALL_FOUR, Passes(stays).under) == {POD: decision}


def test_each_pod_has_its_own() -> None:
    passes = Passes(lambda on: C in on, lambda on: A in on or B in on)
    assert decide([POD, OTHER], (A, B, C, D), ALL_FOUR, passes.under) == {
        POD: Decision(Manner.ALONE, (C,)),
        OTHER: Decision(Manner.EACH, (A, B)),
    }


def test_no_pass_is_run_once_nothing_is_left() -> None:
    passes = Passes(lambda on: A in on)
    decide([POD], (A, B, C, D), ALL_FOUR, passes.under)
    assert passes.asked == [frozenset(), ALL_FOUR - {A}]


def test_without_a_difference_there_is_no_pass() -> None:
    passes = Passes()
    assert decide([], (A, B), ALL_FOUR, passes.under) == {}
    assert passes.asked == []
