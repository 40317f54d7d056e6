"""Whatever the file holds, it is loaded or refused; nothing else is ever raised. What is loaded has
the types that are declared."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Union, cast, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from reactive_descheduler.api.errors import PolicyError, Problem
from reactive_descheduler.config.args import Arguments
from reactive_descheduler.config.corrections import ALL, NONE, Corrections
from reactive_descheduler.config.evictor import DefaultEvictorArguments
from reactive_descheduler.config.load import LoadedPolicy, PluginSpec, load_policy
from reactive_descheduler.config.yaml_lines import UnreadableError, read_document
from reactive_descheduler.strategies import PLUGINS

VALID: dict[str, object] = {
    "apiVersion": "descheduler/v1alpha2",
    "kind": "DeschedulerPolicy",
    "nodeSelector": "a=b",
    "maxNoOfPodsToEvictTotal": 5,
    "gracePeriodSeconds": 5,
    "metricsProviders": [
        {
            "source": "Prometheus",
            "prometheus": {
                "url": "http://a.example",
                "authToken": {"secretReference": {"namespace": "a", "name": "b"}},
            },
        }
    ],
    "profiles": [
        {
            "name": "p",
            "pluginConfig": [
                {
                    "name": "DefaultEvictor",
                    "args": {
                        "nodeSelector": "a",
                        "labelSelector": {
                            "matchLabels": {"a": "b"},
                            "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}],
                        },
                        "priorityThreshold": {"value": 5},
                        "minPodAge": "5m",
                        "podProtections": {
                            "defaultDisabled": ["DaemonSetPods"],
                            "extraEnabled": ["PodsWithPVC"],
                            "config": {"PodsWithPVC": {"protectedStorageClasses": [{"name": "a"}]}},
                        },
                    },
                },
                {
                    "name": "Sweep",
                    "args": {"namespaces": {"include": ["a"]}, "after": "5s", "codes": [1]},
                },
                {"name": "Count", "args": {"threshold": 5}},
                {"name": "Level"},
            ],
            "plugins": {
                "deschedule": {"enabled": ["Sweep", "Count"], "disabled": ["x"]},
                "balance": {"enabled": ["Level"]},
                "filter": {"enabled": ["DefaultEvictor"]},
                "sort": {"enabled": ["x"]},
            },
        }
    ],
    "reactive": {
        "settle": {"default": "5s", "transientTaints": ["a"]},
        "strategies": {"Sweep": {"mode": "act", "debounce": {"quiet": "1ms"}}},
        "rateLimit": {"evictionsPerSecond": 1},
        "pacing": {"maxUnavailable": "5%"},
        "brakes": {"blastRadius": {"nodes": "5%"}},
        "corrections": ["strictDocuments"],
    },
}

texts = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        ["5%", "5s", "Sweep", "Nope", "Someday", "none", "a in (", "\ud800", "http://["]
    ),
)
numbers = st.one_of(st.integers(), st.floats(), st.sampled_from([2**63, 2**64, -(10**300)]))
scalars = st.one_of(st.none(), st.booleans(), numbers, texts)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def _places(value: object) -> list[tuple[dict[object, object], object]]:
    """Return every holder and key within a value."""
    keys: list[object] = []
    if isinstance(value, dict):
        keys = list(value)
    elif isinstance(value, list):
        keys = list(range(len(value)))
    holder = cast(dict[object, object], value)
    inner = [place for key in keys for place in _places(holder[key])]
    return [(holder, key) for key in keys] + inner


@st.composite
def mutated(draw: st.DrawFn, valid: object = VALID) -> object:
    """A valid document, a few places of which hold something else, are gone or are new."""
    document = json.loads(json.dumps(valid))
    for _ in range(draw(st.integers(1, 4))):
        places = _places(document)
        if not places:
            break
        holder, key = draw(st.sampled_from(places))
        change = draw(st.sampled_from(["replace", "remove", "rename"]))
        if change == "replace":
            holder[key] = draw(values)
        elif change == "remove" or isinstance(key, int):
            del holder[key]
        else:
            holder[draw(st.text(max_size=8))] = holder.pop(key)
    return document


def _found(
    text: str, plugins: Mapping[str, PluginSpec], corrections: Corrections | None
) -> tuple[bool, Sequence[Problem]]:
    """Return whether the text is loaded, and what is said of it."""
    try:
        policy = load_policy(text, source="f", plugins=plugins, corrections=corrections)
    except PolicyError as error:
        return False, error.problems
    return True, policy.warnings


def _check(text: str, plugins: Mapping[str, PluginSpec], corrections: Corrections | None) -> None:
    is_loaded, problems = _found(text, plugins, corrections)
    assert is_loaded or problems
    lines = len(text.splitlines()) + 1
    for problem in problems:
        assert problem.message
        assert problem.line is None or 1 <= problem.line <= lines


corrections = st.sampled_from([None, ALL, NONE])


def test_the_document_to_mutate_is_valid(plugins: Mapping[str, PluginSpec]) -> None:
    is_loaded, _ = _found(json.dumps(VALID), plugins, NONE)
    assert is_loaded


@given(mutated(), corrections)
def test_a_mutated_policy_is_loaded_or_refused(
    plugins: Mapping[str, PluginSpec], document: object, corrections: Corrections | None
) -> None:
    _check(json.dumps(document, indent=1), plugins, corrections)


@given(values, corrections)
def test_any_data_is_loaded_or_refused(
    plugins: Mapping[str, PluginSpec], document: object, corrections: Corrections | None
) -> None:
    _check(json.dumps(document), plugins, corrections)


@given(st.text(), corrections)
def test_any_text_is_loaded_or_refused(
    plugins: Mapping[str, PluginSpec], text: str, corrections: Corrections | None
) -> None:
    _check(text, plugins, corrections)
    _check(f"apiVersion: descheduler/v1alpha2\n{text}", plugins, corrections)


_SELECTOR = {
    "matchLabels": {"a": "b"},
    "matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}],
}
_COMMON: dict[str, object] = {"namespaces": {"include": ["a"]}, "labelSelector": _SELECTOR}
_LEVELS = {"thresholds": {"cpu": 20, "pods": 30.5}, "numberOfNodes": 2}
_EVICTOR: dict[str, object] = {
    "nodeSelector": "a=b",
    "labelSelector": _SELECTOR,
    "namespaceLabelSelector": _SELECTOR,
    "priorityThreshold": {"value": 5},
    "nodeFit": True,
    "minReplicas": 2,
    "minPodAge": "5m",
    "noEvictionPolicy": "Mandatory",
    "podProtections": {
        "defaultDisabled": ["DaemonSetPods"],
        "extraEnabled": ["PodsWithPVC"],
        "config": {"PodsWithPVC": {"protectedStorageClasses": [{"name": "a"}]}},
    },
}
ARGUMENTS: dict[str, tuple[dict[str, object], ...]] = {
    "PodLifeTime": (
        {
            **_COMMON,
            "ownerKinds": {"exclude": ["Job"]},
            "maxPodLifeTimeSeconds": 60,
            "states": ["Running", "CrashLoopBackOff"],
            "conditions": [
                {
                    "type": "Ready",
                    "status": "False",
                    "reason": "ContainersNotReady",
                    "minTimeSinceLastTransitionSeconds": 5,
                }
            ],
            "exitCodes": [1],
            "includingInitContainers": True,
            "includingEphemeralContainers": True,
        },
    ),
    "RemoveDuplicates": ({"namespaces": {"exclude": ["a"]}, "excludeOwnerKinds": ["Job"]},),
    "RemoveFailedPods": (
        {
            **_COMMON,
            "excludeOwnerKinds": ["Job"],
            "minPodLifetimeSeconds": 60,
            "reasons": ["OOMKilled"],
            "exitCodes": [1],
            "includingInitContainers": True,
        },
    ),
    "RemovePodsHavingTooManyRestarts": (
        {
            **_COMMON,
            "podRestartThreshold": 3,
            "includingInitContainers": True,
            "states": ["Running"],
        },
    ),
    "RemovePodsViolatingInterPodAntiAffinity": (_COMMON,),
    "RemovePodsViolatingNodeAffinity": (
        {**_COMMON, "nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]},
    ),
    "RemovePodsViolatingNodeTaints": (
        {**_COMMON, "includePreferNoSchedule": True, "excludedTaints": ["a=b"]},
        {**_COMMON, "includedTaints": ["a"]},
    ),
    "RemovePodsViolatingTopologySpreadConstraint": (
        {**_COMMON, "constraints": ["DoNotSchedule"], "topologyBalanceNodeFit": False},
    ),
    "LowNodeUtilization": (
        {
            **_LEVELS,
            "targetThresholds": {"cpu": 50, "pods": 70},
            "useDeviationThresholds": True,
            "evictableNamespaces": {"exclude": ["a"]},
            "metricsUtilization": {"metricsServer": True},
            "evictionLimits": {"node": 3},
        },
        {
            "thresholds": {"MetricResource": 20},
            "targetThresholds": {"MetricResource": 50},
            "metricsUtilization": {"source": "Prometheus", "prometheus": {"query": "up"}},
        },
    ),
    "HighNodeUtilization": (
        {
            **_LEVELS,
            "evictableNamespaces": {"exclude": ["a"]},
            "evictionModes": ["OnlyThresholdingResources"],
        },
    ),
}
"""For each strategy arguments that are valid; together they use all that there are."""


def _policy(name: str, arguments: object, evictor: object = _EVICTOR) -> str:
    (point,) = PLUGINS[name].extension_points
    profile = {
        "name": "p",
        "pluginConfig": [
            {"name": "DefaultEvictor", "args": evictor},
            {"name": name, "args": arguments},
        ],
        "plugins": {point: {"enabled": [name]}},
    }
    document = {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "metricsProviders": [
            {"source": "KubernetesMetrics"},
            {"source": "Prometheus", "prometheus": {"url": "http://a.example"}},
        ],
        "profiles": [profile],
    }
    return json.dumps(document)


def _mismatch(value: object, declared: object) -> str:
    """Say where a value is of another type than is declared; nothing if it is nowhere."""
    origin, inner = get_origin(declared), get_args(declared)
    if origin is Annotated:
        return _mismatch(value, inner[0])
    if origin in (Union, types.UnionType):
        return "" if any(not _mismatch(value, each) for each in inner) else f"{value!r}"
    if origin is Literal:
        return "" if value in inner else f"{value!r}"
    if origin is tuple and isinstance(value, tuple):
        return "".join(_mismatch(each, inner[0]) for each in value)
    if origin in (dict, Mapping) and isinstance(value, dict):
        parts = [(each, inner[0]) for each in value] + [(each, inner[1]) for each in value.values()]
        return "".join(_mismatch(*part) for part in parts)
    if isinstance(value, BaseModel) and type(value) is declared:
        return "".join(
            _mismatch(getattr(value, name), field.annotation)
            for name, field in type(value).model_fields.items()
        )
    # No subclass: a bool is not to pass for a number.
    expected = type(None) if declared is None else declared
    return "" if type(value) is expected else f"{value!r} is no {expected}"


def _hold_to_its_types(arguments: Arguments) -> None:
    assert not _mismatch(arguments, type(arguments))
    again = type(arguments).read(arguments.model_dump(by_alias=True))
    assert again.model_dump() == arguments.model_dump()


def _load_or_refuse(text: str, corrections: Corrections | None) -> LoadedPolicy | None:
    problems: Sequence[Problem] = ()
    try:
        return load_policy(text, source="f", plugins=PLUGINS, corrections=corrections)
    except PolicyError as error:
        problems = error.problems
    assert problems
    for problem in problems:
        assert problem.message
        assert problem.path.startswith("profiles[0]") or not _is_document(text)
    return None


def _is_document(text: str) -> bool:
    try:
        read_document(text)
    except UnreadableError:
        return False
    return True


def _check_arguments(mutation: tuple[str, object], corrections: Corrections | None) -> None:
    loaded = _load_or_refuse(_policy(*mutation), corrections)
    if loaded is not None:
        (profile,) = loaded.profiles
        for plugin in (*profile.deschedule, *profile.balance):
            assert plugin.name == mutation[0]
            assert isinstance(plugin.arguments, cast(type, PLUGINS[plugin.name].arguments))
            _hold_to_its_types(plugin.arguments)


@pytest.mark.parametrize("name", PLUGINS)
def test_arguments_to_mutate_are_valid_and_all_that_there_are(name: str) -> None:
    for arguments in ARGUMENTS[name]:
        loaded = _load_or_refuse(_policy(name, arguments), ALL)
        assert loaded is not None
        _hold_to_its_types(loaded.profiles[0].evictor)
    declared = PLUGINS[name].arguments.model_fields.values()
    used = {key for arguments in ARGUMENTS[name] for key in arguments}
    assert used == {field.alias for field in declared}


_valid = st.sampled_from([(name, each) for name, several in ARGUMENTS.items() for each in several])
mutations = _valid.flatmap(lambda one: st.tuples(st.just(one[0]), mutated(one[1])))


@given(mutations, corrections)
@settings(max_examples=600)
def test_mutated_arguments_are_refused_or_of_the_declared_types(
    mutation: tuple[str, object], corrections: Corrections | None
) -> None:
    _check_arguments(mutation, corrections)


@pytest.mark.long
@pytest.mark.timeout(900)
@given(mutations, corrections)
@settings(max_examples=10_000)
def test_mutated_arguments_are_refused_or_of_the_declared_types_for_long(
    mutation: tuple[str, object], corrections: Corrections | None
) -> None:
    _check_arguments(mutation, corrections)


@given(mutated(_EVICTOR), corrections)
@settings(max_examples=200)
def test_a_mutated_evictor_is_refused_or_of_the_declared_types(
    evictor: object, corrections: Corrections | None
) -> None:
    loaded = _load_or_refuse(_policy("RemoveDuplicates", {}, evictor), corrections)
    if loaded is not None:
        found = loaded.profiles[0].evictor
        assert isinstance(found, DefaultEvictorArguments)
        _hold_to_its_types(found)
