"""RemovePodsHavingTooManyRestarts."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from reactive_descheduler.strategies.remove_pods_having_too_many_restarts import (
    TooManyRestartsArguments,
)
from tests.builders import Manifest, cluster, make_node, make_pod
from tests.unit.strategies.driving import (
    NOW,
    build,
    changed,
    evaluate,
    hits,
    run,
    view_of,
    wakes_on,
)

NAME = "RemovePodsHavingTooManyRestarts"
NODES = (make_node("n1"), make_node("n2"))
CRASHING = {"waiting": {"reason": "CrashLoopBackOff"}}
FIVE = {"podRestartThreshold": 5}


def init_crashing(restarts: int) -> Manifest:
    return {
        "initContainerStatuses": [{"name": "i", "restartCount": restarts, "state": dict(CRASHING)}]
    }


@pytest.mark.parametrize(
    ("pod", "arguments", "expected"),
    [
        pytest.param(make_pod("p", node="n1", restarts=5), {}, ["p"], id="threshold-reached"),
        pytest.param(make_pod("p", node="n1", restarts=4), {}, [], id="below"),
        pytest.param(
            make_pod("p", node="n1", restarts=3, images=["a", "b"]), {}, ["p"], id="all-containers"
        ),
        pytest.param(
            make_pod("p", node="n1", restarts=3, init_restarts=2), {}, [], id="init-left-out"
        ),
        pytest.param(
            make_pod("p", node="n1", restarts=3, init_restarts=2),
            {"includingInitContainers": True},
            ["p"],
            id="init-counted",
        ),
        pytest.param(make_pod("p", node="n1", restarts=9, phase="Failed"), {}, ["p"], id="failed"),
        pytest.param(
            make_pod("p", node="n1", restarts=9), {"states": ["Running"]}, ["p"], id="running"
        ),
        pytest.param(
            make_pod("p", node="n1", restarts=9, phase="Pending"),
            {"states": ["Running"]},
            [],
            id="not-running",
        ),
        pytest.param(
            make_pod("p", node="n1", restarts=9, phase="Pending", state=CRASHING),
            {"states": ["Running", "CrashLoopBackOff"]},
            ["p"],
            id="crashing",
        ),
        pytest.param(
            make_pod("p", node="n1", restarts=9, phase="Pending", status=init_crashing(1)),
            {"states": ["CrashLoopBackOff"]},
            [],
            id="init-crashing",
        ),
        pytest.param(
            make_pod("p", node="n1", restarts=9, phase="Pending", status=init_crashing(1)),
            {"states": ["CrashLoopBackOff"], "includingInitContainers": True},
            ["p"],
            id="init-crashing-counted",
        ),
    ],
)
def test_pod_with_enough_restarts_is_offered(
    pod: Manifest, arguments: Manifest, expected: list[str]
) -> None:
    assert run(NAME, {**FIVE, **arguments}, *NODES, pod).names == expected


def test_most_restarts_go_first_on_each_node() -> None:
    said = run(
        NAME,
        FIVE,
        *NODES,
        make_pod("a", node="n1", restarts=6),
        make_pod("b", node="n1", restarts=8),
        make_pod("c", node="n1", restarts=6),
        make_pod("d", node="n2", restarts=9),
    )

    assert said.names == ["b", "a", "c", "d"]
    assert said.candidates[0].reason == "8 restarts, threshold 5"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "podRestartThreshold"),
        ({"podRestartThreshold": 0}, "podRestartThreshold"),
        ({"podRestartThreshold": -1}, "podRestartThreshold"),
        ({"podRestartThreshold": "5"}, "podRestartThreshold"),
        ({**FIVE, "states": ["Pending"]}, "CrashLoopBackOff, Running"),
    ],
)
def test_wrong_arguments_are_refused(arguments: Manifest, named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        TooManyRestartsArguments.read(arguments)


CALM, BAD = make_pod("p", node="n1"), make_pod("p", node="n1", restarts=9)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(make_pod("p", node="n1", restarts=8), BAD, True, id="restarted"),
        pytest.param(None, BAD, True, id="seen-bound"),
        pytest.param(CALM, make_pod("p", node="n1", phase="Failed"), True, id="phase"),
        pytest.param(CALM, make_pod("p", node="n1", state=CRASHING), True, id="waiting-reason"),
        pytest.param(
            CALM, make_pod("p", node="n1", tolerations=[{"operator": "Exists"}]), False, id="spec"
        ),
        pytest.param(CALM, None, False, id="deleted"),
    ],
)
def test_changes_that_can_make_a_violation_are_subscribed(
    old: Manifest | None, new: Manifest | None, expected: bool
) -> None:
    lister = cluster(*NODES, *([new] if new else []))

    assert bool(hits(build(NAME, FIVE), changed(old, new), lister)) is expected


def test_candidate_is_looked_at_again_when_its_count_moves() -> None:
    said = evaluate(build(NAME, FIVE), view_of(cluster(*NODES, BAD)), "uid-default-p")

    assert wakes_on(said, changed(BAD, make_pod("p", node="n1", restarts=10)))
    assert not wakes_on(
        said,
        changed(make_pod("q", node="n1"), make_pod("q", node="n1", restarts=10)),
    )


def test_restarts_prove_themselves_but_a_state_has_to_settle() -> None:
    stated = {**FIVE, "states": ["CrashLoopBackOff"]}
    crashing = make_pod("p", node="n1", restarts=9, state=CRASHING, started=NOW)

    plain = run(NAME, FIVE, *NODES, crashing).candidates[0].cause
    settling = run(NAME, stated, *NODES, crashing).candidates[0].cause

    assert plain.proven_since == NOW
    assert settling.proven_since is None
    strategy = build(NAME, stated)
    assert strategy.breaks(settling, changed(crashing, BAD))
    assert not strategy.breaks(settling, changed(BAD, crashing))
    assert not strategy.breaks(settling, changed(crashing, None))
