"""Whatever the file holds, it is loaded or refused; nothing else is ever raised."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from reactive_descheduler.api.errors import PolicyError, Problem
from reactive_descheduler.config.corrections import ALL, NONE, Corrections
from reactive_descheduler.config.load import PluginSpec, load_policy

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
def mutated(draw: st.DrawFn) -> object:
    """A valid policy, a few places of which hold something else, are gone or are new."""
    document = json.loads(json.dumps(VALID))
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
