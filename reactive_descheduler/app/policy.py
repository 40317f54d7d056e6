"""What the program knows of policies: which plugins there are, which kinds a policy needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from reactive_descheduler.cache.usage import METRICS_SERVER, PROMETHEUS
from reactive_descheduler.config.corrections import Correction, Corrections
from reactive_descheduler.config.enabled import all_plugins, each_once, numbered
from reactive_descheduler.config.evictor import THRESHOLD_NAME, Protection
from reactive_descheduler.config.loaded import LoadedPolicy, LoadedProfile
from reactive_descheduler.config.policy import Prometheus
from reactive_descheduler.evictor.background import BackgroundEvictions
from reactive_descheduler.evictor.gates.limits import Limits, PassLimits
from reactive_descheduler.framework.registry import Registry
from reactive_descheduler.guardrails import build_evictor_filter
from reactive_descheduler.strategies import IN_TREE
from reactive_descheduler.strategies.node_utilization.arguments import LowNodeUtilizationArguments

ALWAYS_WATCHED = ("Node", "Pod", "Namespace", "PodDisruptionBudget")


def in_tree_registry() -> Registry:
    """Return the registry of everything that ships with the program."""
    strategies = {entry.spec.name: entry.strategy for entry in IN_TREE}
    return Registry(strategies, build_evictor_filter)


def urgencies() -> dict[str, int]:
    """Return the urgency of each strategy; lower goes first."""
    return {entry.spec.name: entry.urgency for entry in IN_TREE}


def needed_kinds(policy: LoadedPolicy) -> tuple[str, ...]:
    """Return the kinds to watch: claims and volumes only where something reads them (so with
    RBAC)."""
    if volumes_decide(policy):
        return (*ALWAYS_WATCHED, "PersistentVolumeClaim", "PersistentVolume")
    claims = any(read_claims(policy))
    return (*ALWAYS_WATCHED, "PersistentVolumeClaim") if claims else ALWAYS_WATCHED


def read_claims(policy: LoadedPolicy) -> Iterator[str]:
    """Yield the paths of what reads claims and not their volumes."""
    for path, profile in numbered(policy):
        evictor = profile.evictor
        if Protection.PVC in evictor.protections and evictor.protected_storage_classes:
            yield f"{path}.DefaultEvictor.podProtections.config.PodsWithPVC"


SEEK_ROOM = frozenset(
    {
        "RemovePodsViolatingNodeAffinity",
        "RemoveDuplicates",
        "RemovePodsViolatingTopologySpreadConstraint",
        "LowNodeUtilization",
        "HighNodeUtilization",
    }
)
"""Strategies that look for room by themselves, where `nodeFit: false` does not forbid it."""


def volumes_decide(policy: LoadedPolicy) -> bool:
    """Say whether some verdict rests on volumes: by the evictor's node fit, or a strategy's own."""
    return any(read_volumes(policy))


def read_volumes(policy: LoadedPolicy) -> Iterator[str]:
    """Yield the paths of what looks for nodes from which a Pod's volumes can be reached."""
    if Correction.NODE_FIT_VOLUMES in policy.corrections:
        for path, profile in numbered(policy):
            yield from _look_for_room(path, profile, policy.corrections)


def _look_for_room(path: str, profile: LoadedProfile, corrections: Corrections) -> Iterator[str]:
    evictor = profile.evictor
    if evictor.node_fit:
        yield f"{path}.DefaultEvictor.nodeFit"
    elif evictor.looks_elsewhere(corrections):
        yield from (where for where, each in each_once(path, profile) if each.name in SEEK_ROOM)


def needs_priority_classes(policy: LoadedPolicy) -> bool:
    """Say whether some threshold goes by the name of a PriorityClass, which is read once at
    start."""
    return any(name_priority_classes(policy))


def name_priority_classes(policy: LoadedPolicy) -> Iterator[str]:
    """Yield the paths of the thresholds that go by the name of a PriorityClass."""
    for path, profile in numbered(policy):
        if profile.evictor.priority_threshold.name:
            yield f"{path}.{THRESHOLD_NAME}"


def usage_sources(policy: LoadedPolicy) -> frozenset[str]:
    """Return the sources of measured usage that the policy configures."""
    return frozenset(provider.source for provider in policy.metrics_providers)


class WantedUsage(NamedTuple):
    """What is to be asked of whom."""

    metrics_server: bool
    prometheus: Prometheus | None
    """Where queries go; None if there are none."""
    queries: tuple[str, ...]
    """Each once."""


def wanted_usage(policy: LoadedPolicy) -> WantedUsage:
    """Return what the policy's strategies want measured, as far as it configures the sources."""
    providers = {provider.source: provider.prometheus for provider in policy.metrics_providers}
    wanted = [
        plugin.arguments.metrics_utilization
        for profile in policy.profiles
        for plugin in profile.balance
        if isinstance(plugin.arguments, LowNodeUtilizationArguments)
        and plugin.arguments.metrics_utilization is not None
    ]
    prometheus = providers.get(PROMETHEUS)
    queries = dict.fromkeys(
        each.prometheus.query
        for each in wanted
        if prometheus is not None and each.asked == PROMETHEUS and each.prometheus is not None
    )
    return WantedUsage(
        METRICS_SERVER in providers and any(each.asked == METRICS_SERVER for each in wanted),
        prometheus if queries else None,
        tuple(queries),
    )


def ask_for_usage(policy: LoadedPolicy, source: str) -> Iterator[str]:
    """Yield the paths of what wants usage measured by this source."""
    for path, plugin in all_plugins(policy):
        arguments = plugin.arguments
        if (
            isinstance(arguments, LowNodeUtilizationArguments)
            and arguments.metrics_utilization is not None
            and arguments.metrics_utilization.asked == source
        ):
            yield f"{path}.metricsUtilization"


def pass_limits(policy: LoadedPolicy, background: BackgroundEvictions | None = None) -> PassLimits:
    """Return new counters for one pass under the policy's own limits.

    `background`: evictions that go on besides and count too.
    """
    return PassLimits(
        Limits(
            total=policy.limits.total,
            per_node=policy.limits.per_node,
            per_namespace=policy.limits.per_namespace,
        ),
        in_background=background.count if background is not None else lambda _key: 0,
    )


def budgets_decide(policy: LoadedPolicy) -> bool:
    """Say whether some verdict rests on budgets: the protection of Pods without one."""
    return Correction.PODS_WITHOUT_PDB in policy.corrections and any(
        Protection.WITHOUT_PDB in profile.evictor.protections for profile in policy.profiles
    )
