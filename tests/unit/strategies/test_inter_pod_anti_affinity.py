"""RemovePodsViolatingInterPodAntiAffinity."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reactive_descheduler.api.changes import Key, On
from reactive_descheduler.api.eviction import TAKEN, Candidate, Stop, Verdict
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.config.corrections import ALL, NONE, Correction, Corrections
from reactive_descheduler.framework.profile import ProfileView
from reactive_descheduler.framework.strategy import Strategy
from reactive_descheduler.strategies import (
    remove_pods_violating_inter_pod_anti_affinity as module,
)
from reactive_descheduler.triggers import cluster_events
from tests.builders import Manifest, cluster, make_namespace, make_node, make_pod
from tests.unit.strategies.driving import (
    Said,
    build,
    changed,
    drive,
    sweep,
    view_of,
    wakes_on,
)

NAME = "RemovePodsViolatingInterPodAntiAffinity"
HOST = "kubernetes.io/hostname"
STAY = {"descheduler.alpha.kubernetes.io/prefer-no-eviction": ""}
NODES = (make_node("n1"), make_node("n2"))
ZONED = (make_node("n1", labels={"zone": "a"}), make_node("n2", labels={"zone": "a"}))
SCOPE = frozenset({Correction.ANTI_AFFINITY_SCOPE})


def term(
    app: str | None = None,
    *,
    key: str = HOST,
    selector: Manifest | None = None,
    namespaces: Sequence[str] = (),
    among: Manifest | None = None,
) -> Manifest:
    """Return a term against Pods of an app; `among` is its namespaceSelector."""
    full: Manifest = {"topologyKey": key, "namespaces": list(namespaces)}
    if app is not None or selector is not None:
        full["labelSelector"] = selector if selector is not None else {"matchLabels": {"app": app}}
    if among is not None:
        full["namespaceSelector"] = among
    return full


def pod(name: str, *terms: Manifest, app: str = "web", **more: object) -> Manifest:
    required = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [*terms]}}
    full = {"node": "n1", "labels": {"app": app}, "affinity": required if terms else {}, **more}
    return make_pod(name, **full)  # type: ignore[arg-type]


def evaluate(
    strategy: Strategy, seen: ProfileView, namespace: str = "default", *rejected: str
) -> Said:
    """Evaluate a key; those named are answered with no."""

    def answer(candidate: Candidate) -> Verdict:
        return Verdict(taken=False) if candidate.pod.name in rejected else TAKEN

    return drive(strategy.evaluate(seen, Key(0, NAME, (namespace,))), seen, answer)


def run(
    *manifests: Manifest,
    arguments: Manifest | None = None,
    evictor: Manifest | None = None,
    corrections: Corrections = ALL,
) -> Said:
    """Sweep a cluster once, and hold the keys, each evaluated alone, to the same candidates."""
    lister = cluster(*manifests)
    strategy = build(NAME, arguments, evictor=evictor, corrections=corrections)

    def look() -> ProfileView:
        return view_of(lister, evictor=evictor, corrections=corrections)

    said = sweep(strategy, look())
    alone: dict[tuple[str, str], str] = {}
    for key in strategy.keys_of(lister):
        for each in evaluate(strategy, look(), *key.unit).candidates:
            assert each.key == key
            alone[each.pod.namespace, each.pod.name] = each.reason
    assert alone == {(e.pod.namespace, e.pod.name): e.reason for e in said.candidates}
    return said


WEB = term("web")


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(
            [pod("a", WEB), pod("b", WEB), pod("c", WEB)], ["a", "b"], id="all-but-one-of-mutual"
        ),
        pytest.param(
            [pod("a", WEB), pod("b", WEB), pod("c", WEB), pod("plain")],
            ["a", "b", "c"],
            id="all-holders-beside-one-without-a-term",
        ),
        pytest.param([pod("a", WEB), pod("b", node="n2")], [], id="on-another-node"),
        pytest.param([pod("a", WEB)], [], id="alone-and-matching-itself"),
        pytest.param([pod("a"), pod("b", app="db")], [], id="nobody-holds-a-term"),
        pytest.param([pod("a", term("db")), pod("b", WEB, app="x")], ["b"], id="one-sided"),
        pytest.param(
            [pod("a", WEB), pod("b", namespace="other")], [], id="another-namespace-is-not-meant"
        ),
        pytest.param(
            [pod("a", term("web", namespaces=["other"])), pod("b", namespace="other")],
            ["a"],
            id="a-named-namespace",
        ),
        pytest.param(
            [pod("a", term("web", namespaces=["other"])), pod("b")], [], id="not-its-own-then"
        ),
        pytest.param([pod("a", term()), pod("b")], [], id="no-selector-matches-nothing"),
        pytest.param([pod("a", term(selector={})), pod("b")], ["a"], id="an-empty-one-everything"),
        pytest.param(
            [pod("a", term(selector={"matchLabels": {"-": ""}}), WEB), pod("b")],
            [],
            id="a-malformed-term-ends-it",
        ),
        pytest.param(
            [pod("a", WEB, term(selector={"matchLabels": {"-": ""}})), pod("b")],
            ["a"],
            id="a-term-before-a-malformed-one-counts",
        ),
        pytest.param(
            [
                pod(
                    "a",
                    term(
                        selector={
                            "matchExpressions": [
                                {"key": "app", "operator": "In", "values": ["web", "db"]}
                            ]
                        }
                    ),
                ),
                pod("b"),
            ],
            ["a"],
            id="by-expression",
        ),
        pytest.param([pod("a", WEB), pod("b", phase="Succeeded")], [], id="the-other-has-ended"),
        pytest.param([pod("a", WEB), pod("b", node="")], [], id="the-other-is-not-bound"),
        pytest.param([pod("a", WEB), pod("b", node="gone")], [], id="node-outside-the-cycle"),
        pytest.param(
            [pod("a", WEB), pod("b", WEB, priority=2_000_000_000)],
            ["a"],
            id="a-critical-one-is-in-the-way",
        ),
        pytest.param(
            [pod("high", WEB, priority=10), pod("low", priority=1)],
            ["high"],
            id="whoever-holds-the-term-goes",
        ),
        pytest.param(
            [pod("a", WEB, priority=10), pod("b", WEB, priority=1)],
            ["b"],
            id="lower-priority-first",
        ),
        pytest.param(
            [pod("a", WEB, annotations=STAY), pod("b", WEB)], ["b"], id="who-would-stay-goes-last"
        ),
        pytest.param(
            [pod("a", WEB, owners=[]), pod("b", WEB)], ["b"], id="a-bare-one-stays-in-the-way"
        ),
    ],
)
@pytest.mark.parametrize("corrections", [ALL, NONE], ids=["all", "none"])
def test_who_is_evicted(
    objects: list[Manifest], expected: list[str], corrections: Corrections
) -> None:
    assert run(*NODES, *objects, corrections=corrections).names == expected


@pytest.mark.parametrize(
    ("corrections", "expected"), [(ALL, []), (NONE, ["a"])], ids=["ours", "upstream"]
)
def test_on_a_node_without_the_label(corrections: Corrections, expected: list[str]) -> None:
    objects = [*NODES, pod("a", term("web", key="rack")), pod("b")]
    assert run(*objects, corrections=corrections).names == expected


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        pytest.param(pod("b", node="n2"), ["a"], id="same-zone"),
        pytest.param(pod("b", node="n3"), [], id="another-zone"),
        pytest.param(pod("b", node="n4"), [], id="a-node-without-the-label"),
        pytest.param(pod("b", node="n5"), [], id="a-node-that-is-not-ready"),
    ],
)
def test_whole_topology_domain_is_looked_at(other: Manifest, expected: list[str]) -> None:
    nodes = (
        *ZONED,
        make_node("n3", labels={"zone": "b"}),
        make_node("n4"),
        make_node("n5", labels={"zone": "a"}, ready=False),
    )

    assert run(*nodes, pod("a", term("web", key="zone")), other).names == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param({"namespaces": {"exclude": ["other"]}}, [], id="namespace-excluded"),
        pytest.param({"namespaces": {"include": ["default"]}}, [], id="namespace-not-included"),
        pytest.param({"labelSelector": {"matchLabels": {"app": "db"}}}, [], id="labels"),
        pytest.param(
            {"namespaces": {"include": ["default", "other"]}}, ["a"], id="both-are-included"
        ),
    ],
)
def test_who_is_left_out_counts_for_nothing(arguments: Manifest, expected: list[str]) -> None:
    holder = pod("a", term("web", namespaces=["other"]), app="db")

    said = run(*NODES, holder, pod("b", namespace="other"), arguments=arguments)

    assert said.names == expected


RED, BLUE = {"team": "red"}, {"team": "blue"}


@pytest.mark.parametrize(
    ("among", "own", "expected"),
    [
        pytest.param({"matchLabels": RED}, [], ["a"], id="matches"),
        pytest.param({"matchLabels": BLUE}, [], [], id="does-not-match"),
        pytest.param({"matchLabels": BLUE}, ["other"], ["a"], id="beside-a-name"),
        pytest.param({}, [], ["a"], id="all-namespaces"),
        pytest.param(
            {"matchExpressions": [{"key": "team", "operator": "Like"}]}, [], [], id="malformed"
        ),
    ],
)
def test_namespace_selector_is_honoured(
    among: Manifest, own: list[str], expected: list[str]
) -> None:
    objects = (
        *NODES,
        make_namespace("default", labels=BLUE),
        make_namespace("other", labels=RED),
        pod("a", term("web", among=among, namespaces=own), app="db"),
        pod("b", namespace="other"),
    )

    assert run(*objects).names == expected
    upstream = ["a"] if own else []
    assert run(*objects, corrections=ALL - SCOPE).names == upstream


def test_upstream_reads_a_term_with_a_selector_alone_as_of_its_own_namespace() -> None:
    objects = (*NODES, pod("a", term("web", among={"matchLabels": BLUE})), pod("b"))

    assert run(*objects, corrections=NONE).names == ["a"]
    assert run(*objects).names == []


def test_pods_are_told_apart_by_uid() -> None:
    objects = (
        *NODES,
        pod("same", term("web", namespaces=["other"])),
        pod("same", namespace="other"),
    )

    assert run(*objects).names == ["same"]
    assert run(*objects, corrections=ALL - SCOPE).names == []


HUB = pod("hub", term("spoke"), app="hub")
SPOKES = [pod(name, term("hub"), app="spoke") for name in ("a", "b", "c")]


@pytest.mark.parametrize(
    ("objects", "fewest", "upstream"),
    [
        pytest.param([HUB, *SPOKES], ["hub"], ["a", "b", "c"], id="hub-and-spokes"),
        pytest.param(
            [pod("zhub", term("spoke"), app="hub", node="n2"), *SPOKES],
            [],
            [],
            id="on-different-nodes",
        ),
        pytest.param(
            [pod("hub", term("spoke"), app="hub", priority=1), *SPOKES],
            ["a", "b", "c"],
            ["a", "b", "c"],
            id="lower-priority-first-all-the-same",
        ),
        pytest.param(
            [pod("hub", term("spoke"), app="hub", owners=[]), *SPOKES],
            ["a", "b", "c"],
            ["a", "b", "c"],
            id="the-hub-may-not-go",
        ),
        pytest.param(
            [pod("a", WEB), pod("b", WEB, deleted="2026-01-01T00:59:00Z")],
            [],
            ["a"],
            id="one-that-goes-is-no-longer-in-the-way",
        ),
    ],
)
def test_fewest_go_of_one_priority(
    objects: list[Manifest], fewest: list[str], upstream: list[str]
) -> None:
    without = ALL - {Correction.ANTI_AFFINITY_FEWEST}

    assert run(*NODES, *objects).names == fewest
    assert run(*NODES, *reversed(objects)).names == fewest
    assert run(*NODES, *objects, corrections=without).names == upstream
    assert run(*NODES, *objects, corrections=NONE).names == upstream


def test_order_is_over_all_nodes_where_the_fewest_go() -> None:
    hub = pod("hub", term("spoke", key="zone"), app="hub", node="n2")
    spokes = [pod(name, term("hub", key="zone"), app="spoke") for name in ("a", "b")]
    low = pod("low", term("tall", key="zone"), app="short", node="n2")
    tall = pod("tall", term("short", key="zone"), app="tall", priority=5)

    assert run(*ZONED, hub, *spokes, low, tall).names == ["hub", "low"]
    assert run(*ZONED, hub, *spokes, low, tall, corrections=NONE).names == ["a", "b", "tall"]


def test_both_corrections_together_count_conflicts_in_other_namespaces() -> None:
    objects = (
        *NODES,
        make_namespace("default"),
        make_namespace("other"),
        pod("hub", term("spoke", among={}), app="hub", namespace="other"),
        *(pod(name, term("hub", among={}), app="spoke") for name in ("a", "b")),
    )

    assert run(*objects).names == ["hub"]
    assert run(*objects, corrections=ALL - SCOPE).names == []


def test_rejected_pod_stays_in_the_way() -> None:
    lister = cluster(*NODES, HUB, *SPOKES)
    strategy = build(NAME)

    assert evaluate(strategy, view_of(lister)).names == ["hub"]
    assert evaluate(strategy, view_of(lister), "default", "hub").names == ["hub", "a", "b", "c"]


def test_full_node_is_left_and_a_full_pass_ended() -> None:
    objects = [pod(f"{node}-{name}", WEB, node=node) for node in ("n1", "n2") for name in "abc"]

    def offered(stop: Stop, corrections: Corrections) -> list[str]:
        strategy = build(NAME, corrections=corrections)
        seen = view_of(cluster(*NODES, *objects))
        return sweep(strategy, seen, lambda _: Verdict(taken=False, stop=stop)).names

    for corrections in (ALL, NONE):
        assert offered(Stop.NODE, corrections) == ["n1-a", "n2-a"]
        assert offered(Stop.ALL, corrections) == ["n1-a"]


def test_key_offers_so_many_at_once_and_a_full_pass_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST", 2)
    objects = [pod(name, WEB, node="n1") for name in "abcd"]
    strategy = build(NAME)

    assert sweep(strategy, view_of(cluster(*NODES, *objects))).names == ["a", "b", "c"]
    assert evaluate(strategy, view_of(cluster(*NODES, *objects)), "default").names == ["a", "b"]
    assert evaluate(strategy, view_of(cluster(*NODES, *objects[1:])), "default").names == ["b", "c"]


def test_key_with_many_in_conflict_waits_for_their_namespace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_MANY", 1)
    said = evaluate(build(NAME), view_of(cluster(*NODES, pod("a", WEB), pod("b", WEB))), "default")

    refs = {wake.ref for wake in said.wakes if isinstance(wake, On)}
    assert {("Namespace", "", "default"), None} <= refs
    assert ("Pod", "default", "b") not in refs


def test_node_fit_may_keep_it() -> None:
    small = make_node("n2", allocatable={"pods": "0"})

    said = run(make_node("n1"), small, pod("a", WEB), pod("b"), evictor={"nodeFit": True})

    assert (said.names, said.refused) == ([], {"a": "nodeFit"})


def test_reason_tells_the_other_and_where_it_is() -> None:
    near = run(*NODES, pod("a", WEB), pod("b")).candidates[0]
    far = run(*ZONED, pod("a", term("web", key="zone")), pod("b", node="n2")).candidates[0]

    assert near.reason == "its anti-affinity keeps away default/b on n1"
    assert far.reason == "its anti-affinity keeps away default/b on n2 with the same zone"


# Keys


def hits(strategy: Strategy, old: Manifest | None, new: Manifest | None, now: Lister) -> set[str]:
    """Return the namespaces whose keys the strategy's subscriptions look at after a change."""
    change = changed(old, new)
    actions = cluster_events(change)
    return {
        key.unit[0]
        for subscription in strategy.EVENTS
        if subscription.action & actions
        for key in strategy.keys_for(subscription.scope, change, now)
        if subscription.narrow is None or subscription.narrow(change, now, key)
    }


