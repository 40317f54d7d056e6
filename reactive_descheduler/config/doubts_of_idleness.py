"""Arguments with which a strategy finds nothing to do, whatever the cluster is like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from .corrections import Correction
from .doubt_kinds import Doubt, Doubtful
from .enabled import all_plugins, argument

if TYPE_CHECKING:
    from .loaded import LoadedPlugin, LoadedPolicy

_TAINTS = "RemovePodsViolatingNodeTaints"
_ALL = 100.0
_AFFINITY_TYPES = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def idle(policy: LoadedPolicy) -> Iterator[Doubtful]:
    """Name the arguments that let their strategy do nothing."""
    for path, plugin in all_plugins(policy):
        for found, message, hint in (
            *_no_taint(plugin, policy),
            *_not_a_taint(plugin),
            *_no_affinity(plugin),
            *_no_threshold(plugin),
            *_no_usage(plugin, policy),
        ):
            yield Doubtful(Doubt.DOES_NOTHING, f"{path}.{found}", message, hint)


_Idle = Iterator[tuple[str, str, str]]
"""The argument, what comes of it, what would mend it."""


def _no_taint(plugin: LoadedPlugin, policy: LoadedPolicy) -> _Idle:
    included = argument(plugin.arguments, "included_taints")
    if plugin.name != _TAINTS or not isinstance(included, tuple):
        return
    if not included:
        message = "an empty list counts no taint, so it evicts nothing"
        yield "includedTaints", message, "leave it out for all taints"
    elif Correction.CLAIMED_NODES in policy.corrections:
        left = policy.reactive.drainers.taints
        if all(taint.partition("=")[0] in left for taint in included):
            message = (
                "the nodes with these taints are left to who drains them, so it evicts nothing"
            )
            yield "includedTaints", message, "take them out of reactive.drainers.taints"


def _not_a_taint(plugin: LoadedPlugin) -> _Idle:
    """Neither keys nor values of taints have a colon."""
    for argument_name, field in (
        ("excludedTaints", "excluded_taints"),
        ("includedTaints", "included_taints"),
    ):
        entries = argument(plugin.arguments, field)
        for each in entries if isinstance(entries, tuple) else ():
            if ":" in each:
                message = f"{each!r} is the key or the key=value of no taint, so it does nothing"
                yield argument_name, message, f"leave out the effect: {each.partition(':')[0]}"


def _no_affinity(plugin: LoadedPlugin) -> _Idle:
    types = argument(plugin.arguments, "node_affinity_type")
    for each in types if isinstance(types, tuple) else ():
        if each not in _AFFINITY_TYPES:
            message = f"{each!r} is no type of node affinity, so it does nothing"
            yield "nodeAffinityType", message, f"known are {' and '.join(_AFFINITY_TYPES)}"


def _no_threshold(plugin: LoadedPlugin) -> _Idle:
    """Nothing is used by more than all of it, as far as it goes by requests."""
    low = argument(plugin.arguments, "thresholds")
    high = argument(plugin.arguments, "target_thresholds")
    if argument(plugin.arguments, "metrics_utilization") is not None:
        return
    if high is not None and _all_of_it(high):
        yield "targetThresholds", "no node is used by more than 100 %, so it relieves none", ""
    elif high is None and _all_of_it(low):
        yield "thresholds", "every node is underutilized then, so none takes Pods in", ""


def _all_of_it(thresholds: object) -> bool:
    return isinstance(thresholds, Mapping) and all(each >= _ALL for each in thresholds.values())


def _no_usage(plugin: LoadedPlugin, policy: LoadedPolicy) -> _Idle:
    measured = argument(plugin.arguments, "metrics_utilization")
    if measured is None:
        return
    source = getattr(measured, "asked", "")
    configured = [provider.source for provider in policy.metrics_providers]
    if source not in configured:
        message = f"metricsProviders has no source {source!r}, so every run of it fails"
        yield "metricsUtilization", message, "add the source to metricsProviders"
