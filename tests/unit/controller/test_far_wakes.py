"""What node fit reads elsewhere than on the node wakes whoever waits, and whoever counts on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from tests.builders import (
    Manifest,
    make_claim,
    make_namespace,
    make_node,
    make_pod,
    make_volume,
    taint,
)
from tests.unit.controller.test_missed_changes import AFFINITY, REQUIRED, TAINTS, Daemon

FIT: Manifest = {"nodeFit": True}
FROM = make_node("n1", taints=[taint()], labels={"zone": "a"})
TARGET, FULL = (
    make_node("n2", labels={"zone": "b"}),
    make_node("n3", labels={"zone": "b"}, unschedulable=True),
)
SPACES = [make_namespace(name, labels={"team": "red"}) for name in ("default", "other")]
BLUE = {"team": "blue"}
RED: Manifest = {"namespaceSelector": {"matchLabels": {"team": "red"}}}


def shuns(app: str, **more: object) -> Manifest:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}, **more}
    return {"podAntiAffinity": {REQUIRED: [term]}}


def other(node: str = "n3", **more: object) -> Manifest:
    return make_pod("db", node=node, **{"labels": {"app": "db"}, "namespace": "other", **more})  # type: ignore[arg-type]


def plain(node: str = "n3", **more: object) -> Manifest:
    return make_pod("q", node=node, **more)  # type: ignore[arg-type]


SPREAD: Manifest = {
    "topologyKey": "zone",
    "maxSkew": 1,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
CLAIMING: list[Manifest] = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
IN_A: list[Manifest] = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]


class Case(NamedTuple):
    """One change and its contrary: with the second the Pod may go, with the first it may not."""

    id: str
    pod: Manifest
    stands: Sequence[Manifest]
    closes: Manifest
    opens: Manifest
    gone: bool = False
    """Whether `opens` is deleted rather than told."""


WHOLE = make_pod("p", node="n1")
SHUNNING = make_pod("p", node="n1", affinity=shuns("db", namespaces=["other"]))
CHOOSY = make_pod("p", node="n1", affinity=shuns("db", **RED))
SPREADING = make_pod("p", node="n1", spread=[SPREAD])
STORING = make_pod("p", node="n1", volumes=CLAIMING)
THEIRS = shuns("web", namespaces=["default"])

CASES = (
    Case("own-term-pod-goes", SHUNNING, [], other(), other(), gone=True),
    Case("own-term-pod-relabelled", SHUNNING, [], other(), other(labels={"app": "x"})),
    Case("own-term-pod-ends", SHUNNING, [], other(), other(phase="Succeeded")),
    Case(
        "own-term-node-moves",
        SHUNNING,
        [other()],
        FULL,
        make_node("n3", labels={"zone": "c"}, unschedulable=True),
    ),
    Case("own-term-node-goes", SHUNNING, [other()], FULL, FULL, gone=True),
    Case("chosen-pod-goes", CHOOSY, [], other(), other(), gone=True),
    Case(
        "chosen-namespace-relabelled",
        CHOOSY,
        [other()],
        SPACES[1],
        make_namespace("other", labels=BLUE),
    ),
    Case("their-pod-goes", WHOLE, [], other(affinity=THEIRS), other(affinity=THEIRS), gone=True),
    Case(
        "their-pod-ends", WHOLE, [], other(affinity=THEIRS), other(affinity=THEIRS, phase="Failed")
    ),
    Case(
        "their-node-moves",
        WHOLE,
        [other(affinity=THEIRS)],
        FULL,
        make_node("n3", labels={"zone": "c"}, unschedulable=True),
    ),
    Case(
        "their-term-chooses-namespaces",
        WHOLE,
        [],
        other(affinity=shuns("web", **RED)),
        other(affinity=shuns("web", **RED)),
        gone=True,
    ),
    Case(
        "namespace-of-the-pod-relabelled",
        WHOLE,
        [other(affinity=shuns("web", **RED))],
        SPACES[0],
        make_namespace("default", labels=BLUE),
    ),
    Case("spread-pod-goes", SPREADING, [], plain(), plain(), gone=True),
    Case("spread-pod-relabelled", SPREADING, [], plain(), plain(labels={"app": "x"})),
    Case(
        "spread-pod-terminates", SPREADING, [], plain(), plain(deleted="2026-01-01T00:00:30+00:00")
    ),
    Case(
        "spread-node-moves",
        SPREADING,
        [plain()],
        FULL,
        make_node("n3", labels={"zone": "c"}, unschedulable=True),
    ),
    Case(
        "claim-is-bound-elsewhere",
        STORING,
        [make_volume("far", terms=IN_A), make_volume("near")],
        make_claim(volume="far"),
        make_claim(volume="near"),
    ),
    Case(
        "claim-comes",
        STORING,
        [],
        make_claim(volume="far"),
        make_claim(),
    ),
    Case(
        "volume-moves",
        STORING,
        [make_claim(volume="disk")],
        make_volume(terms=IN_A),
        make_volume(),
    ),
)


def daemon(case: Case, strategy: str, *, first: Manifest) -> Daemon:
    arguments: Manifest = {"nodeAffinityType": [REQUIRED]} if strategy == AFFINITY else {}
    return Daemon(
        FROM,
        TARGET,
        FULL,
        *SPACES,
        *case.stands,
        case.pod,
        first,
        strategies={strategy: arguments},
        evictor=FIT,
    )


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_change_elsewhere_makes_room(case: Case) -> None:
    running = daemon(case, TAINTS, first=case.closes)
    assert running.reasons() == {"nodeFit"}

    running.happen(case.opens, gone=case.gone)

    assert running.offered() == {"p"}


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_change_elsewhere_takes_room(case: Case) -> None:
    running = daemon(case, TAINTS, first=case.opens)
    if case.gone:
        running.happen(case.opens, gone=True)
    assert running.offered() == {"p"}

    running.happen(case.closes)

    assert (running.offered(), running.reasons()) == (set(), {"nodeFit"})


def test_a_drainer_claims_a_node_and_leaves_it() -> None:
    claimed = make_node("n1", taints=[taint(), taint("karpenter.sh/disrupted")])
    running = Daemon(FROM, TARGET, WHOLE, strategies={TAINTS: {}})
    assert running.offered() == {"p"}
    running.happen(claimed)
    assert (running.offered(), running.reasons()) == (set(), {"drainers"})
    running.happen(FROM)
    assert running.offered() == {"p"}
