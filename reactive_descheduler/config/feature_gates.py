"""Upstream's feature gates, as its flag `--feature-gates` has them (spec/evictor 4.9)."""

from __future__ import annotations

from enum import StrEnum

from .findings import brief, close_match


class FeatureGate(StrEnum):
    """What can be switched on; all are off by default, as upstream."""

    EVICTIONS_IN_BACKGROUND = "EvictionsInBackground"
    """A webhook may take an eviction over and finish it later (KEP 1397, spec/evictor 3.7)."""


FeatureGates = frozenset[FeatureGate]
"""The gates that are on."""

_GROUPS = {"AllAlpha": frozenset(FeatureGate), "AllBeta": frozenset[FeatureGate]()}
_BOOLEANS = {"true": True, "1": True, "t": True, "false": False, "0": False, "f": False}


def parse_feature_gates(text: str) -> FeatureGates:
    """Read `Name=true,Other=false`; a single gate goes before its group, wherever it stands.

    Raises:
        ValueError: a gate is unknown, or its value is no boolean.
    """
    single: dict[FeatureGate, bool] = {}
    on: set[FeatureGate] = set()
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, sign, value = (each.strip() for each in part.partition("="))
        switched = _BOOLEANS.get(value.lower())
        if not sign or switched is None:
            raise ValueError(f"{brief(part)} is not of the form NAME=true or NAME=false")
        if name in _GROUPS:
            on = on | _GROUPS[name] if switched else on - _GROUPS[name]
        elif name in FeatureGate.__members__.values():
            single[FeatureGate(name)] = switched
        else:
            known = [*FeatureGate, *_GROUPS]
            hint = close_match(name, known) or f"known are {', '.join(known)}"
            raise ValueError(f"unknown feature gate {brief(name)}; {hint}")
    on |= {gate for gate, switched in single.items() if switched}
    return frozenset(on - {gate for gate, switched in single.items() if not switched})