HOLDER = pod("holder", term("db"))
LABELLED = make_node("n1", labels={"zone": "a"})


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, pod("p", app="db"), {"default"}, id="one-that-is-kept-away-was-bound"),
        pytest.param(None, pod("p"), set(), id="one-that-is-not-was-bound"),
        pytest.param(None, pod("p", app="db", node=""), set(), id="not-bound"),
        pytest.param(None, pod("p", WEB), {"default"}, id="a-holder-was-bound"),
        pytest.param(None, pod("p", WEB, namespace="x"), {"x"}, id="elsewhere"),
        pytest.param(None, pod("p", app="db", namespace="x"), set(), id="where-nobody-looks"),
        pytest.param(pod("p"), pod("p", app="db"), {"default"}, id="relabelled"),
        pytest.param(pod("p", app="db"), pod("p"), set(), id="relabelled-away"),
        pytest.param(pod("p", app="db"), None, set(), id="deleted"),
        pytest.param(
            pod("p", app="db", phase="Pending"), pod("p", app="db"), set(), id="only-another-phase"
        ),
        pytest.param(
            pod("p", app="db", phase="Failed"), pod("p", app="db"), {"default"}, id="runs-again"
        ),
        pytest.param(make_node("n1"), LABELLED, {"default"}, id="node-relabelled"),
        pytest.param(None, make_node("n1"), {"default"}, id="node-added"),
        pytest.param(make_node("n1", ready=False), make_node("n1"), {"default"}, id="node-ready"),
        pytest.param(make_node("n1"), make_node("n1", ready=False), set(), id="node-not-ready"),
        pytest.param(None, make_node("n2"), set(), id="node-without-pods"),
        pytest.param(None, make_namespace("default", labels=RED), set(), id="namespace"),
    ],
)
def test_changes_that_can_make_a_conflict_are_subscribed(
    old: Manifest | None, new: Manifest | None, expected: set[str]
) -> None:
    changed_object = [new] if new is not None else []
    lister = cluster(make_node("n3"), HOLDER, *changed_object)

    assert hits(build(NAME), old, new, lister) == expected


