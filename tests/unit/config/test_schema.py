"""The JSON schema for editors: it is kept beside the samples, and refuses nothing that loads."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import cast

import pytest
import yaml
from jsonschema import Draft202012Validator

from reactive_descheduler.api.errors import PolicyError
from reactive_descheduler.config.load import load_policy
from reactive_descheduler.config.schema import policy_schema
from reactive_descheduler.strategies import IN_TREE, PLUGINS

ROOT = Path(__file__).parents[3]
SAMPLES = sorted((ROOT / "config").glob("*.yaml"))
CORPUS = sorted((ROOT / "tests" / "conformance").glob("*.jsonl"))
SCHEMA = policy_schema(PLUGINS)
VALIDATOR = Draft202012Validator(SCHEMA)
Document = dict[str, object]


def test_the_file_agrees_with_the_models() -> None:
    # To write it anew: reactive-descheduler schema > config/policy.schema.json
    kept = ROOT / "config" / "policy.schema.json"
    assert json.loads(kept.read_text(encoding="utf-8")) == SCHEMA


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_every_strategy_has_its_arguments_in_it() -> None:
    definitions = cast(Document, SCHEMA["$defs"])
    assert {entry.spec.arguments.__name__ for entry in IN_TREE if entry.spec.arguments} <= set(
        definitions
    )


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_a_sample_agrees_with_it(sample: Path) -> None:
    document = yaml.safe_load(sample.read_text(encoding="utf-8"))
    assert list(VALIDATOR.iter_errors(document)) == []


def test_whatever_loads_agrees_with_it() -> None:
    wrong = []
    for path in CORPUS:
        for line in path.read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            policy = case["policy"]
            if not isinstance(policy, dict) or "kind" not in policy:
                continue
            try:
                load_policy(json.dumps(policy), source="case", plugins=PLUGINS)
            except PolicyError:
                continue
            if errors := list(VALIDATOR.iter_errors(_without_nulls(policy))):
                wrong.append((case["name"], errors[0].message))
    assert wrong == []


def _without_nulls(value: object) -> object:
    """Null is the same as absent; an editor may well ask to write it so."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


VALID: Document = {
    "apiVersion": "descheduler/v1alpha2",
    "kind": "DeschedulerPolicy",
    "profiles": [
        {
            "name": "p",
            "pluginConfig": [
                {"name": "DefaultEvictor", "args": {"minPodAge": "5m", "nodeFit": True}},
                {"name": "PodLifeTime", "args": {"maxPodLifeTimeSeconds": 600}},
            ],
            "plugins": {"deschedule": {"enabled": ["PodLifeTime"]}},
        }
    ],
    "reactive": {
        "settle": {"default": "1m30s"},
        "pacing": {"maxUnavailable": "25%"},
        "corrections": ["strictDocuments"],
        "strategies": {"PodLifeTime": {"mode": "observe"}},
    },
}


def _profile(document: Document) -> Document:
    return cast(list[Document], document["profiles"])[0]


def _args(document: Document, index: int) -> Document:
    config = cast(list[Document], _profile(document)["pluginConfig"])
    return cast(Document, config[index]["args"])


def _enabled(document: Document, name: str) -> None:
    _profile(document)["plugins"] = {"deschedule": {"enabled": [name]}}


def _reactive(document: Document, **settings: object) -> None:
    cast(Document, document["reactive"]).update(settings)


MISTAKES: dict[str, Callable[[Document], object]] = {
    "unknown key": lambda document: document.update(maxNoOfPodsToEvictTOTAL=5),
    "no version": lambda document: document.pop("apiVersion"),
    "another kind": lambda document: document.update(kind="Policy"),
    "negative limit": lambda document: document.update(maxNoOfPodsToEvictTotal=-1),
    "unknown argument": lambda document: _args(document, 1).update(maxAge=5),
    "text for a number": lambda document: _args(document, 1).update(maxPodLifeTimeSeconds="600"),
    "number for a duration": lambda document: _args(document, 0).update(minPodAge=5),
    "duration without a unit": lambda document: _args(document, 0).update(minPodAge="5"),
    "strategy of the wrong phase": lambda document: _enabled(document, "RemoveDuplicates"),
    "unknown strategy": lambda document: _enabled(document, "PodLifetime"),
    "unknown setting": lambda document: _reactive(document, settel={}),
    "unknown correction": lambda document: _reactive(document, corrections=["nope"]),
    "share without a sign": lambda document: _reactive(document, pacing={"maxUnavailable": "25"}),
    "settings of no strategy": lambda document: _reactive(document, strategies={"Nope": {}}),
}


def test_the_document_of_the_mistakes_is_right_without_them() -> None:
    assert list(VALIDATOR.iter_errors(VALID)) == []


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_marked(mistake: str) -> None:
    document = deepcopy(VALID)
    MISTAKES[mistake](document)
    assert list(VALIDATOR.iter_errors(document)) != []
    with pytest.raises(PolicyError):
        load_policy(json.dumps(document), source="case", plugins=PLUGINS)
