"""Upstream's flag `--feature-gates`."""

from __future__ import annotations

import pytest

from reactive_descheduler.config.feature_gates import FeatureGate, parse_feature_gates

ON = frozenset({FeatureGate.EVICTIONS_IN_BACKGROUND})
OFF: frozenset[FeatureGate] = frozenset()


@pytest.mark.parametrize(
    ("text", "gates"),
    [
        ("", OFF),
        ("EvictionsInBackground=true", ON),
        (" EvictionsInBackground = True ,", ON),
        ("EvictionsInBackground=false", OFF),
        ("EvictionsInBackground=true,EvictionsInBackground=false", OFF),
        ("AllAlpha=true", ON),
        ("AllBeta=true", OFF),
        ("AllAlpha=true,EvictionsInBackground=false", OFF),
        ("EvictionsInBackground=true,AllAlpha=false", ON),
    ],
)
def test_gates_are_read(text: str, gates: frozenset[FeatureGate]) -> None:
    assert parse_feature_gates(text) == gates


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("EvictionsInBackground", "is not of the form NAME=true or NAME=false"),
        ("EvictionsInBackground=maybe", "is not of the form NAME=true or NAME=false"),
        ("EvictionInBackground=true", "did you mean EvictionsInBackground?"),
        ("Nope=true", "known are EvictionsInBackground, AllAlpha, AllBeta"),
    ],
)
def test_mistakes_are_named(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        parse_feature_gates(text)