LOOKS_OUT = pod("far", term("db", namespaces=["b"]), namespace="c")


def test_key_is_the_first_of_the_namespaces_that_terms_join() -> None:
    strategy = build(NAME)
    objects = (*NODES, LOOKS_OUT, pod("near", WEB, namespace="b"), pod("x", WEB, namespace="d"))
    lister = cluster(*objects, pod("y", app="db", namespace="b"))

    assert [key.unit for key in strategy.keys_of(lister)] == [("b",), ("d",)]
    assert evaluate(strategy, view_of(lister), "b").names == ["far"]
    assert evaluate(strategy, view_of(lister), "c").names == []


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(None, LOOKS_OUT, {"b", "c"}, id="joined"),
        pytest.param(LOOKS_OUT, None, {"b", "c"}, id="parted"),
        pytest.param(
            pod("far", term("db", namespaces=["a"]), namespace="c"),
            LOOKS_OUT,
            {"a", "b", "c"},
            id="joined-with-another",
        ),
    ],
)
def test_change_that_joins_or_parts_namespaces_gives_old_and_new_keys(
    before: Manifest | None, after: Manifest | None, expected: set[str]
) -> None:
    near = pod("near", WEB, namespace="b")
    lister = cluster(*NODES, near, *([after] if after is not None else []))

    assert hits(build(NAME), before, after, lister) == expected


