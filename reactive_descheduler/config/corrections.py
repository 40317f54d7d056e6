"""Where we differ from upstream, by name.

Upstream's behaviour is the default reading of a policy; each deliberate difference is a member
here, one `if` where it acts, and a test each way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from .findings import brief, close_match


class Correction(StrEnum):
    """A difference that can be switched off; the value is its name in files and flags."""

    upstream: str
    """What upstream does, which is also what happens without the correction."""
    ours: str
    """What happens with it."""

    def __new__(cls, name: str, upstream: str, ours: str) -> Correction:
        """Make a member that carries both outcomes."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.upstream = upstream
        member.ours = ours
        return member

    STRICT_DOCUMENTS = (
        "strictDocuments",
        "Unknown keys outside args, duplicate keys and unknown metrics sources are ignored; a"
        " document without apiVersion is read as an empty policy.",
        "Unknown keys, duplicate keys, unknown metrics sources and a missing apiVersion are"
        " refused, with path, line and hint.",
    )
    MISSING_PLUGIN_CONFIG = (
        "missingPluginConfig",
        "A plugin enabled without an entry in pluginConfig stops the process.",
        "A plugin enabled without an entry in pluginConfig runs with its default arguments.",
    )
    EVICT_ANNOTATION = (
        "evictAnnotation",
        "The evict annotation lifts everything, whatever its value.",
        'The evict annotation lifts only with the value "true", and only protections; facts stay'
        " (mirror, static, place, terminating).",
    )
    ONE_OFFER_PER_PASS = (
        "oneOfferPerPass",
        "A Pod can be asked for again by a later strategy of the same pass, and counts again.",
        "A Pod is offered once per pass.",
    )
    CORDON_ALONE = (
        "cordonAlone",
        "The taint that a cordon puts on a node counts like any other: the node's Pods are"
        " evicted.",
        "A cordon alone is no drain: the node's Pods stay.",
    )
    NODE_FIT_FALSE = (
        "nodeFitFalse",
        "Some strategies look for room on other nodes even where nodeFit is off.",
        "Where nodeFit: false is written, no other node is looked at.",
    )
    PODS_WITHOUT_PDB = (
        "podsWithoutPDB",
        "PodsWithoutPDB protects every Pod, since the cache of budgets it asks is always empty.",
        "PodsWithoutPDB protects the Pods that no PodDisruptionBudget selects.",
    )


Corrections = frozenset[Correction]
"""The corrections in force."""
ALL: Corrections = frozenset(Correction)
NONE: Corrections = frozenset()


def parse_corrections(setting: object) -> Corrections:
    """Read `all`, `none`, one name, names with commas between (as a flag has them), or a list.

    Raises:
        ValueError: a name is unknown, or the setting is of another type.
    """
    names = [part.strip() for part in setting.split(",")] if isinstance(setting, str) else setting
    if names == ["all"]:
        return ALL
    if names == ["none"]:
        return NONE
    if not isinstance(names, Iterable) or isinstance(names, Mapping):
        raise ValueError(f"must be all, none or a list of names, not {brief(setting)}")  # noqa: TRY004
    return frozenset(_correction(name) for name in names)


_BY_NAME: Mapping[object, Correction] = {correction.value: correction for correction in Correction}


def _correction(name: object) -> Correction:
    if isinstance(name, str) and name in _BY_NAME:
        return _BY_NAME[name]
    hint = close_match(str(name), Correction) if isinstance(name, str) else ""
    known = f"known are {', '.join(Correction)}"
    raise ValueError(f"unknown correction {brief(name)}; {hint or known}")
