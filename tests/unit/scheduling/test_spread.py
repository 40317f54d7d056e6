"""The scheduler's arithmetic of topology spread, on small clusters."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from reactive_descheduler.api.scheduling.spread import HARD, SOFT, spread_misfit, spreads
from reactive_descheduler.cache.gone import GonePods
from reactive_descheduler.cache.promised import PromisedPods
from tests.builders import Manifest, cluster, make_node, make_pod, node_view, pod_view, taint

ZONE = "zone"
HOST = "kubernetes.io/hostname"


def rule(key: str = ZONE, skew: int = 1, **more: object) -> Manifest:
    return {
        "topologyKey": key,
        "maxSkew": skew,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        **more,
    }


def zoned(*zones: str) -> list[Manifest]:
    return [make_node(f"{zone}1", labels={ZONE: zone}) for zone in zones]


def standing(**on: int) -> list[Manifest]:
    """Return so many Pods on the first node of each zone."""
    return [
        make_pod(f"{zone}-{number}", node=f"{zone}1", spread=[rule()])
        for zone, pods in on.items()
        for number in range(pods)
    ]


class Case(NamedTuple):
    id: str
    objects: list[Manifest]
    pod: Manifest
    fits: dict[str, bool]
    """By name of node."""


CASES = (
    Case(
        "the-domain-may-exceed-the-least-by-max-skew",
        [*zoned("a", "b"), *standing(a=1, b=0)],
        make_pod(spread=[rule()]),
        {"a1": False, "b1": True},
    ),
    Case(
        "a-wider-skew",
        [*zoned("a", "b"), *standing(a=1, b=0)],
        make_pod(spread=[rule(skew=2)]),
        {"a1": True, "b1": True},
    ),
    Case(
        "with-fewer-domains-than-wanted-the-least-is-empty",
        [*zoned("a", "b"), *standing(a=1, b=1)],
        make_pod(spread=[rule(minDomains=3)]),
        {"a1": False, "b1": False},
    ),
    Case(
        "terminating-finished-and-other-pods-do-not-count",
        [
            *zoned("a", "b"),
            make_pod("going", node="a1", deleted="2026-01-01T00:00:00Z"),
            make_pod("done", node="a1", phase="Succeeded"),
            make_pod("other", node="a1", labels={"app": "db"}),
            make_pod("elsewhere", node="a1", namespace="other"),
            make_pod("unbound"),
        ],
        make_pod(spread=[rule()]),
        {"a1": True},
    ),
    Case(
        "a-pod-that-its-own-rule-does-not-select-adds-nothing",
        [*zoned("a", "b"), *standing(a=1)],
        make_pod(spread=[rule()], labels={"app": "db"}),
        {"a1": True},
    ),
    Case(
        "a-node-without-the-label-never-fits",
        [*zoned("a"), make_node("bare")],
        make_pod(spread=[rule()]),
        {"a1": True, "bare": False},
    ),
    Case(
        "a-node-without-one-of-the-keys-is-in-no-domain",
        [*zoned("a", "b"), make_node("c1", labels={ZONE: "c"}), *standing(a=1, b=1)],
        make_pod(spread=[rule(), rule("rack", skew=9)]),
        {"a1": False},
    ),
    Case(
        "nodes-that-selectors-exclude-are-no-domains",
        [*zoned("a", "b"), *standing(a=1)],
        make_pod(spread=[rule()], node_selector={ZONE: "a"}),
        {"a1": True},
    ),
    Case(
        "unless-the-policy-ignores-selectors",
        [*zoned("a", "b"), *standing(a=1)],
        make_pod(spread=[rule(nodeAffinityPolicy="Ignore")], node_selector={ZONE: "a"}),
        {"a1": False},
    ),
    Case(
        "tainted-nodes-are-domains",
        [*zoned("a"), make_node("b1", labels={ZONE: "b"}, taints=[taint()]), *standing(a=1)],
        make_pod(spread=[rule()]),
        {"a1": False},
    ),
    Case(
        "unless-the-policy-honours-taints",
        [*zoned("a"), make_node("b1", labels={ZONE: "b"}, taints=[taint()]), *standing(a=1)],
        make_pod(spread=[rule(nodeTaintsPolicy="Honor")]),
        {"a1": True},
    ),
    Case(
        "label-keys-narrow-the-selector",
        [*zoned("a", "b"), *standing(a=1)],
        make_pod(
            spread=[rule(matchLabelKeys=["rev", "missing"])], labels={"app": "web", "rev": "2"}
        ),
        {"a1": True},
    ),
    Case(
        "soft-rules-forbid-nothing",
        [*zoned("a", "b"), *standing(a=5)],
        make_pod(spread=[rule(whenUnsatisfiable="ScheduleAnyway")]),
        {"a1": True},
    ),
    Case(
        "a-rule-without-selector-counts-nothing",
        [*zoned("a", "b"), *standing(a=5)],
        make_pod(spread=[rule(labelSelector=None)]),
        {"a1": True},
    ),
    Case(
        "but-even-so-a-node-needs-the-label",
        [*zoned("a"), make_node("bare")],
        make_pod(spread=[rule(labelSelector=None)]),
        {"a1": True, "bare": False},
    ),
    Case(
        "an-empty-selector-counts-nobody-either",
        [*zoned("a", "b"), make_node("bare"), *standing(a=5)],
        make_pod(spread=[rule(labelSelector={}, minDomains=3)]),
        {"a1": True, "bare": False},
    ),
    Case(
        "unless-label-keys-narrow-it",
        [*zoned("a", "b"), *standing(a=5)],
        make_pod(spread=[rule(labelSelector={}, matchLabelKeys=["app"])]),
        {"a1": False},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_a_node_fits_if_no_hard_rule_of_the_pods_own_is_broken(case: Case) -> None:
    lister = cluster(*case.objects)
    new = pod_view(case.pod)
    for name, fits in case.fits.items():
        node = lister.node(name)
        assert node is not None
        found = spread_misfit(new, node, lister, leaving=None)
        assert (found is None) == fits, (name, found)


def test_the_pod_that_leaves_is_not_counted() -> None:
    lister = cluster(*zoned("a", "b"), *standing(a=2, b=1))
    pod, node = lister.pod("uid-default-a-0"), lister.node("a1")
    assert pod is not None
    assert node is not None
    assert spread_misfit(pod, node, lister, leaving=None) is not None
    assert spread_misfit(pod, node, lister, leaving=pod) is None


def test_the_least_falls_with_the_pod_that_leaves() -> None:
    lister = cluster(*zoned("a", "b"), *standing(a=1, b=1))
    pod, node = lister.pod("uid-default-a-0"), lister.node("b1")
    assert pod is not None
    assert node is not None
    assert spread_misfit(pod, node, lister, leaving=None) is None
    assert spread_misfit(pod, node, lister, leaving=pod) == "topology spread over zone: skew 2 in b"


def test_a_pod_that_counts_as_gone_leaves_only_once() -> None:
    lister = cluster(*zoned("a", "b"), *standing(a=2, b=1))
    pod, node = lister.pod("uid-default-a-0"), lister.node("a1")
    assert pod is not None
    assert node is not None
    gone = lister.less(GonePods([pod]))
    assert spread_misfit(pod, node, gone, leaving=pod) is None
    counted = gone.spread_counts("default", spreads(pod.template, HARD)[0])
    assert (counted.counts, counted.least) == ({"a": 1, "b": 1}, 1)


def test_whoever_is_promised_room_is_counted_there_except_for_itself() -> None:
    lister = cluster(*zoned("a", "b"), *standing(a=2))
    first, second = lister.pod("uid-default-a-0"), lister.pod("uid-default-a-1")
    node = lister.node("b1")
    assert first is not None
    assert second is not None
    assert node is not None
    promised = PromisedPods()
    promised.promise(first, "b1")
    seen = lister.less(GonePods([first]), promised)
    assert spread_misfit(second, node, seen, leaving=second) is not None
    assert spread_misfit(first, node, seen, leaving=None) is None


def test_rules_of_one_content_are_one_object() -> None:
    one = pod_view(make_pod(spread=[rule()], images=["a"]))
    other = pod_view(make_pod(spread=[rule()], images=["b"]))
    assert one.template is not other.template
    assert spreads(one.template, HARD)[0] is spreads(other.template, HARD)[0]
    assert spreads(one.template, SOFT) == ()


def test_counts_follow_a_node_that_changes_its_zone() -> None:
    lister = cluster(*zoned("a", "b"), *standing(a=1))
    found = spreads(pod_view(make_pod(spread=[rule()])).template, HARD)[0]
    assert lister.spread_counts("default", found).counts == {"a": 1}
    lister._store.put(node_view(make_node("a1", version="2", labels={ZONE: "c"})))
    counted = lister.spread_counts("default", found)
    assert (counted.counts, counted.least, dict(counted.domains.of_node)) == (
        {"c": 1},
        0,
        {"a1": "c", "b1": "b"},
    )