def test_second_of_a_kind_joins_nothing_more() -> None:
    more = pod("far-2", term("db", namespaces=["b"]), namespace="c")
    lister = cluster(*NODES, LOOKS_OUT, more)

    assert hits(build(NAME), None, more, lister) == {"b"}


def test_relabelled_namespace_gives_the_keys_that_it_joins_and_parts() -> None:
    wide = pod("wide", term("db", among={"matchLabels": RED}), namespace="c")
    red, blue = make_namespace("b", labels=RED), make_namespace("b", labels=BLUE)
    strategy = build(NAME)

    assert hits(strategy, blue, red, cluster(*NODES, wide, red)) == {"b", "c"}
    assert hits(strategy, red, blue, cluster(*NODES, wide, blue)) == {"b", "c"}
    upstream = build(NAME, corrections=ALL - SCOPE)
    assert hits(upstream, blue, red, cluster(*NODES, wide, red)) == set()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(pod("b"), None, id="the-other-went"),
        pytest.param(pod("b"), pod("b", phase="Failed"), id="the-other-failed"),
        pytest.param(pod("b"), pod("b", app="db"), id="the-other-was-relabelled"),
        pytest.param(pod("b"), pod("b", deleted="2026-01-01T00:30:00Z"), id="the-other-goes"),
        pytest.param(pod("a", WEB), pod("a", WEB, annotations=STAY), id="who-may-want-to-stay"),
        pytest.param(make_node("n1"), make_node("n1", ready=False), id="the-node-left"),
        pytest.param(make_node("n1"), None, id="the-node-went"),
    ],
)
def test_conflict_is_looked_at_again_when_it_may_have_ended(
    old: Manifest, new: Manifest | None
) -> None:
    said = evaluate(build(NAME), view_of(cluster(*NODES, pod("a", WEB), pod("b"))))

    assert said.names == ["a"]
    assert wakes_on(said, changed(old, new))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(pod("b", node="n2"), None, True, id="the-other-went"),
        pytest.param(pod("b", node="n2"), pod("b", node="n2", app="x"), True, id="other-labels"),
        pytest.param(
            pod("b", node="n2"), pod("b", node="n2", restarts=1), False, id="something-else"
        ),
        pytest.param(
            pod("b", node="n2"),
            pod("b", node="n2", deleted="2026-01-01T00:30:00Z"),
            True,
            id="the-other-goes",
        ),
        pytest.param(ZONED[1], make_node("n2", labels={"zone": "b"}), True, id="another-zone"),
        pytest.param(
            ZONED[1], make_node("n2", labels={"zone": "a", "x": ""}), False, id="another-label"
        ),
        pytest.param(ZONED[1], None, True, id="the-node-went"),
        pytest.param(pod("c"), None, False, id="a-third-pod"),
    ],
)
def test_cause_breaks_when_one_of_both_is_no_longer_what_it_was(
    old: Manifest, new: Manifest | None, expected: bool
) -> None:
    strategy = build(NAME)
    objects = (*ZONED, pod("a", term("web", key="zone")), pod("b", node="n2"))
    cause = evaluate(strategy, view_of(cluster(*objects))).candidates[0].cause

    assert strategy.breaks(cause, changed(old, new)) is expected
