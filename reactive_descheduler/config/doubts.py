"""What a policy may say and hardly anybody means: settings that do nothing, or fight each other.

A doubt never keeps a policy from being used. Each kind has a name, and
`reactive.silencedWarnings` takes the names of those that somebody has read and wants so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from reactive_descheduler.api.errors import Problem
from reactive_descheduler.api.selectors import SelectorError, parse_selector

from .doubt_kinds import Doubt

if TYPE_CHECKING:
    from .args import Arguments
    from .loaded import LoadedPlugin, LoadedPolicy, LoadedProfile


class Doubtful(NamedTuple):
    """One doubt: its kind, the path of what raises it, what will happen, what would mend it."""

    kind: Doubt
    path: str
    message: str
    hint: str = ""

    @property
    def problem(self) -> Problem:
        return Problem(self.path, None, f"{self.message} [{self.kind}]", self.hint)


LOW, HIGH = "LowNodeUtilization", "HighNodeUtilization"
TAINTS, LIFE, FAILED = "RemovePodsViolatingNodeTaints", "PodLifeTime", "RemoveFailedPods"
SPREADING = ("RemoveDuplicates", "RemovePodsViolatingTopologySpreadConstraint")


def doubt_problems(policy: LoadedPolicy) -> tuple[Problem, ...]:
    """Return the same as problems, for those who tell people."""
    return tuple(found.problem for found in doubts(policy))


def doubts(policy: LoadedPolicy) -> tuple[Doubtful, ...]:
    """Return every doubt about a policy that is not silenced, in order of the checks."""
    silenced = policy.reactive.silenced_warnings
    return tuple(found for check in CHECKS for found in check(policy) if found.kind not in silenced)


def _profiles(policy: LoadedPolicy) -> Iterator[Doubtful]:
    if not policy.profiles:
        yield Doubtful(Doubt.NO_PROFILE, "profiles", "there is none, so nothing is evicted")
    for path, profile in _numbered(policy):
        if not _plugins(profile):
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
    for path, plugin in _all_plugins(policy):
        limits = _value(plugin.arguments, "eviction_limits")
        if limits is not None and getattr(limits, "node", None) == 0:
            message = "0 allows no eviction, so it evicts nothing"
            yield Doubtful(Doubt.LIMIT_ZERO, f"{path}.evictionLimits.node", message)


def _idle(policy: LoadedPolicy) -> Iterator[Doubtful]:
    for path, plugin in _all_plugins(policy):
        if plugin.name == TAINTS and _value(plugin.arguments, "included_taints") == ():
            message = "an empty list counts no taint, so it evicts nothing"
            yield Doubtful(
                Doubt.DOES_NOTHING, f"{path}.includedTaints", message, "leave it out for all taints"
            )
        types = _value(plugin.arguments, "node_affinity_type")
        if isinstance(types, tuple):
            for each in types:
                if each not in _AFFINITY_TYPES:
                    message = f"{each!r} is no type of node affinity, so it does nothing"
                    hint = f"known are {' and '.join(_AFFINITY_TYPES)}"
                    yield Doubtful(Doubt.DOES_NOTHING, f"{path}.nodeAffinityType", message, hint)


_AFFINITY_TYPES = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def _fights(policy: LoadedPolicy) -> Iterator[Doubtful]:
    places = {plugin.name: path for path, plugin in _all_plugins(policy)}
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


def _targets(policy: LoadedPolicy) -> Iterator[Doubtful]:
    for path, profile in _numbered(policy):
        evictor = profile.evictor
        if not (evictor.node_fit and _contradicts_itself(evictor.node_selector)):
            continue
        names = ", ".join(dict.fromkeys(plugin.name for plugin in _plugins(profile)))
        message = f"no node can match it, so node fit refuses whatever {names or 'it'} wants gone"
        yield Doubtful(Doubt.NO_TARGET, f"{path}.DefaultEvictor.nodeSelector", message)


def _contradicts_itself(selector: str) -> bool:
    """Say whether no set of labels can match; values that a key must have are compared."""
    try:
        requirements = parse_selector(selector).requirements
    except SelectorError:
        return True  # upstream takes it, and then no node matches
    allowed: dict[str, set[str]] = {}
    present, absent = set(), set()
    for each in requirements:
        values = set(each.values or ())
        if each.operator == "DoesNotExist":
            absent.add(each.key)
        elif each.operator != "NotIn":
            present.add(each.key)
        if each.operator == "In":
            allowed[each.key] = allowed.get(each.key, values) & values
    for each in requirements:
        if each.operator == "NotIn" and each.key in allowed:
            allowed[each.key] -= set(each.values or ())
    return bool(present & absent) or any(not values for values in allowed.values())


def _twice(policy: LoadedPolicy) -> Iterator[Doubtful]:
    first: list[tuple[str, LoadedPlugin, LoadedProfile]] = []
    for path, profile in _numbered(policy):
        names: set[str] = set()
        for plugin in _plugins(profile):
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
    for path, plugin in _all_plugins(policy):
        own = policy.reactive.strategies.get(plugin.name)
        for argument, seconds in _ages(plugin):
            age = timedelta(seconds=seconds)
            if own is not None and own.settle is not None and own.settle > age:
                message = (
                    f"it settles for {own.settle.total_seconds():g} s, longer than the"
                    f" {seconds} s of {argument}"
                )
                setting = f"reactive.strategies.{plugin.name}.settle"
                yield Doubtful(Doubt.SETTLE_LONGER, setting, message)
            if seconds == 0 and plugin.name == LIFE and argument == "maxPodLifeTimeSeconds":
                message = "every Pod is too old after a second, and so is its replacement"
                yield Doubtful(Doubt.AGE_ZERO, f"{path}.{argument}", message)


def _ages(plugin: LoadedPlugin) -> Iterator[tuple[str, int]]:
    """Yield the ages that a strategy acts on, by argument."""
    for field, argument in (
        ("max_pod_life_time_seconds", "maxPodLifeTimeSeconds"),
        ("min_pod_lifetime_seconds", "minPodLifetimeSeconds"),
    ):
        seconds = _value(plugin.arguments, field)
        narrowed = plugin.name == LIFE and any(
            _value(plugin.arguments, other) for other in ("states", "conditions", "exit_codes")
        )
        if isinstance(seconds, int) and not (narrowed and seconds == 0):
            yield argument, seconds


CHECKS: tuple[Callable[[LoadedPolicy], Iterable[Doubtful]], ...] = (
    _profiles,
    _limits,
    _idle,
    _fights,
    _targets,
    _twice,
    _settling,
)


def _numbered(policy: LoadedPolicy) -> Iterator[tuple[str, LoadedProfile]]:
    for index, profile in enumerate(policy.profiles):
        yield f"profiles[{index}]", profile


def _plugins(profile: LoadedProfile) -> tuple[LoadedPlugin, ...]:
    return (*profile.deschedule, *profile.balance)


def _all_plugins(policy: LoadedPolicy) -> Iterator[tuple[str, LoadedPlugin]]:
    for path, profile in _numbered(policy):
        for plugin in dict.fromkeys(plugin.name for plugin in _plugins(profile)):
            found = next(each for each in _plugins(profile) if each.name == plugin)
            yield f"{path}.{plugin}", found


def _value(arguments: Arguments, field: str) -> object:
    """Return an argument that only some strategies have; this layer does not know their classes."""
    return getattr(arguments, field, None)
