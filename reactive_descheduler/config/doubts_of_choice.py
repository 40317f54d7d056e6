"""Selectors, namespaces and thresholds that leave nobody to evict, or no node to look at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from reactive_descheduler.api.selectors import Expression, SelectorError, parse_selector
from reactive_descheduler.api.terms import Requirement

from .args import LabelSelector
from .doubt_kinds import Doubt, Doubtful
from .enabled import argument, each_once, numbered, plugins_of
from .evictor import Protection

if TYPE_CHECKING:
    from .loaded import LoadedPlugin, LoadedPolicy, LoadedProfile

_NAME_OF_NAMESPACE = "kubernetes.io/metadata.name"
"""The label that the API server puts on every namespace: its name."""


def choosing(policy: LoadedPolicy) -> Iterator[Doubtful]:
    """Name what chooses no node, no Pod, or protects all of them."""
    if policy.node_selector and _contradict(_parsed(policy.node_selector)):
        message = "no node can match it, so nothing is looked at"
        yield Doubtful(Doubt.NO_NODE, "nodeSelector", message)
    for path, profile in numbered(policy):
        yield from _targets(path, profile)
        yield from _protected(path, profile)
        yield from _nobody(f"{path}.DefaultEvictor", profile)
        for where, plugin in each_once(path, profile):
            yield from _nobody_for(where, plugin, profile)


def _targets(path: str, profile: LoadedProfile) -> Iterator[Doubtful]:
    evictor = profile.evictor
    if not evictor.node_fit:
        return
    try:
        found = _parsed(evictor.node_selector)
    except SelectorError:
        found = None  # upstream takes it, and then no node matches
    if found is None or _contradict(found):
        names = ", ".join(dict.fromkeys(plugin.name for plugin in plugins_of(profile)))
        message = f"no node can match it, so node fit refuses whatever {names or 'it'} wants gone"
        yield Doubtful(Doubt.NO_TARGET, f"{path}.DefaultEvictor.nodeSelector", message)


def _protected(path: str, profile: LoadedProfile) -> Iterator[Doubtful]:
    threshold = profile.evictor.priority_threshold.value
    holds = Protection.SYSTEM_CRITICAL in profile.evictor.protections
    if holds and threshold is not None and threshold <= 0:
        message = (
            "it protects every Pod of priority 0, which is what Pods have unless told otherwise"
        )
        where = f"{path}.DefaultEvictor.priorityThreshold.value"
        yield Doubtful(Doubt.ALL_PROTECTED, where, message, "set a value above 0")


def _nobody(path: str, profile: LoadedProfile) -> Iterator[Doubtful]:
    evictor = profile.evictor
    if _contradict(_wanted(evictor.label_selector)):
        message = f"no Pod can match it, {_ANNOTATED}"
        yield Doubtful(Doubt.NO_POD, f"{path}.labelSelector", message)
    if _contradict(_wanted(evictor.namespace_label_selector)):
        message = "no namespace can match it, so nothing is evicted"
        yield Doubtful(Doubt.NO_POD, f"{path}.namespaceLabelSelector", message)


_ANNOTATED = "so only Pods with the evict annotation may go"


def _nobody_for(path: str, plugin: LoadedPlugin, profile: LoadedProfile) -> Iterator[Doubtful]:
    evictor = profile.evictor
    own = _wanted(argument(plugin.arguments, "label_selector"))
    others = _wanted(evictor.label_selector)
    if _contradict(own):
        message = "no Pod can match it, so it evicts nothing"
        yield Doubtful(Doubt.NO_POD, f"{path}.labelSelector", message)
    elif _contradict((*own, *others)) and not _contradict(others):
        message = f"no Pod can match both it and labelSelector of DefaultEvictor, {_ANNOTATED}"
        yield Doubtful(Doubt.NO_POD, f"{path}.labelSelector", message)
    allowed = _wanted(evictor.namespace_label_selector)
    for name, field in _NAMESPACES:
        chosen = tuple(_by_name(argument(plugin.arguments, field)))
        if _contradict((*chosen, *allowed)) and not _contradict(allowed):
            message = (
                "namespaceLabelSelector of DefaultEvictor matches none of those that it leaves, so"
                " it evicts nothing"
            )
            yield Doubtful(Doubt.NO_POD, f"{path}.{name}", message)


_NAMESPACES = (
    ("namespaces", "namespaces"),
    ("evictableNamespaces", "evictable_namespaces"),
)


def _by_name(namespaces: object) -> Iterator[Requirement]:
    """Return what is asked of namespaces by name, as if it were asked of their labels."""
    for field, operator in (("include", "In"), ("exclude", "NotIn")):
        names = getattr(namespaces, field, ())
        if names:
            yield Requirement(_NAME_OF_NAMESPACE, operator, tuple(names))


def _wanted(selector: object) -> tuple[Expression, ...]:
    """Return all that a selector asks for; nothing where there is none."""
    if not isinstance(selector, LabelSelector):
        return ()
    exact = (Requirement(key, "In", (value,)) for key, value in selector.match_labels.items())
    return (*exact, *selector.match_expressions)


def _parsed(selector: str) -> tuple[Expression, ...]:
    return parse_selector(selector).requirements


def _contradict(requirements: Iterable[Expression]) -> bool:
    """Say whether no set of labels can meet all of them; values that a key must have are
    compared."""
    requirements = tuple(requirements)
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
