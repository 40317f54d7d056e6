"""The table of strategies."""

from __future__ import annotations

from reactive_descheduler.strategies import IN_TREE, PLUGINS

DESCHEDULE = {
    "PodLifeTime",
    "RemoveFailedPods",
    "RemovePodsHavingTooManyRestarts",
    "RemovePodsViolatingInterPodAntiAffinity",
    "RemovePodsViolatingNodeAffinity",
    "RemovePodsViolatingNodeTaints",
}
BALANCE = {
    "HighNodeUtilization",
    "LowNodeUtilization",
    "RemoveDuplicates",
    "RemovePodsViolatingTopologySpreadConstraint",
}


def test_all_strategies_of_upstream_are_known_in_their_phase() -> None:
    points = {name: set(spec.extension_points) for name, spec in PLUGINS.items()}

    assert points == {
        **{name: {"deschedule"} for name in DESCHEDULE},
        **{name: {"balance"} for name in BALANCE},
    }


def test_what_is_built_has_arguments_and_stands_in_order_of_urgency() -> None:
    built = set(PLUGINS)

    assert built == {each.spec.name for each in IN_TREE}
    assert [each.urgency for each in IN_TREE] == sorted(each.urgency for each in IN_TREE)
