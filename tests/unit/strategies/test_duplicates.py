"""RemoveDuplicates."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from pydantic import ValidationError

from reactive_descheduler.api.changes import Key
from reactive_descheduler.api.eviction import Stop, Verdict
from reactive_descheduler.api.scheduling.fit import misfit
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.store import Store
from reactive_descheduler.config.corrections import ALL, NONE, Corrections
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
    view,
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

NAME = "RemoveDuplicates"


def placed(counts: Mapping[str, int], **pod: object) -> list[Manifest]:
    """Return so many Pods of one owner on each node, named after it: `n1-0`, `n1-1`, …"""
    return [
        make_pod(f"{node}-{number}", node=node, **pod)  # type: ignore[arg-type]
        for node, count in counts.items()
        for number in range(count)
    ]


def nodes(count: int, **rest: object) -> list[Manifest]:
    return [make_node(f"n{number}", **rest) for number in range(1, count + 1)]  # type: ignore[arg-type]


EVERY = pytest.mark.parametrize("corrections", [NONE, ALL], ids=["none", "all"])


@EVERY
@pytest.mark.parametrize(
    ("counts", "gone"),
    [
        pytest.param({"n1": 3, "n2": 0}, {"n1": 1}, id="three-of-three-on-one-of-two"),
        pytest.param({"n1": 5, "n2": 3, "n3": 1}, {"n1": 2}, id="five-three-one"),
        pytest.param({"n1": 2, "n2": 0, "n3": 0}, {"n1": 1}, id="two-together"),
        pytest.param({"n1": 2, "n2": 2}, {}, id="even"),
        pytest.param({"n1": 2, "n2": 1}, {}, id="as-even-as-can-be"),
        pytest.param({"n1": 1, "n2": 1, "n3": 0}, {}, id="no-duplicates"),
        pytest.param({"n1": 4, "n2": 1, "n3": 1}, {"n1": 2}, id="four-one-one"),
    ],
)
def test_pods_above_the_average_go(
    counts: dict[str, int], gone: dict[str, int], corrections: Corrections
) -> None:
    said = run(NAME, {}, *nodes(len(counts)), *placed(counts), corrections=corrections)
    assert Counter(each.pod.node_name for each in said.candidates) == gone


@EVERY
def test_the_first_pods_of_a_node_stay_and_fuller_nodes_come_first(
    corrections: Corrections,
) -> None:
    counts = {"n1": 3, "n2": 4, "n3": 3, "n4": 0, "n5": 0}
    said = run(NAME, {}, *nodes(5), *placed(counts), corrections=corrections)
    assert said.names == ["n2-2", "n2-3", "n1-2", "n3-2"]
    assert said.candidates[0].reason == (
        "node n2 has 4 Pods of ReplicaSet web, 2 would do on 5 nodes"
    )


TWO_OWNERS = [owner("web"), owner("also", controller=False)]


@EVERY
@pytest.mark.parametrize(
    ("pods", "gone"),
    [
        pytest.param(
            [make_pod("a", node="n1", images=["x"]), make_pod("b", node="n1", images=["y"])],
            [],
            id="other-images",
        ),
        pytest.param(
            [make_pod("a", node="n1", images=["x"]), make_pod("b", node="n1", images=["x", "y"])],
            [],
            id="one-image-more",
        ),
        pytest.param(
            [
                make_pod("a", node="n1", images=["x", "y"]),
                make_pod("b", node="n1", images=["y", "x"]),
            ],
            ["b"],
            id="the-same-images-in-another-order",
        ),
        pytest.param(
            [make_pod("a", node="n1"), make_pod("b", node="n1", owners=[owner("web", kind="Job")])],
            [],
            id="owners-of-another-kind",
        ),
        pytest.param(
            [make_pod("a", node="n1"), make_pod("b", node="n1", namespace="other")],
            [],
            id="owners-of-another-namespace",
        ),
        pytest.param(
            [make_pod("a", node="n1"), make_pod("b", node="n1", owners=TWO_OWNERS)],
            [],
            id="only-one-owner-of-two-is-the-same",
        ),
        pytest.param(
            [make_pod("a", node="n1"), make_pod("b", node="n1", owners=[owner("web", uid="new")])],
            ["b"],
            id="an-owner-that-came-back-by-its-name",
        ),
        pytest.param(
            [make_pod("a", node="n1", owners=[]), make_pod("b", node="n1", owners=[])],
            [],
            id="bare-pods",
        ),
        pytest.param(
            [make_pod("a", node="n1"), make_pod("b", node="n1", phase="Failed")],
            [],
            id="a-failed-pod-is-none",
        ),
        pytest.param(
            [make_pod("a", node="n1"), make_pod("b", node="n1", deleted="2026-01-01T00:00:00Z")],
            [],
            id="a-terminating-pod-is-none",
        ),
        pytest.param(
            [make_pod("a", node="n1"), make_pod("b", node="")], [], id="an-unbound-pod-is-none"
        ),
    ],
)
def test_duplicates_have_the_same_owners_and_images(
    pods: list[Manifest], gone: list[str], corrections: Corrections
) -> None:
    assert run(NAME, {}, *nodes(2), *pods, corrections=corrections).names == gone


@pytest.mark.parametrize(
    ("arguments", "gone"),
    [
        pytest.param({}, ["n1-1", "n1-1"], id="default"),
        pytest.param({"namespaces": {"include": ["other"]}}, ["n1-1"], id="include"),
        pytest.param({"namespaces": {"exclude": ["other", "default"]}}, [], id="exclude"),
        pytest.param({"excludeOwnerKinds": ["ReplicaSet"]}, [], id="kind"),
        pytest.param({"excludeOwnerKinds": ["replicaset"]}, ["n1-1", "n1-1"], id="kind-as-is"),
    ],
)
def test_arguments_say_whose_pods_are_looked_at(
    arguments: dict[str, object], gone: list[str]
) -> None:
    pods = [*placed({"n1": 2}), *placed({"n1": 2}, namespace="other")]
    assert run(NAME, arguments, *nodes(2), *pods).names == gone


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        pytest.param({"labelSelector": {}}, "labelSelector", id="no-label-selector"),
        pytest.param({"excludeOwnerKinds": "Job"}, "excludeOwnerKinds", id="text-for-a-list"),
        pytest.param({"excludeOwnerKinds": [1]}, "excludeOwnerKinds", id="number-for-a-kind"),
        pytest.param(
            {"namespaces": {"include": ["a"], "exclude": ["b"]}}, "namespaces", id="both-lists"
        ),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, object], field: str) -> None:
    with pytest.raises(ValidationError, match=field):
        build(NAME, arguments)


def test_two_owners_are_looked_at_one_after_the_other() -> None:
    pods = placed({"n1": 5, "n2": 3, "n3": 1}, owners=TWO_OWNERS)
    assert len(run(NAME, {}, *nodes(3), *pods).candidates) == 4  # as upstream: each twice


FAR = [taint("gpu")]


@EVERY
@pytest.mark.parametrize(
    ("others", "pod", "gone"),
    [
        pytest.param([make_node("n2", taints=FAR), make_node("n3")], {}, 1, id="tainted"),
        pytest.param([make_node("n2", taints=FAR)], {}, 0, id="one-left"),
        pytest.param(
            [make_node("n2", taints=FAR), make_node("n3")],
            {"tolerations": [{"key": "gpu", "operator": "Exists"}]},
            2,
            id="tolerated",
        ),
        pytest.param(
            [make_node("n2", labels={"zone": "b"}), make_node("n3")],
            {"node_selector": {"zone": "b"}},
            0,
            id="selector-matches-one",
        ),
        pytest.param([make_node("n2", ready=False), make_node("n3")], {}, 1, id="not-ready"),
    ],
)
def test_only_nodes_that_the_pods_accept_count(
    others: list[Manifest], pod: dict[str, object], gone: int, corrections: Corrections
) -> None:
    pods = placed({"n1": 3}, **pod)
    said = run(NAME, {}, make_node("n1"), *others, *pods, corrections=corrections)
    assert len(said.candidates) == gone


COUNTING = frozenset(each for each in ALL if each == "duplicatesCounting")
ROOM = frozenset(each for each in ALL if each == "duplicatesRoom")
BOTH = COUNTING | ROOM
PROTECTED: dict[str, object] = {"priority": 2_000_000_000}


@pytest.mark.parametrize(
    ("counts", "protected", "corrections", "gone"),
    [
        # Upstream sees two Pods and two nodes.
        ({"n1": 2, "n2": 0}, {"n2": 2}, NONE, ["n1-1"]),
        ({"n1": 2, "n2": 0}, {"n2": 2}, COUNTING, []),
        ({"n1": 2}, {"n1": 2}, NONE, ["n1-1"]),
        ({"n1": 2}, {"n1": 2}, COUNTING, ["n1-0", "n1-1"]),
        ({"n1": 1}, {"n1": 3}, NONE, []),
        ({"n1": 1}, {"n1": 3}, COUNTING, ["n1-0"]),
    ],
)
def test_protected_pods_count_but_stay(
    counts: dict[str, int], protected: dict[str, int], corrections: Corrections, gone: list[str]
) -> None:
    stay = [
        make_pod(f"{node}-stays-{number}", node=node, priority=2_000_000_000)
        for node, count in protected.items()
        for number in range(count)
    ]
    said = run(NAME, {}, *nodes(2), *placed(counts), *stay, corrections=corrections)
    assert said.names == gone


def test_of_protected_duplicates_as_many_are_told_as_should_go() -> None:
    pods = placed({"n1": 4}, **PROTECTED)
    said = run(NAME, {}, *nodes(2), *pods, corrections=COUNTING)
    assert said.names == []
    assert said.refused == {"n1-2": "SystemCriticalPods", "n1-3": "SystemCriticalPods"}


def test_another_goes_for_one_that_fits_nowhere_else() -> None:
    zoned = {"node_selector": {"zone": "a"}}
    pods = [
        make_pod("a", node="n1"),
        make_pod("b", node="n1"),
        make_pod("c", node="n1", **zoned),  # type: ignore[arg-type]
    ]
    said = run(
        NAME,
        {},
        make_node("n1", labels={"zone": "a"}),
        make_node("n2"),
        *pods,
        evictor={"nodeFit": True},
        corrections=COUNTING,
    )
    assert said.names == ["b"]


def with_room(*free: int | None) -> list[Manifest]:
    """Return nodes that take so many Pods; None for one that is cordoned."""
    return [
        make_node(
            f"n{number}",
            allocatable={"cpu": "4", "memory": "8Gi", "pods": str(slots or 0)},
            unschedulable=slots is None,
        )
        for number, slots in enumerate(free, 1)
    ]


@pytest.mark.parametrize(
    ("free", "counts", "upstream", "ours"),
    [
        pytest.param((9, 0, 1), {"n1": 4}, 2, 1, id="room-for-one"),
        pytest.param((9, 9, 0), {"n1": 3, "n2": 3}, 2, 0, id="fuller-nodes-are-no-place-to-go"),
        pytest.param((9, 9, 0, 0), {"n1": 4}, 3, 2, id="an-empty-node-takes-more-than-average"),
        pytest.param((9, None, 9), {"n1": 3}, 2, 1, id="cordoned"),
        pytest.param((9, 9, None), {"n1": 3, "n2": 3}, 2, 0, id="cordoned-and-even"),
        pytest.param((9, 9, 9), {"n1": 5, "n2": 0}, 3, 3, id="room-for-all"),
    ],
)
def test_no_more_go_than_nodes_with_fewer_have_room_for(
    free: Sequence[int | None], counts: dict[str, int], upstream: int, ours: int
) -> None:
    objects = [*with_room(*free), *placed(counts)]
    assert len(run(NAME, {}, *objects, corrections=NONE).candidates) == upstream
    for corrections in (ROOM, BOTH, ALL):
        assert len(run(NAME, {}, *objects, corrections=corrections).candidates) == ours


@pytest.mark.parametrize(
    ("when", "gone"), [("ScheduleAnyway", 4), ("DoNotSchedule", 2)], ids=["soft", "hard"]
)
def test_a_node_takes_one_more_only_where_a_hard_constraint_counts_them(
    when: str, gone: int
) -> None:
    constraint = {
        "maxSkew": 9,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    objects = [*with_room(9, 9, 9), *placed({"n1": 6}, spread=[constraint])]
    assert len(run(NAME, {}, *objects, corrections=ROOM).candidates) == gone


@pytest.mark.parametrize(
    ("corrections", "gone"),
    [
        pytest.param(NONE, ["d"], id="none"),
        pytest.param(COUNTING, ["c", "d"], id="counting"),
        pytest.param(ROOM, ["d"], id="room"),
        pytest.param(BOTH, ["d"], id="both"),
    ],
)
def test_counting_all_and_looking_for_room_go_together(
    corrections: Corrections, gone: list[str]
) -> None:
    pods = [make_pod(name, node="n1", priority=2_000_000_000) for name in "ab"]
    pods += [make_pod(name, node="n1") for name in "cd"]
    assert run(NAME, {}, *with_room(9, 1), *pods, corrections=corrections).names == gone


def test_lack_of_room_is_told_of_the_key_and_wakes_it() -> None:
    said = run(NAME, {}, *with_room(9, 0), *placed({"n1": 2}))
    assert [(each.pod, each.reason) for each in said.rejections] == [
        (None, "ReplicaSet web: the nodes with fewer of them have no room for all that should go")
    ]
    full, roomy = with_room(9, 0)[1], with_room(9, 5)[1]
    assert wakes_on(said, changed(full, roomy))


def test_node_fit_that_is_written_off_looks_for_no_room() -> None:
    said = run(NAME, {}, *with_room(9, 0), *placed({"n1": 2}), evictor={"nodeFit": False})
    assert said.names == ["n1-1"]


def test_pods_with_anti_affinity_go_one_to_a_node() -> None:
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {"matchLabels": {"app": "web"}},
                    "topologyKey": "kubernetes.io/hostname",
                }
            ]
        }
    }
    hosts = [make_node(f"n{n}", labels={"kubernetes.io/hostname": f"n{n}"}) for n in (1, 2, 3)]
    said = run(NAME, {}, *hosts, *placed({"n1": 9}, affinity=apart))
    assert len(said.candidates) == 2


@pytest.mark.parametrize(
    ("stop", "gone"),
    [
        pytest.param(Stop.NO, ["n1-1", "n1-2", "n2-1", "n2-2"], id="none"),
        pytest.param(Stop.NODE, ["n1-1", "n2-1"], id="node"),
        pytest.param(Stop.ALL, ["n1-1"], id="all"),
    ],
)
def test_limits_stop_a_node_or_the_pass(stop: Stop, gone: list[str]) -> None:
    lister = cluster(*nodes(9), *placed({"n1": 3, "n2": 3}))
    said = sweep(build(NAME), view_of(lister), lambda _: Verdict(taken=False, stop=stop))
    assert said.names == gone


# Keys and triggers


def units(lister: Lister) -> set[tuple[str, ...]]:
    return {key.unit for key in build(NAME).keys_of(lister)}


WEB, ALSO, JOINT = ("ReplicaSet/web",), ("ReplicaSet/also",), ("ReplicaSet/also", "ReplicaSet/web")


def test_a_key_is_a_set_of_owners() -> None:
    lister = cluster(
        make_pod("a", node="n1"),
        make_pod("b", node="n1", owners=TWO_OWNERS),
        make_pod("c", node="n1", namespace="other"),
        make_pod("bare", node="n1", owners=[]),
    )
    assert units(lister) == {
        ("default", *WEB),
        ("default", *ALSO),
        ("default", *JOINT),
        ("other", *WEB),
    }


def test_a_joint_pod_is_offered_once_and_by_one_key() -> None:
    pods = [*placed({"n1": 3}, owners=TWO_OWNERS), make_pod("z", node="n2")]
    lister = cluster(*nodes(3), *pods)
    strategy = build(NAME)
    offered = {
        key.unit: evaluate(strategy, view_of(lister), *key.unit).names
        for key in strategy.keys_of(lister)
    }
    assert offered == {
        ("default", *WEB): [],
        ("default", *ALSO): [],
        ("default", *JOINT): ["n1-1", "n1-2"],
    }


def test_a_change_concerns_every_key_that_counts_the_pod() -> None:
    lister = cluster(make_pod("a"), make_pod("b", owners=TWO_OWNERS), make_pod("c", namespace="x"))
    bound = changed(make_pod("a"), make_pod("a", node="n1", version="2"))
    assert units_hit(build(NAME), bound, lister) == {("default", *WEB), ("default", *JOINT)}


def test_a_pod_that_changes_owners_concerns_old_and_new() -> None:
    change = changed(make_pod("a", node="n1"), make_pod("a", node="n1", owners=[owner("also")]))
    assert units_hit(build(NAME), change, cluster()) == {("default", *WEB), ("default", *ALSO)}


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(make_pod("a", node="n1", images=["app:2"]), id="image"),
        pytest.param(make_pod("a", node="n1", deleted="2026-01-01T00:00:00Z"), id="terminating"),
        pytest.param(make_pod("a", node="n1", phase="Failed"), id="failed"),
        pytest.param(None, id="gone"),
        pytest.param(make_pod("a", node="n1", labels={}), id="labels"),
        pytest.param(make_pod("a", node="n1", tolerations=[{"key": "gpu"}]), id="tolerations"),
    ],
)
def test_what_counts_is_looked_at_when_it_changes(after: Manifest | None) -> None:
    change = changed(make_pod("a", node="n1"), after)
    assert units_hit(build(NAME), change, cluster()) == {("default", *WEB)}


def test_a_restart_concerns_nobody() -> None:
    change = changed(make_pod("a", node="n1"), make_pod("a", node="n1", restarts=9))
    assert units_hit(build(NAME), change, cluster()) == set()


@EVERY
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(None, make_node("n9"), id="added"),
        pytest.param(make_node("n9"), None, id="removed"),
        pytest.param(make_node("n9", taints=FAR), make_node("n9"), id="taint"),
        pytest.param(make_node("n9", unschedulable=True), make_node("n9"), id="cordon"),
        pytest.param(make_node("n9", labels={"a": "b"}), make_node("n9"), id="labels"),
    ],
)
def test_any_node_wakes_a_key_with_duplicates_and_no_other(
    old: Manifest | None, new: Manifest | None, corrections: Corrections
) -> None:
    even, apart = placed({"n1": 2, "n2": 2}), placed({"n1": 1, "n2": 1}, namespace="other")
    lister = cluster(*nodes(2), *even, *apart)
    strategy = build(NAME, corrections=corrections)
    woken = {
        key.unit[0]
        for key in strategy.keys_of(lister)
        if wakes_on(
            evaluate(strategy, view_of(lister, corrections=corrections), *key.unit),
            changed(old, new),
        )
    }
    assert woken == {"default"}


def test_a_key_counts_the_pods_of_its_owners() -> None:
    strategy = build(NAME)
    key = Key(0, NAME, ("default", *JOINT))
    assert strategy.HOLDS is Holds.COUNTED
    assert strategy.PHASE is Phase.BALANCE
    counted = [
        pod_view(make_pod()),
        pod_view(make_pod(owners=TWO_OWNERS)),
        pod_view(make_pod(namespace="other")),
        pod_view(make_pod(owners=[owner("third")])),
        pod_view(make_pod(owners=[])),
    ]
    assert [strategy.counts(key, pod, cluster()) for pod in counted] == [
        True,
        True,
        False,
        False,
        False,
    ]


# Random clusters


def random_cluster(seed: int) -> list[Manifest]:
    draw = random.Random(seed)
    count = draw.randint(2, 5)
    found = [
        make_node(
            f"n{number}",
            allocatable={"cpu": "4", "memory": "8Gi", "pods": str(draw.choice((1, 3, 5, 20)))},
            taints=draw.choice(([], [], [], FAR)),
            labels=draw.choice(({}, {"zone": "a"})),
            unschedulable=draw.random() < 0.1,
            ready=draw.random() < 0.9,
        )
        for number in range(1, count + 1)
    ]
    kinds: list[list[Manifest]] = [[owner("a")], [owner("b")], [owner("a"), owner("b")]]
    found += [
        make_pod(
            f"p{number}",
            namespace=draw.choice(("x", "x", "x", "y")),
            node=f"n{min(draw.randint(1, count) for _ in range(2))}",
            owners=draw.choices(kinds, (4, 4, 1))[0],
            images=[draw.choice(("app:1", "app:1", "app:2"))],
            priority=draw.choice((0, 0, 0, 2_000_000_000)),
            tolerations=draw.choice(([], [], [{"key": "gpu", "operator": "Exists"}])),
            node_selector=draw.choice(({}, {}, {}, {"zone": "a"})),
            requests={"cpu": draw.choice(("100m", "1"))},
        )
        for number in range(draw.randint(2, 16))
    ]
    return found


@EVERY
@pytest.mark.parametrize("evictor", [{}, {"nodeFit": True}], ids=["", "node-fit"])
def test_keys_offer_what_a_pass_offers(
    corrections: Corrections, evictor: dict[str, object]
) -> None:
    offered = 0
    for seed in range(150):
        said = run(NAME, {}, *random_cluster(seed), evictor=evictor, corrections=corrections)
        offered += len(said.candidates)
    assert offered > 50


def one_owner(draw: random.Random) -> list[Manifest]:
    """Return a cluster with one owner's Pods, and some of others that only take room."""
    count = draw.randint(2, 6)
    slots = [draw.choice((0, 1, 2, 3, 5, 20)) for _ in range(count)]
    found: list[Manifest] = []
    for number in range(draw.randint(2, 14)):
        place = min(draw.randrange(count) for _ in range(2))
        slots[place] = max(slots[place], sum(f"n{place}" == node_of(each) for each in found) + 1)
        found.append(
            make_pod(f"p{number}", node=f"n{place}", priority=draw.choice((0,) * 5 + (2 * 10**9,)))
        )
    for place, room in enumerate(slots):
        found.append(
            make_node(
                f"n{place}",
                allocatable={"cpu": "4", "memory": "8Gi", "pods": str(room)},
                unschedulable=draw.random() < 0.15,
                taints=FAR if draw.random() < 0.1 else [],
            )
        )
    return found


