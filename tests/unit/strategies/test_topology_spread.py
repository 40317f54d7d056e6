"""RemovePodsViolatingTopologySpreadConstraint."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace
from pydantic import ValidationError

from reactive_descheduler.api.changes import Key, Never
from reactive_descheduler.api.eviction import TAKEN, Candidate, Rejection, Stop, Verdict
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.scheduling.fit import misfit
from reactive_descheduler.cache.gone import GonePods
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.promised import PromisedPods
from reactive_descheduler.cache.store import Store
from reactive_descheduler.config.corrections import ALL, NONE, Correction, Corrections
from reactive_descheduler.framework.fitting import fit_rules
from reactive_descheduler.framework.strategy import Holds, Phase
from tests.builders import (
    Manifest,
    cluster,
    cluster_store,
    make_node,
    make_pod,
    owner,
    pod_view,
    taint,
)
from tests.unit.strategies.driving import (
    Said,
    build,
    changed,
    evaluate,
    run,
    sweep,
    units_hit,
    view_of,
    wakes_on,
)

NAME = "RemovePodsViolatingTopologySpreadConstraint"
ZONE = "zone"
HOST = "kubernetes.io/hostname"
SOFT = "ScheduleAnyway"


def rule(key: str = ZONE, skew: int = 1, **more: object) -> Manifest:
    return {
        "topologyKey": key,
        "maxSkew": skew,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        **more,
    }


def zoned(*zones: str, **rest: object) -> list[Manifest]:
    return [make_node(f"{zone}1", labels={ZONE: zone}, **rest) for zone in zones]  # type: ignore[arg-type]


def standing(
    counts: Mapping[str, int], rules: Sequence[Manifest] = (rule(),), **pod: object
) -> list[Manifest]:
    """Return so many Pods on the first node of each zone: `a-0`, `a-1`, …"""
    return [
        make_pod(f"{zone}-{number}", node=f"{zone}1", spread=rules, **pod)  # type: ignore[arg-type]
        for zone, count in counts.items()
        for number in range(count)
    ]


def sizes(*counts: int, **more: object) -> list[Manifest]:
    """Return a zone of one node for each count, with so many Pods."""
    names = "abcdefgh"[: len(counts)]
    return [
        *zoned(*names),
        *standing(dict(zip(names, counts, strict=True)), [rule(**more)]),  # type: ignore[arg-type]
    ]


def gone(said: Said) -> dict[str, int]:
    """Return how many are to go, by node."""
    return dict(Counter(each.pod.node_name for each in said.candidates))


@pytest.mark.parametrize(
    ("counts", "skew", "upstream", "fewest"),
    [
        pytest.param((2, 1), 1, 0, 0, id="within"),
        pytest.param((3, 1), 1, 1, 1, id="three-one"),
        pytest.param((5, 2), 1, 1, 1, id="five-two"),
        pytest.param((4, 0), 1, 2, 2, id="four-none"),
        pytest.param((0, 1, 3, 5), 1, 3, 3, id="a-slope"),
        pytest.param((8, 7, 0), 1, 5, 5, id="one-empty"),
        pytest.param((5, 5, 5), 1, 0, 0, id="even"),
        pytest.param((0, 1, 100), 1, 66, 66, id="all-in-one"),
        pytest.param((2, 6), 2, 1, 1, id="a-wider-skew"),
        pytest.param((5, 1, 0), 2, 2, 2, id="five-one-none"),
        pytest.param((4, 0, 0), 1, 3, 2, id="upstream-goes-too-far"),
        pytest.param((4, 4, 0), 2, 1, 2, id="upstream-stops-too-early"),
        pytest.param((3, 3, 2, 0), 1, 2, 2, id="a-new-domain"),
    ],
)
def test_worked_sizes(counts: tuple[int, ...], skew: int, upstream: int, fewest: int) -> None:
    objects = sizes(*counts, skew=skew)
    assert len(run(NAME, {}, *objects, corrections=NONE).candidates) == upstream
    assert len(run(NAME, {}, *objects).candidates) == fewest


def least_moves(counts: tuple[int, ...], skew: int) -> int:
    """Return by trying everything how few moves bring the sizes within the skew."""
    reached, moves = {tuple(sorted(counts))}, 0
    while not any(max(each) - min(each) <= skew for each in reached):
        moves += 1
        reached = {
            tuple(sorted(size + (at == to) - (at == of) for at, size in enumerate(each)))
            for each in reached
            for of in range(len(each))
            for to in range(len(each))
            if each[of]
        }
    return moves


def test_no_more_go_than_it_takes() -> None:
    drawn = random.Random(5)
    for _ in range(150):
        counts = tuple(drawn.randint(0, 5) for _ in range(drawn.randint(2, 4)))
        skew = drawn.randint(1, 3)
        said = run(NAME, {}, *sizes(*counts, skew=skew))
        assert len(said.candidates) == least_moves(counts, skew), (counts, skew)


WITH_FIT = {"nodeFit": True}
FULL = {"cpu": "1", "memory": "8Gi", "pods": "110"}
EVERY = pytest.mark.parametrize("corrections", [NONE, ALL], ids=["none", "all"])


def three_one(*rest: Manifest, **pod: object) -> list[Manifest]:
    return [*standing({"a": 3, "b": 1}, **pod), *zoned("a"), *rest]  # type: ignore[arg-type]


@EVERY
@pytest.mark.parametrize(
    ("objects", "arguments", "expected"),
    [
        pytest.param(sizes(3, 1), {}, {"a1": 1}, id="the-fuller-one-gives"),
        pytest.param(sizes(3, 1, whenUnsatisfiable=SOFT), {}, {}, id="soft-ones-are-not-looked-at"),
        pytest.param(
            sizes(3, 1, whenUnsatisfiable=SOFT),
            {"constraints": [SOFT]},
            {"a1": 1},
            id="unless-they-are-asked-for",
        ),
        pytest.param(sizes(3, 1), {"constraints": [SOFT]}, {}, id="and-then-the-hard-ones-not"),
        pytest.param(
            sizes(3, 1), {"constraints": []}, {"a1": 1}, id="an-empty-list-is-the-default"
        ),
        pytest.param(
            sizes(3, 1), {"namespaces": {"exclude": ["default"]}}, {}, id="namespace-excluded"
        ),
        pytest.param(
            sizes(3, 1), {"namespaces": {"include": ["default"]}}, {"a1": 1}, id="and-included"
        ),
        pytest.param(
            sizes(3, 1),
            {"labelSelector": {"matchLabels": {"app": "other"}}},
            {},
            id="labels-out-of-scope",
        ),
        pytest.param(sizes(3, 1, labelSelector=None), {}, {}, id="no-selector-counts-nothing"),
        pytest.param(
            sizes(3, 1, labelSelector={"matchLabels": {"-": "x"}}), {}, {}, id="malformed-selector"
        ),
        pytest.param(
            three_one(make_node("b1", labels={ZONE: "b"}, taints=[taint()])),
            {},
            {},
            id="a-taint-on-the-emptier-node",
        ),
        pytest.param(
            three_one(make_node("b1", labels={ZONE: "b"}, taints=[taint()])),
            {"topologyBalanceNodeFit": False},
            {"a1": 1},
            id="unless-fit-is-not-asked-for",
        ),
        pytest.param(
            three_one(
                make_node("b1", labels={ZONE: "b"}, taints=[taint(effect="PreferNoSchedule")])
            ),
            {},
            {"a1": 1},
            id="a-soft-taint-does-not-matter",
        ),
        pytest.param(
            three_one(make_node("b1", labels={ZONE: "b"}, unschedulable=True)),
            {},
            {},
            id="a-cordon-on-the-emptier-node",
        ),
        pytest.param(
            three_one(
                make_node("b1", labels={ZONE: "b"}, allocatable=FULL), requests={"cpu": "600m"}
            ),
            {},
            {},
            id="no-room-on-the-emptier-node",
        ),
        pytest.param(
            [*zoned("a", "b"), *standing({"a": 4}, deleted=None), make_node("bare")],
            {},
            {"a1": 2},
            id="a-node-without-the-label-is-no-domain",
        ),
        pytest.param(
            [
                *zoned("a", "b"),
                *standing({"a": 2, "b": 2}),
                *(
                    make_pod(
                        f"t{number}", node="a1", spread=[rule()], deleted="2026-01-01T00:00:00Z"
                    )
                    for number in range(2)
                ),
            ],
            {},
            {},
            id="terminating-pods-do-not-count",
        ),
        pytest.param(
            [
                *zoned("a", "b", "c"),
                *standing({"a": 3, "b": 1}, node_selector={ZONE: "a"}),
                make_pod("free", node="a1", spread=[rule(nodeAffinityPolicy="Ignore")]),
            ],
            {},
            {"a1": 1},
            id="who-is-free-goes-before-who-is-bound",
        ),
        pytest.param(
            [
                *zoned("a", "b"),
                *standing(
                    {"a": 2, "b": 0},
                    [rule(matchLabelKeys=["rev"])],
                    labels={"app": "web", "rev": "1"},
                ),
                make_pod(
                    "new",
                    node="b1",
                    labels={"app": "web", "rev": "2"},
                    spread=[rule(matchLabelKeys=["rev"])],
                ),
            ],
            {},
            {"a1": 1},
            id="label-keys-tell-revisions-apart",
        ),
        pytest.param(
            [*zoned("a"), make_node("b1", labels={ZONE: "b"}, ready=False), *standing({"a": 3})],
            {},
            {},
            id="a-node-that-is-not-ready-takes-nobody",
        ),
    ],
)
def test_who_goes(
    objects: list[Manifest],
    arguments: Mapping[str, object],
    expected: dict[str, int],
    corrections: Corrections,
) -> None:
    assert gone(run(NAME, arguments, *objects, corrections=corrections)) == expected


@pytest.mark.parametrize(
    ("corrections", "expected"),
    [(ALL, ["low", "none"]), (NONE, ["high", "low"])],
    ids=["ours", "upstream"],
)
def test_within_a_domain_the_free_go_first_and_among_them_the_least_important_or_most(
    corrections: Corrections, expected: list[str]
) -> None:
    objects = [
        *zoned("a", "b"),
        make_pod("bound", node="a1", spread=[rule()], priority=9, node_selector={ZONE: "a"}),
        make_pod("none", node="a1", spread=[rule()]),
        make_pod("low", node="a1", spread=[rule()], priority=1),
        make_pod("high", node="a1", spread=[rule()], priority=5),
    ]
    said = run(NAME, {}, *objects, corrections=corrections)
    assert sorted(said.names) == expected


def test_only_who_carries_the_constraint_goes() -> None:
    objects = [
        *zoned("a", "b"),
        make_pod("carries", node="a1", spread=[rule()], priority=5),
        *(make_pod(name, node="a1") for name in ("other1", "other2")),
    ]
    assert run(NAME, {}, *objects).names == ["carries"]


@pytest.mark.parametrize(
    ("corrections", "expected"), [(ALL, {}), (NONE, {"a1": 1})], ids=["ours", "upstream"]
)
def test_an_empty_selector_counts_nobody(
    corrections: Corrections, expected: dict[str, int]
) -> None:
    objects = [*zoned("a", "b"), *standing({"a": 3}, [rule(labelSelector={})])]
    assert gone(run(NAME, {}, *objects, corrections=corrections)) == expected


@pytest.mark.parametrize(
    ("objects", "evictor", "upstream", "ours"),
    [
        pytest.param(
            [*zoned("a", "b"), *standing({"a": 2}), *standing({"b": 2}, priority=2_000_000_000)],
            {},
            {"a1": 1},
            {},
            id="protected-pods-count",
        ),
        pytest.param(
            [*zoned("a", "b"), *standing({"a": 3, "b": 1}, [rule(minDomains=3)])],
            {},
            {"a1": 1},
            {},
            id="too-few-domains",
        ),
        pytest.param(
            [
                *zoned("a", "b", "c"),
                *standing({"a": 2, "b": 1}, [rule(minDomains=3)]),
            ],
            {},
            {"a1": 1},
            {"a1": 1},
            id="enough-domains",
        ),
        pytest.param(
            [
                *zoned("a"),
                make_node("b1", labels={ZONE: "b"}, allocatable=FULL),
                *standing({"a": 2}, requests={"cpu": "2"}),
                *standing({"a": 0}),
                *(make_pod(f"small-{number}", node="a1", spread=[rule()]) for number in range(2)),
            ],
            {},
            {"a1": 2},
            {"a1": 2},
            id="who-fits-goes-in-place-of-who-does-not",
        ),
        pytest.param(
            [
                *zoned("a"),
                make_node("b1", labels={ZONE: "b"}, allocatable=FULL),
                make_node("c1", labels={ZONE: "c"}, taints=[taint()]),
                *standing({"a": 4}, requests={"cpu": "100m"}),
            ],
            {},
            {"a1": 3},
            {"a1": 1},
            id="no-more-than-the-scheduler-lets-in",
        ),
        pytest.param(
            [
                make_node("a1", labels={ZONE: "a"}),
                make_node("a2", labels={ZONE: "a"}),
                make_node("a3", labels={ZONE: "a"}),
                make_node("b1", labels={ZONE: "b"}),
                *(
                    make_pod(f"p{at}", node=name, spread=[rule(), rule(HOST)])
                    for at, name in enumerate(("a1", "a2", "b1", "b1"))
                ),
            ],
            {},
            {"b1": 1},
            {},
            id="the-other-hard-constraint",
        ),
    ],
)
def test_what_we_do_otherwise(
    objects: list[Manifest],
    evictor: Mapping[str, object],
    upstream: dict[str, int],
    ours: dict[str, int],
) -> None:
    assert gone(run(NAME, {}, *objects, evictor=evictor, corrections=NONE)) == upstream
    assert gone(run(NAME, {}, *objects, evictor=evictor)) == ours


def test_who_fits_nowhere_else_is_passed_over_and_told() -> None:
    objects = [
        *zoned("a"),
        make_node("b1", labels={ZONE: "b"}, allocatable=FULL),
        make_pod("big", node="a1", spread=[rule()], requests={"cpu": "2"}),
        make_pod("small", node="a1", spread=[rule()], priority=5),
    ]
    said = run(NAME, {}, *objects)
    assert (said.names, said.refused) == (["small"], {"big": NAME})
    assert said.rejections[0].reason == (
        "2 Pods in zone a, 0 in the least of its domains; no domain with fewer takes it"
    )
    assert said.candidates[0].reason == "2 Pods in zone a, 0 in the least of its domains"


def test_two_pods_do_not_go_for_the_same_room() -> None:
    objects = [
        *zoned("a"),
        make_node("b1", labels={ZONE: "b"}, allocatable=FULL),
        *standing({"a": 4}, requests={"cpu": "600m"}),
    ]
    assert gone(run(NAME, {}, *objects)) == {"a1": 1}
    assert gone(run(NAME, {}, *objects, corrections=ALL - {Correction.BOOKING})) == {"a1": 2}


def test_a_refused_pod_gives_way_to_the_next() -> None:
    lister = cluster(*sizes(4, 0))
    strategy = build(NAME, {})
    why = Rejection("cooldown", "too soon", (Never("uid-default-a-0"),))

    def names(verdict: Verdict) -> list[str]:
        answers = {"a-0": verdict}
        seen = view_of(lister)
        return sweep(strategy, seen, lambda each: answers.get(each.pod.name, TAKEN)).names

    assert names(TAKEN) == ["a-0", "a-1"]
    assert names(Verdict(taken=False, why=why)) == ["a-0", "a-1", "a-2"]
    # What the API server refuses, or a limit holds, may go yet.
    assert names(Verdict(taken=False)) == ["a-0", "a-1"]


@EVERY
def test_limits_stop_a_node_or_all(corrections: Corrections) -> None:
    objects = [
        *sizes(4, 0),
        *(make_pod(f"o-{at}", node="b1", namespace="other", spread=[rule()]) for at in range(4)),
    ]
    lister = cluster(*objects)
    strategy = build(NAME, {}, corrections=corrections)

    def stopped(stop: Stop) -> list[str]:
        def answer(_candidate: Candidate) -> Verdict:
            return Verdict(taken=False, stop=stop)

        seen = view_of(lister, corrections=corrections)
        return [each.pod.node_name for each in sweep(strategy, seen, answer).candidates]

    assert stopped(Stop.NODE) == ["a1", "b1"]
    assert stopped(Stop.ALL) == ["a1"]


@pytest.mark.parametrize(
    ("arguments", "mistake"),
    [
        pytest.param({"constraints": ["Sometimes"]}, "DoNotSchedule, ScheduleAnyway", id="kind"),
        pytest.param({"topologyBalanceNodeFit": "yes"}, "bool", id="type"),
        pytest.param(
            {"namespaces": {"include": ["a"], "exclude": ["b"]}}, "only one", id="namespaces"
        ),
        pytest.param(
            {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            "at least one value",
            id="selector",
        ),
        pytest.param({"nodeFit": True}, "Extra inputs", id="unknown"),
    ],
)
def test_arguments_that_are_refused(arguments: Mapping[str, object], mistake: str) -> None:
    with pytest.raises(ValidationError, match=mistake):
        build(NAME, arguments)


def test_it_balances_and_holds_while_what_it_counts_is_on_its_way() -> None:
    lister = cluster(*sizes(3, 1), make_pod("db", node="a1", labels={"app": "db"}))
    strategy = build(NAME, {})
    key = Key(0, NAME, ("default", "app=web"))
    counted = [
        pod_view(make_pod("a-0", spread=[rule()])),
        pod_view(make_pod("plain")),
        pod_view(make_pod("gone", labels={"app": "db"}, spread=[rule()])),
        pod_view(make_pod("db", labels={"app": "db"})),
        pod_view(make_pod("other", namespace="other")),
    ]
    assert (strategy.PHASE, strategy.HOLDS) == (Phase.BALANCE, Holds.COUNTED)
    assert [strategy.counts(key, pod, lister) for pod in counted] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert run(NAME, {}, *sizes(3, 1)).candidates[0].cause == (
        "spread",
        ("default", "app=web"),
        (),
        None,
    )


WEB, DB = rule(), rule(labelSelector={"matchLabels": {"app": "db"}})
BOTH = rule(labelSelector={"matchExpressions": [{"key": "app", "operator": "Exists"}]})


@pytest.mark.parametrize(
    ("pods", "units"),
    [
        pytest.param([make_pod(node="a1")], [], id="no-constraint"),
        pytest.param(
            [make_pod(node="a1", spread=[WEB, rule(HOST)])], ["app=web"], id="one-selector"
        ),
        pytest.param([make_pod(spread=[WEB])], [], id="not-on-a-node"),
        pytest.param(
            [
                make_pod("w", node="a1", spread=[WEB]),
                make_pod("d", node="a1", labels={"app": "db"}, spread=[DB]),
            ],
            ["app=db", "app=web"],
            id="two-workloads",
        ),
        pytest.param(
            [
                make_pod("w", node="a1", spread=[WEB]),
                make_pod("d", node="a1", labels={"app": "db"}, spread=[DB]),
                make_pod("x", node="a1", labels={"app": "x"}, spread=[BOTH]),
            ],
            ["app"],
            id="joined-by-a-third",
        ),
        pytest.param(
            [make_pod("w", node="a1", spread=[WEB, DB])], ["app=db"], id="carried-and-counted"
        ),
    ],
)
def test_keys_are_the_groups_that_hang_together(pods: list[Manifest], units: list[str]) -> None:
    lister = cluster(*zoned("a", "b"), *pods)
    found = [key.unit for key in build(NAME, {}).keys_of(lister)]
    assert found == [("default", unit) for unit in units]


OTHER_GROUP = make_pod("d", node="a1", labels={"app": "db"}, spread=[DB])
HONOURING = make_pod(
    "h", node="a1", labels={"app": "h"}, spread=[rule(nodeTaintsPolicy="Honor", labelSelector={})]
)


@pytest.mark.parametrize(
    ("old", "new", "units"),
    [
        pytest.param(None, make_pod("n", node="a1"), {"app=web"}, id="a-counted-pod-comes"),
        pytest.param(None, make_pod("n"), set(), id="it-is-not-bound"),
        pytest.param(
            make_pod("a-0", node="a1", spread=[rule()]),
            make_pod("a-0", node="a1", spread=[rule()], deleted="2026-01-01T00:00:00Z"),
            {"app=web"},
            id="it-terminates",
        ),
        pytest.param(
            make_pod("a-0", node="a1", spread=[rule()]),
            make_pod("a-0", node="a1", spread=[rule()], restarts=3),
            set(),
            id="it-restarts",
        ),
        pytest.param(
            make_pod("a-0", node="a1", spread=[rule()]),
            make_pod("a-0", node="a1", spread=[rule()], labels={"app": "db"}),
            {"app=web", "app=db"},
            id="it-is-relabelled",
        ),
        pytest.param(
            make_pod("x", node="a1", labels={"app": "x"}, spread=[BOTH]),
            None,
            {"app", "app=web", "app=db"},
            id="who-joined-them-goes",
        ),
        pytest.param(
            None, make_pod("n", node="a1", namespace="other"), set(), id="another-namespace"
        ),
        pytest.param(None, make_node("c1"), set(), id="a-node-without-the-key"),
        pytest.param(
            None, make_node("c1", labels={ZONE: "c"}), {"app=web", "app=db"}, id="a-node-comes"
        ),
        pytest.param(
            make_node("a1", labels={ZONE: "a"}),
            make_node("a1", labels={ZONE: "a"}, taints=[taint()]),
            set(),
            id="a-taint-that-nobody-honours",
        ),
        pytest.param(
            make_node("a1", labels={ZONE: "a"}),
            make_node("a1", labels={ZONE: "a"}, ready=False),
            {"app=web", "app=db"},
            id="a-node-is-not-ready",
        ),
        pytest.param(
            make_node("a1", labels={ZONE: "a"}),
            make_node("a1"),
            {"app=web", "app=db"},
            id="a-node-loses-the-key",
        ),
    ],
)
def test_who_is_looked_at_after_a_change(
    old: Manifest | None, new: Manifest | None, units: set[str]
) -> None:
    rest = [each for each in (*sizes(2, 1), OTHER_GROUP) if _name(each) != _name(old or new or {})]
    lister = cluster(*rest, *([new] if new else []))
    found = units_hit(build(NAME, {}), changed(old, new), lister)
    assert found == {("default", unit) for unit in units}


def test_a_node_that_is_in_no_domain_matters_to_those_who_stand_on_it() -> None:
    store = [*sizes(2, 1), OTHER_GROUP, make_pod("c", node="c1", spread=[rule()])]
    lister = cluster(*store, make_node("c1"))
    found = units_hit(build(NAME, {}), changed(None, make_node("c1")), lister)
    assert found == {("default", "app=web")}


def _name(manifest: Manifest) -> tuple[object, object]:
    metadata = manifest["metadata"]
    assert isinstance(metadata, dict)
    return manifest["kind"], metadata["name"]


def test_a_taint_matters_where_it_is_honoured() -> None:
    lister = cluster(*zoned("a", "b"), HONOURING)
    change = changed(
        make_node("a1", labels={ZONE: "a"}), make_node("a1", labels={ZONE: "a"}, taints=[taint()])
    )
    assert units_hit(build(NAME, {}), change, lister) == {("default", "*")}


@EVERY
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(changed(None, make_node("c1", labels={ZONE: "c"})), id="a-node-comes"),
        pytest.param(
            changed(make_node("b1", labels={ZONE: "b"}, unschedulable=True), zoned("b")[0]),
            id="an-uncordon",
        ),
        pytest.param(
            changed(make_pod("other", node="b1", requests={"cpu": "4"}), None), id="room-is-freed"
        ),
    ],
)
def test_who_finds_no_place_waits_for_one(change: object, corrections: Corrections) -> None:
    objects = three_one(
        make_node("b1", labels={ZONE: "b"}, allocatable=FULL), requests={"cpu": "600m"}
    )
    lister = cluster(*objects)
    seen = view_of(lister, corrections=corrections)
    said = evaluate(build(NAME, {}, corrections=corrections), seen, "default", "app=web")
    assert not said.candidates
    assert wakes_on(said, change)  # type: ignore[arg-type]


def test_a_balanced_group_waits_for_nothing() -> None:
    seen = view_of(cluster(*sizes(2, 1)))
    said = evaluate(build(NAME, {}), seen, "default", "app=web")
    assert (said.candidates, said.rejections, said.wakes) == ([], [], [])
    assert seen.looked_at == 0


def some_cluster(drawn: random.Random, *, wild: bool) -> list[Manifest]:
    """Return a small cluster of two workloads with one or two constraints each, uneven.

    `wild`: they may select each other's Pods, and not all Pods carry them.
    """
    nodes = [
        make_node(
            f"n{at}",
            labels={ZONE: drawn.choice("abc")} if drawn.random() < 0.9 else {},
            taints=[taint()] if drawn.random() < 0.15 else (),
            unschedulable=drawn.random() < 0.1,
            allocatable={"cpu": drawn.choice(("1", "2", "8")), "memory": "8Gi", "pods": "9"},
        )
        for at in range(drawn.randint(2, 6))
    ]
    pods = []
    for app in ("web", "db"):
        selector = {"matchLabels": {"app": drawn.choice((app, app, "web")) if wild else app}}
        rules = [
            rule(
                key,
                drawn.randint(1, 2),
                labelSelector=selector,
                **({"nodeTaintsPolicy": "Honor"} if drawn.random() < 0.5 else {}),
                **({"minDomains": 3} if drawn.random() < 0.2 else {}),
            )
            for key in drawn.sample((ZONE, HOST), drawn.randint(1, 2))
        ]
        pods += [
            make_pod(
                f"{app}-{at}",
                node=f"n{drawn.choice((0, 0, drawn.randrange(len(nodes))))}",
                labels={"app": app},
                owners=[owner(app)] if drawn.random() < 0.9 else [],
                requests={"cpu": drawn.choice(("100m", "500m"))},
                node_selector={ZONE: "a"} if drawn.random() < 0.1 else {},
                spread=() if wild and drawn.random() < 0.1 else rules,
            )
            for at in range(drawn.randint(0, 7))
        ]
    return [*nodes, *pods]


PAIRS = (
    Correction.SPREAD_ALL_PODS,
    Correction.SPREAD_MIN_DOMAINS,
    Correction.SPREAD_FEWEST_MOVES,
    Correction.NODE_FIT_SPREAD,
    Correction.BOOKING,
)


@pytest.mark.parametrize("some", [False, True], ids=["all-or-none", "some-corrections"])
@pytest.mark.parametrize("seed", range(60))
def test_keys_offer_what_a_full_pass_offers(seed: int, some: bool) -> None:
    drawn = random.Random(seed)
    corrections = drawn.choice((NONE, ALL))
    if some:
        corrections = frozenset(drawn.sample(PAIRS, drawn.randint(1, len(PAIRS) - 1)))
    arguments = {"topologyBalanceNodeFit": drawn.random() < 0.7}
    evictor = {"nodeFit": drawn.random() < 0.5}
    said = run(
        NAME, arguments, *some_cluster(drawn, wild=True), evictor=evictor, corrections=corrections
    )
    assert len({each.pod.uid for each in said.candidates}) == len(said.candidates)


def place(store: Store, pod: Pod, drawn: random.Random) -> str:
    """Bind a Pod to some node that the scheduler would take; return which, empty for none."""
    lister = Lister(store)
    unbound = replace(pod, node_name="")
    fits = [
        node.name
        for node in lister.nodes()
        if node.ready and misfit(unbound, node, lister, fit_rules(ALL)) is None
    ]
    if not fits:
        return ""
    store.put(replace(pod, node_name=drawn.choice(fits)))
    return fits[0]


@pytest.mark.parametrize("seed", range(60))
def test_whoever_was_placed_anew_stays_where_it_is(seed: int) -> None:
    drawn = random.Random(seed)
    store = cluster_store(*some_cluster(drawn, wild=False))
    strategy = build(NAME, {})
    placed: set[str] = set()
    for number in range(12):
        said = sweep(strategy, view_of(Lister(store)))
        assert placed.isdisjoint(said.names), (number, said.candidates)
        if not said.candidates:
            return
        for victim in said.candidates:
            store.remove(victim.pod)
        for victim in said.candidates:
            name = f"new-{victim.pod.name}"
            pod = replace(victim.pod, name=name, uid=name)
            if place(store, pod, drawn):
                placed.add(name)
    raise AssertionError("it never comes to rest")


def test_who_has_to_stay_for_one_to_come_does_not_stand_for_its_siblings() -> None:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    nodes = [make_node(name, labels={ZONE: name[0], HOST: name}) for name in ("a1", "a2", "b1")]
    places = {"x": "a1", "y": "a2", "z": "a2"}
    web = [
        make_pod(name, node=node, labels={"app": "web"}, spread=[rule()])
        for name, node in places.items()
    ]
    promised = PromisedPods()
    promised.promise(pod_view(make_pod("coming", affinity=near)), "a1")
    lister = Lister(cluster_store(*nodes, *web), GonePods(), promised)

    said = sweep(build(NAME), view_of(lister))

    assert said.names == ["y"]
    assert said.refused == {"x": NAME}
