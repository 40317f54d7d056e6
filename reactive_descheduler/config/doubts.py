"""What a policy may say and hardly anybody means: settings that do nothing, or fight each other.

A doubt never keeps a policy from being used. Each kind has a name, and
`reactive.silencedWarnings` takes the names of those that somebody has read and wants so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from .doubt_kinds import Doubt, Doubtful
from .doubts_of_choice import choosing
from .doubts_of_idleness import idle
from .enabled import all_plugins, argument, numbered, plugins_of

if TYPE_CHECKING:
    from reactive_descheduler.api.errors import Problem

    from .loaded import LoadedPlugin, LoadedPolicy, LoadedProfile


LOW, HIGH = "LowNodeUtilization", "HighNodeUtilization"
LIFE = "PodLifeTime"
SPREADING = ("RemoveDuplicates", "RemovePodsViolatingTopologySpreadConstraint")


def all_warnings(policy: LoadedPolicy) -> tuple[Problem, ...]:
    """Return what reading found and took all the same, and then every doubt."""
    return (*policy.warnings, *doubt_problems(policy))


def doubt_problems(policy: LoadedPolicy) -> tuple[Problem, ...]:
    """Return the same as problems with their lines, for those who tell people."""
    return tuple(found.problem_on(policy.line(found.path)) for found in doubts(policy))


def doubts(policy: LoadedPolicy) -> tuple[Doubtful, ...]:
    """Return every doubt about a policy that is not silenced, in order of the checks."""
    silenced = policy.reactive.silenced_warnings
    return tuple(found for check in CHECKS for found in check(policy) if found.kind not in silenced)


def _profiles(policy: LoadedPolicy) -> Iterator[Doubtful]:
    if not policy.profiles:
        yield Doubtful(Doubt.NO_PROFILE, "profiles", "there is none, so nothing is evicted")
    for path, profile in numbered(policy):
        if not plugins_of(profile):
            message = "it enables no strategy, so it evicts nothing"
            yield Doubtful(Doubt.NO_STRATEGY, path, message)


def _limits(policy: LoadedPolicy) -> Iterator[Doubtful]:
    for path, limit in (
        ("maxNoOfPodsToEvictPerNode", policy.limits.per_node),
        ("maxNoOfPodsToEvictPerNamespace", policy.limits.per_namespace),
        ("maxNoOfPodsToEvictTotal", policy.limits.total),
    ):
        if limit == 0:
            message = "0 allows no eviction, so nothing is evicted"
            yield Doubtful(Doubt.LIMIT_ZERO, path, message, "leave it out for no limit")
    for path, plugin in all_plugins(policy):
        limits = argument(plugin.arguments, "eviction_limits")
        if limits is not None and getattr(limits, "node", None) == 0:
            message = "0 allows no eviction, so it evicts nothing"
            yield Doubtful(Doubt.LIMIT_ZERO, f"{path}.evictionLimits.node", message)


def _fights(policy: LoadedPolicy) -> Iterator[Doubtful]:
    places = {plugin.name: path for path, plugin in all_plugins(policy)}
    high = places.get(HIGH)
    if high is None:
        return
    if LOW in places:
        message = f"it packs what {LOW} spreads: Pods may be moved back and forth"
        yield Doubtful(Doubt.UTILIZATION_FIGHT, high, message, "enable only one of the two")
    for name in SPREADING:
        if name in places:
            message = f"it packs what {name} spreads: Pods may be moved back and forth"
            yield Doubtful(Doubt.PACKING_FIGHT, high, message, "enable only one of the two")


def _twice(policy: LoadedPolicy) -> Iterator[Doubtful]:
    first: list[tuple[str, LoadedPlugin, LoadedProfile]] = []
    for path, profile in numbered(policy):
        names: set[str] = set()
        for plugin in plugins_of(profile):
            place = f"{path}.{plugin.name}"
            if plugin.name in names:
                message = "it is enabled twice in one profile, which changes little"
                yield Doubtful(Doubt.ENABLED_TWICE, place, message)
                continue
            names.add(plugin.name)
            for other, known, owner in first:
                if known == plugin and owner.evictor == profile.evictor:
                    message = f"it does what {other} does, for the same Pods"
                    yield Doubtful(Doubt.ENABLED_TWICE, place, message)
                    break
            else:
                first.append((place, plugin, profile))


def _settling(policy: LoadedPolicy) -> Iterator[Doubtful]:
    for path, plugin in all_plugins(policy):
        own = policy.reactive.strategies.get(plugin.name)
        for name, seconds in _ages(plugin):
            age = timedelta(seconds=seconds)
            if own is not None and own.settle is not None and own.settle > age:
                message = (
                    f"it settles for {own.settle.total_seconds():g} s, longer than the"
                    f" {seconds} s of {name}"
                )
                setting = f"reactive.strategies.{plugin.name}.settle"
                yield Doubtful(Doubt.SETTLE_LONGER, setting, message)
            if seconds == 0 and plugin.name == LIFE and name == "maxPodLifeTimeSeconds":
                message = "every Pod is too old after a second, and so is its replacement"
                yield Doubtful(Doubt.AGE_ZERO, f"{path}.{name}", message)


def _ages(plugin: LoadedPlugin) -> Iterator[tuple[str, int]]:
    """Yield the ages that a strategy acts on, by name."""
    for field, name in (
        ("max_pod_life_time_seconds", "maxPodLifeTimeSeconds"),
        ("min_pod_lifetime_seconds", "minPodLifetimeSeconds"),
    ):
        seconds = argument(plugin.arguments, field)
        narrowed = plugin.name == LIFE and any(
            argument(plugin.arguments, other) for other in ("states", "conditions", "exit_codes")
        )
        if isinstance(seconds, int) and not (narrowed and seconds == 0):
            yield name, seconds


CHECKS: tuple[Callable[[LoadedPolicy], Iterable[Doubtful]], ...] = (
    _profiles,
    _limits,
    idle,
    _fights,
    choosing,
    _twice,
    _settling,
)
