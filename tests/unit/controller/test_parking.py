"""What is remembered of keys, and what wakes them."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from reactive_descheduler.api.changes import Action, At, Key, Never, On, Wake, Wakes
from reactive_descheduler.api.eviction import Candidate, Rejection
from reactive_descheduler.api.meta import Ref
from reactive_descheduler.api.pod import Shape, shape
from reactive_descheduler.controller.parking import Evaluated, Parking
from tests.unit.evictor.samples import NOW, candidate, later, pod

KEY, OTHER = Key(0, "S", ("a",)), Key(0, "S", ("b",))
NODE: Ref = ("Node", "", "node-1")
SHAPES = [shape(pod("a", requests={"cpu": cpu})) for cpu in ("1", "2")]


def rejected(*wakes: Wake) -> Evaluated:
    assert wakes
    wanted: Wakes = (wakes[0], *wakes[1:])
    return Evaluated((), (Rejection("filter", "no", wanted),), wakes)


def offered(*candidates: Candidate, wakes: Iterable[Wake] = ()) -> Evaluated:
    return Evaluated(candidates, (), tuple(wakes))


def woken(
    parking: Parking, action: Action, *refs: Ref, fitting: Iterable[Shape | None] = ()
) -> set[Key]:
    fits = set(fitting)
    return set(parking.woken(action, refs, lambda shape: shape in fits))


@pytest.mark.parametrize(
    ("wake", "action", "ref", "wakes"),
    [
        pytest.param(On(Action.NODE_TAINTS, NODE), Action.NODE_TAINTS, NODE, True, id="it"),
        pytest.param(On(Action.NODE_TAINTS, NODE), Action.NODE_LABELS, NODE, False, id="other"),
        pytest.param(
            On(Action.NODE_TAINTS, NODE),
            Action.NODE_TAINTS | Action.NODE_LABELS,
            NODE,
            True,
            id="one of several",
        ),
        pytest.param(
            On(Action.NODE_TAINTS, NODE), Action.NODE_TAINTS, ("Node", "", "n2"), False, id="object"
        ),
        pytest.param(On(Action.NODE_ADDED, None), Action.NODE_ADDED, NODE, True, id="any object"),
        pytest.param(At(NOW), Action.NODE_ADDED, NODE, False, id="a time"),
        pytest.param(Never("uid"), Action.NODE_ADDED, NODE, False, id="never"),
    ],
)
def test_a_key_wakes_by_what_it_waits_for(
    wake: Wake, action: Action, ref: Ref, wakes: bool
) -> None:
    parking = Parking()
    parking.remember(KEY, rejected(wake))

    assert woken(parking, action, ref) == ({KEY} if wakes else set())


def test_one_with_a_shape_wakes_only_where_that_shape_fits() -> None:
    parking = Parking()
    small, big = SHAPES
    parking.remember(KEY, rejected(On(Action.NODE_ADDED, None, small)))
    parking.remember(OTHER, rejected(On(Action.NODE_ADDED, None, big)))

    assert woken(parking, Action.NODE_ADDED, NODE, fitting=[small]) == {KEY}
    assert woken(parking, Action.NODE_ADDED, NODE, fitting=[small, big]) == {KEY, OTHER}
    assert woken(parking, Action.NODE_ADDED, NODE) == set()


def test_fit_is_asked_once_for_each_shape() -> None:
    parking = Parking()
    for number in range(100):
        parking.remember(
            Key(0, "S", (str(number),)), rejected(On(Action.NODE_ADDED, None, SHAPES[0]))
        )
    asked: list[Shape] = []

    def fits(shape: Shape) -> bool:
        asked.append(shape)
        return True

    assert len(list(parking.woken(Action.NODE_ADDED, [NODE], fits))) == 100
    assert asked == [SHAPES[0]]
    assert list(parking.woken(Action.POD_LABELS, [NODE], fits)) == []
    assert len(asked) == 1, "nobody waits for labels"


def test_what_a_key_came_to_last_replaces_what_it_waited_for() -> None:
    parking = Parking()
    parking.remember(KEY, rejected(On(Action.NODE_TAINTS, NODE), On(Action.NODE_ADDED, None)))
    parking.remember(KEY, rejected(On(Action.NODE_LABELS, NODE)))

    assert woken(parking, Action.NODE_TAINTS | Action.NODE_ADDED, NODE) == set()
    assert woken(parking, Action.NODE_LABELS, NODE) == {KEY}


def test_two_wakes_on_one_object_both_count() -> None:
    parking = Parking()
    parking.remember(KEY, rejected(On(Action.NODE_TAINTS, NODE), On(Action.NODE_LABELS, NODE)))

    assert woken(parking, Action.NODE_TAINTS, NODE) == {KEY}
    assert woken(parking, Action.NODE_LABELS, NODE) == {KEY}


def test_nothing_that_waits_for_nothing_is_not_kept() -> None:
    parking = Parking()
    parking.remember(KEY, rejected(On(Action.NODE_TAINTS, NODE)))
    parking.remember(KEY, Evaluated())

    assert len(parking) == 0
    assert woken(parking, Action.NODE_TAINTS, NODE) == set()


def test_nothing_that_waits_for_something_is_kept() -> None:
    parking = Parking()
    parking.remember(KEY, Evaluated(wakes=(On(Action.NODE_TAINTS, NODE),)))

    assert parking[KEY].nothing
    assert woken(parking, Action.NODE_TAINTS, NODE) == {KEY}


def test_forgotten_keys_wake_no_more() -> None:
    parking = Parking()
    for key in (KEY, OTHER):
        parking.remember(key, rejected(On(Action.NODE_TAINTS, NODE), On(Action.NODE_ADDED, None)))
    parking.forget(KEY)
    parking.forget(KEY)
    assert woken(parking, Action.NODE_TAINTS, NODE) == {OTHER}
    assert woken(parking, Action.NODE_ADDED, NODE) == {OTHER}
    parking.forget(OTHER)

    assert list(parking) == []
    assert woken(parking, Action.NODE_TAINTS | Action.NODE_ADDED, NODE) == set()


def test_the_first_of_its_times_is_when_a_key_is_due() -> None:
    times = (At(later(9)), On(Action.NODE_ADDED, None), At(later(3)))

    assert rejected(*times).due == later(3)
    assert rejected(Never("uid")).due is None


def test_statistics_tell_offering_and_parked_keys() -> None:
    parking = Parking()
    parking.remember(KEY, offered(candidate()))
    parking.remember(OTHER, rejected(At(NOW)))
    parking.remember(Key(1, "S", ("a",)), Evaluated((candidate(),), (), (At(NOW),)))

    assert parking.statistics() == (3, 2, 1)
    parking.remember(KEY, rejected(At(NOW)))
    parking.forget(OTHER)
    assert parking.statistics() == (2, 1, 1)
