"""The witness of the end-to-end tests itself: it must notice, and must not cry wolf."""

from __future__ import annotations

import pytest

from tests.e2e.api import Condition, Meta, Pod, PodSpec, PodStatus
from tests.e2e.witness import Budget, BudgetSpec, BudgetStatus, Selector, Witness

READY = Condition("Ready", "True")
EVICTED = Condition("DisruptionTarget", "True", "EvictionByEvictionAPI")


def make_pod(name: str, *conditions: Condition, terminating: bool = False) -> Pod:
    meta = Meta(name=name, namespace="ns", uid=name, labels={"app": "db", "tier": "x"})
    if terminating:
        meta.deletion_timestamp = "2026-01-01T00:00:00Z"
    return Pod(meta, PodSpec(), PodStatus(conditions=list(conditions)))


def make_budget(least: int | str, *, desired: int = 0, namespace: str = "ns") -> Budget:
    return Budget(
        Meta(name="db", namespace=namespace, uid="db"),
        BudgetSpec(Selector({"app": "db"}), least),
        BudgetStatus(desired),
    )


def judged(budget: Budget, *then: Pod) -> Witness:
    """What is made of three Ready Pods under a budget, and of what then becomes of them."""
    witness = Witness()
    witness.see_budget(budget)
    witness.see_all_pods(make_pod(name, READY) for name in "abc")
    for pod in then:
        witness.see_pod(pod)
    return witness


GOING = make_pod("a", READY, EVICTED, terminating=True)


@pytest.mark.parametrize(
    ("budget", "broken"),
    [
        (make_budget(3), True),
        (make_budget(2), False),
        (make_budget("100%", desired=3), True),
        (make_budget("50%", desired=2), False),
        (make_budget(3, namespace="other"), False),
    ],
    ids=["all needed", "two needed", "per cent", "fewer per cent", "elsewhere"],
)
def test_an_eviction_breaks_a_budget_that_needs_the_pod(budget: Budget, broken: bool) -> None:
    witness = judged(budget, make_pod("a", READY, EVICTED), GOING)
    assert bool(witness.broken) is broken
    assert [each.pod.metadata.name for each in witness.evicted("ns", "db")] == ["a"]


@pytest.mark.parametrize(
    "pods",
    [
        [make_pod("a", READY, terminating=True)],
        [make_pod("a")],
        [make_pod("a"), make_pod("a", EVICTED, terminating=True)],
    ],
    ids=["deleted", "no longer ready", "evicted while not ready"],
)
def test_what_takes_no_healthy_pod_by_eviction_breaks_nothing(pods: list[Pod]) -> None:
    assert judged(make_budget(3), *pods).broken == []


def test_a_pod_that_is_gone_in_the_moment_of_its_eviction_counts_too() -> None:
    witness = judged(make_budget(3))
    witness.see_pod(make_pod("a", READY, EVICTED), deleted=True)
    assert witness.broken == ["db: the eviction of a left 2 healthy, 3 needed"]


def test_the_second_eviction_is_judged_by_what_the_first_left() -> None:
    witness = judged(make_budget(2), GOING)
    assert witness.broken == []
    witness.see_pod(make_pod("b", READY, EVICTED, terminating=True))
    assert len(witness.broken) == 1
    assert witness.fewest == {"db": 1}


def test_pods_that_a_new_list_misses_are_gone() -> None:
    witness = judged(make_budget(2))
    witness.see_all_pods(make_pod(name, READY) for name in "ab")
    witness.see_pod(GOING)
    assert witness.fewest == {"db": 1}
