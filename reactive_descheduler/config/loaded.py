"""A policy that has been read, checked and given its defaults; and what reading needs to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .places import line_of

if TYPE_CHECKING:
    from reactive_descheduler.api.errors import Problem

    from .args import Arguments
    from .corrections import Corrections
    from .evictor import DefaultEvictorArguments
    from .policy import MetricsProvider
    from .reactive import ReactiveSettings


@dataclass(frozen=True, slots=True)
class PluginSpec:
    """What the loader must know of a plugin; told by the layer that holds the strategies."""

    name: str
    extension_points: frozenset[str]
    """Where it may be enabled: `deschedule`, `balance`, `filter`, `preevictionfilter`."""
    arguments: type[Arguments]


@dataclass(frozen=True, slots=True)
class LoadedPlugin:
    """An enabled strategy."""

    name: str
    arguments: Arguments


@dataclass(frozen=True, slots=True)
class LoadedProfile:
    """One profile, ready to be assembled."""

    name: str
    """May be empty, and two profiles may share it."""
    evictor: DefaultEvictorArguments
    deschedule: tuple[LoadedPlugin, ...]
    """In the order they run; one listed twice stands here twice with the same arguments."""
    balance: tuple[LoadedPlugin, ...]


@dataclass(frozen=True, slots=True)
class PolicyLimits:
    """Upstream's limits on evictions; None is no limit, 0 evicts none."""

    per_node: int | None = None
    per_namespace: int | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class LoadedPolicy:
    """A whole policy file."""

    source: str
    profiles: tuple[LoadedProfile, ...]
    node_selector: str | None
    """Label selector of the nodes that are looked at; None is all. Its syntax is checked."""
    limits: PolicyLimits
    grace_period_seconds: int | None
    """Sent with each eviction; None sends none."""
    failure_events: bool
    """Whether failed evictions are told by Kubernetes Events."""
    metrics_providers: tuple[MetricsProvider, ...]
    """Known sources only; an old `metricsCollector` stands among them as KubernetesMetrics."""
    reactive: ReactiveSettings
    corrections: Corrections
    """In force; a flag goes before `reactive.corrections`."""
    warnings: tuple[Problem, ...]
    """What does not keep the file from being used, in the order of the file."""
    places: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    """Lines of the file by path; a policy of the same settings is the same, wherever they stand."""

    def line(self, path: str) -> int | None:
        """Return the line of a path such as `profiles[0].PodLifeTime.states`; None if unknown."""
        return line_of(path, self.places)
