"""Profiles are assembled from a policy."""

from __future__ import annotations

import pytest

from reactive_descheduler.api.errors import PolicyError
from reactive_descheduler.app.policy import (
    in_tree_registry,
    needed_kinds,
    needs_priority_classes,
    urgencies,
)
from reactive_descheduler.config.load import load_policy
from reactive_descheduler.config.loaded import LoadedPolicy
from reactive_descheduler.strategies import IN_TREE, PLUGINS

HEAD = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles:\n"


def profile(name: str, *plugins: str, evictor: str = "{}") -> str:
    return f"""
- name: {name}
  pluginConfig:
  - name: DefaultEvictor
    args: {evictor}
  - name: RemovePodsHavingTooManyRestarts
    args: {{podRestartThreshold: 5}}
  plugins:
    deschedule: {{enabled: [{", ".join(plugins)}]}}
"""


def policy(*profiles: str) -> LoadedPolicy:
    return load_policy(HEAD + "".join(profiles), source="policy", plugins=PLUGINS)


TAINTS, RESTARTS = "RemovePodsViolatingNodeTaints", "RemovePodsHavingTooManyRestarts"


def test_profiles_and_strategies_stand_in_the_order_of_the_file() -> None:
    made = in_tree_registry().profiles(
        policy(profile("b", RESTARTS, TAINTS), profile("a", TAINTS)), priority_classes={}
    )

    assert [(each.index, each.name) for each in made] == [(0, "b"), (1, "a")]
    assert [each.NAME for each in made[0].deschedule] == [RESTARTS, TAINTS]
    assert made[0].balance == ()
    assert made[0].deschedule[1] is not made[1].deschedule[0]


PVC = "{podProtections: {extraEnabled: [PodsWithPVC], config: {PodsWithPVC: {protectedStorageClasses: [{name: gold}]}}}}"  # noqa: E501


@pytest.mark.parametrize(
    ("evictor", "claims"), [("{}", False), (PVC, True)], ids=["usual", "storage classes"]
)
def test_claims_are_watched_only_where_storage_classes_are_protected(
    evictor: str, claims: bool
) -> None:
    kinds = needed_kinds(policy(profile("a", TAINTS, evictor=evictor)))

    assert ("PersistentVolumeClaim" in kinds) is claims
    assert kinds[:4] == ("Node", "Pod", "Namespace", "PodDisruptionBudget")


NAMED = "{priorityThreshold: {name: high}}"


def test_a_priority_class_by_name_is_needed_and_must_be_there() -> None:
    found = policy(profile("a", TAINTS, evictor=NAMED))
    assert needs_priority_classes(found)
    assert not needs_priority_classes(policy(profile("a", TAINTS)))
    with pytest.raises(PolicyError, match="PriorityClass high does not exist"):
        in_tree_registry().profiles(found, priority_classes={"low": 1})
    with pytest.raises(PolicyError, match=r"did you mean high1\?") as refusal:
        in_tree_registry().profiles(found, priority_classes={"high1": 1})
    assert refusal.value.problems[0].path == "profiles[0].DefaultEvictor.priorityThreshold.name"
    with pytest.raises(PolicyError, match="above"):
        in_tree_registry().profiles(found, priority_classes={"high": 2_000_000_001})

    assert len(in_tree_registry().profiles(found, priority_classes={"high": 5})) == 1


def test_every_strategy_has_an_urgency() -> None:
    assert set(urgencies()) == {entry.spec.name for entry in IN_TREE}
