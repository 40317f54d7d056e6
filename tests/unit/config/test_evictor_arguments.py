"""Who is protected, as DefaultEvictor's arguments say it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import ValidationError

from reactive_descheduler.api.errors import PolicyError
from reactive_descheduler.config.corrections import Correction
from reactive_descheduler.config.evictor import (
    DEFAULT_PROTECTIONS,
    DefaultEvictorArguments,
    Protection,
    resolve_priority_threshold,
)

Document = dict[str, object]


@pytest.mark.parametrize(
    ("document", "off", "on"),
    [
        ({}, set(), set()),
        ({"evictLocalStoragePods": True}, {"PodsWithLocalStorage"}, set()),
        ({"evictDaemonSetPods": True}, {"DaemonSetPods"}, set()),
        ({"evictSystemCriticalPods": True}, {"SystemCriticalPods"}, set()),
        ({"evictFailedBarePods": True}, {"FailedBarePods"}, set()),
        ({"ignorePvcPods": True}, set(), {"PodsWithPVC"}),
        ({"ignorePodsWithoutPDB": True}, set(), {"PodsWithoutPDB"}),
        (
            {"podProtections": {"defaultDisabled": ["DaemonSetPods", "FailedBarePods"]}},
            {"DaemonSetPods", "FailedBarePods"},
            set(),
        ),
        (
            {"podProtections": {"extraEnabled": ["PodsWithPVC", "PodsWithResourceClaims"]}},
            set(),
            {"PodsWithPVC", "PodsWithResourceClaims"},
        ),
        (
            {"evictDaemonSetPods": False, "podProtections": {"extraEnabled": ["PodsWithoutPDB"]}},
            set(),
            {"PodsWithoutPDB"},
        ),
        ({"evictDaemonSetPods": True, "podProtections": {}}, {"DaemonSetPods"}, set()),
    ],
    ids=lambda value: repr(sorted(value) if isinstance(value, set) else value),
)
def test_protections_in_force(document: Document, off: set[str], on: set[str]) -> None:
    protections = DefaultEvictorArguments.read(document).protections
    assert protections == (DEFAULT_PROTECTIONS - set(map(Protection, off))) | set(
        map(Protection, on)
    )


@pytest.mark.parametrize("old", [True, False], ids=["old flag", "new list"])
def test_storage_classes_narrow_the_protection_of_claims(*, old: bool) -> None:
    config = {"PodsWithPVC": {"protectedStorageClasses": [{"name": "fast"}]}}
    document: Document = {"podProtections": {"config": config}, "ignorePvcPods": True}
    if not old:
        document = {"podProtections": {"extraEnabled": ["PodsWithPVC"], "config": config}}
    arguments = DefaultEvictorArguments.read(document)
    assert Protection.PVC in arguments.protections
    assert arguments.protected_storage_classes == {"fast"}


@pytest.mark.parametrize(
    "document",
    [
        {"ignorePvcPods": True},
        {"podProtections": {"defaultDisabled": ["DaemonSetPods"]}},
    ],
    ids=["old flag", "protection is off"],
)
def test_an_empty_storage_class_is_let_pass_where_upstream_does(document: Document) -> None:
    protections = document.get("podProtections", {})
    assert isinstance(protections, dict)
    config = {"PodsWithPVC": {"protectedStorageClasses": [{"name": ""}]}}
    DefaultEvictorArguments.read(document | {"podProtections": protections | {"config": config}})


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"priorityThreshold": {"value": 5, "name": "x"}}, "only one of value and name"),
        ({"priorityThreshold": {"value": 2_000_000_001}}, "2000000000"),
        ({"priorityThreshold": {"value": -3_000_000_000}}, "greater than"),
        ({"noEvictionPolicy": "mandatory"}, "Mandatory"),
        ({"evictDaemonSetPods": True, "podProtections": {"defaultDisabled": ["FailedBarePods"]}},
         "evictDaemonSetPods and podProtections"),
        ({"podProtections": {"extraEnabled": ["DaemonSetPods"]}}, "PodsWithPVC"),
        ({"podProtections": {"defaultDisabled": ["PodsWithPVC"]}}, "FailedBarePods"),
        ({"podProtections": {"extraEnabled": ["PodsWithPVC"] * 2}}, "PodsWithPVC twice"),
        ({"podProtections": {"defaultDisabled": ["DaemonSetPods"] * 2}}, "DaemonSetPods twice"),
        ({"podProtections": {"extraEnabled": ["PodsWithPVC"], "config": {
            "PodsWithPVC": {"protectedStorageClasses": [{"name": "a"}, {}]}}}},
         r"protectedStorageClasses\[1\]"),
        ({"podProtections": {"config": {"podsWithPVC": {}}}}, "podsWithPVC"),
        ({"minPodAge": 3600}, "must be a duration"),
        ({"minPodAge": "3600"}, "invalid duration"),
        ({"minReplicas": -2}, "minReplicas"),
        ({"minReplicas": "2"}, "minReplicas"),
        ({"nodeFit": "true"}, "nodeFit"),
        ({"nodefit": True}, "nodefit"),
        ({"node_fit": True}, "node_fit"),
        ({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}}, "DoesNotExist"),
    ],
    ids=repr,
)  # fmt: skip
def test_a_mistake_is_refused(document: Document, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        DefaultEvictorArguments.read(document)


def test_defaults_are_upstreams() -> None:
    arguments = DefaultEvictorArguments.read(
        {"priorityThreshold": None, "nodeFit": None, "minPodAge": None, "labelSelector": None}
    )
    assert arguments == DefaultEvictorArguments()
    assert (arguments.min_replicas, arguments.min_pod_age, arguments.no_eviction_policy) == (
        0,
        None,
        "",
    )


def test_values_are_read() -> None:
    arguments = DefaultEvictorArguments.read(
        {"minReplicas": 3.0, "minPodAge": "1h30m", "priorityThreshold": {"value": -5}}
    )
    assert arguments.min_replicas == 3
    assert arguments.min_pod_age == timedelta(minutes=90)
    assert arguments.priority_threshold.value == -5


@pytest.mark.parametrize(
    ("document", "written"),
    [
        ({}, False),
        ({"nodeFit": None}, False),
        ({"nodeFit": False}, True),
        ({"nodeFit": True}, False),
    ],
    ids=repr,
)
def test_it_is_known_whether_node_fit_was_written_as_false(
    document: Document, *, written: bool
) -> None:
    evictor = DefaultEvictorArguments.read(document)
    assert evictor.node_fit_is_written_false is written
    assert evictor.looks_elsewhere(frozenset())
    assert evictor.looks_elsewhere(frozenset({Correction.NODE_FIT_FALSE})) is not written


CLASSES = {"batch": -10, "system-cluster-critical": 2_000_000_000, "top": 2_000_001_000}


@pytest.mark.parametrize(
    ("threshold", "priority"),
    [
        (None, 2_000_000_000),
        ({}, 2_000_000_000),
        ({"value": 0}, 0),
        ({"value": 0, "name": ""}, 0),
        ({"name": "batch"}, -10),
        ({"name": "system-cluster-critical"}, 2_000_000_000),
    ],
    ids=repr,
)
def test_a_priority_threshold_is_resolved(threshold: Document | None, priority: int) -> None:
    arguments = DefaultEvictorArguments.read({"priorityThreshold": threshold})
    assert resolve_priority_threshold(arguments, CLASSES) == priority


@pytest.mark.parametrize("name", ["nope", "top"])
def test_a_priority_class_that_will_not_do_is_refused(name: str) -> None:
    # Even where it would not be applied.
    arguments = DefaultEvictorArguments.read(
        {"priorityThreshold": {"name": name}, "evictSystemCriticalPods": True}
    )
    with pytest.raises(PolicyError, match=rf"priorityThreshold.*{name}"):
        resolve_priority_threshold(arguments, CLASSES)