def node_of(pod: Manifest) -> object:
    spec = pod["spec"]
    assert isinstance(spec, dict)
    return spec["nodeName"]


@pytest.mark.parametrize("evictor", [{}, {"nodeFit": True}], ids=["", "node-fit"])
def test_pods_that_were_placed_anew_are_not_evicted_again(evictor: dict[str, object]) -> None:
    """No circles: the scheduler takes any node that fits and holds fewer than a node may keep."""
    evicted = 0
    for seed in range(400):
        draw = random.Random(seed)
        store = cluster_store(*one_owner(draw))
        new: set[str] = set()
        for turn in range(4):
            said = sweep(build(NAME, evictor=evictor), view_of(Lister(store), evictor=evictor))
            assert new.isdisjoint(said.names), f"seed {seed}"
            evicted += len(said.candidates)
            new |= replaced(store, said, draw, turn)
        assert not said.candidates, f"seed {seed}: never at rest"
    assert evicted > 200


def replaced(store: Store, said: Said, draw: random.Random, turn: int) -> set[str]:
    """Delete the victims and bind a replacement for each; return the names of these."""
    lister = Lister(store)
    for candidate in said.candidates:
        store.remove(candidate.pod)
    names = set()
    for number, candidate in enumerate(said.candidates):
        level = int(candidate.reason.split(" would do")[0].rsplit(" ", 1)[1])
        pod = pod_view(make_pod(f"new-{turn}-{number}"))
        counts = Counter(each.node_name for each in lister.pods() if each.active)
        places = [
            node.name
            for node in lister.nodes()
            if misfit(pod, node, lister) is None and counts[node.name] < level
        ]
        assert places, "a victim without a place to go"
        store.put(view(make_pod(pod.name, node=draw.choice(places))))
        names.add(pod.name)
    return names
