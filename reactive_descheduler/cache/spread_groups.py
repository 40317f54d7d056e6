"""Which Pods hang together through topology spread constraints.

A constraint joins all that it counts and all that carry it. A group is what can be reached that
way, within one namespace; no Pod is in two. It is named by the first of its selectors, in order of
their text, so that its name follows from what is in it.

Selectors mostly name the value of some label, so templates and selectors find each other by label:
a template that comes or goes costs what it touches, not the namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple, TypeVar

from reactive_descheduler.api.pod import PodTemplate
from reactive_descheduler.api.scheduling.spread import HARD, SOFT, DomainShape, Spread, spreads
from reactive_descheduler.api.selectors import Requirements
from reactive_descheduler.api.terms import Requirement

Label = tuple[str, str]
G = TypeVar("G")
M = TypeVar("M")


class SpreadGroup(NamedTuple):
    name: str
    templates: tuple[PodTemplate, ...]
    """Those of Pods that stand on nodes."""


class _Selector(NamedTuple):
    carriers: dict[PodTemplate, None]
    filed: Label | None
    """The label under which it is found; None: it names no label's value."""


class _Namespace:
    """The templates and selectors of one namespace."""

    def __init__(self) -> None:
        self.templates: dict[PodTemplate, None] = {}
        self.selectors: dict[Requirements, _Selector] = {}
        self.by_text: dict[str, Requirements] = {}
        self.known: dict[PodTemplate, SpreadGroup | None] = {}
        """What was asked, as long as nothing in the group or beside it comes or goes."""
        self._labelled: dict[Label, dict[PodTemplate, None]] = {}
        self._filed: dict[Label | None, dict[Requirements, None]] = {}

    def add(self, template: PodTemplate) -> None:
        self.templates[template] = None
        for label in template.labels.items():
            self._labelled.setdefault(label, {})[template] = None
        for selector in selectors(template):
            known = self.selectors.get(selector)
            if known is None:
                filed = min(_labels(selector), key=self._how_many, default=None)
                known = self.selectors[selector] = _Selector({}, filed)
                self._filed.setdefault(filed, {})[selector] = None
                self.by_text[text(selector)] = selector
            known.carriers[template] = None
        self._forget(template)

    def remove(self, template: PodTemplate) -> None:
        self._forget(template)
        del self.templates[template]
        for label in template.labels.items():
            _drop(self._labelled, label, template)
        for selector in selectors(template):
            known = self.selectors[selector]
            del known.carriers[template]
            if not known.carriers:
                del self.selectors[selector], self.by_text[text(selector)]
                _drop(self._filed, known.filed, selector)

    def selecting(self, template: PodTemplate) -> Iterator[Requirements]:
        """Yield the selectors that match a template, whether or not it is here."""
        for label in (None, *template.labels.items()):
            for selector in self._filed.get(label, ()):
                if selector.matches(template.labels):
                    yield selector

    def selected(self, selector: Requirements) -> Iterator[PodTemplate]:
        """Yield the templates here that a selector matches, whether or not it is here."""
        label = min(_labels(selector), key=self._how_many, default=None)
        found = self.templates if label is None else self._labelled.get(label, {})
        return (each for each in found if selector.matches(each.labels))

    def labelled(self, label: Label) -> Iterable[PodTemplate]:
        return self._labelled.get(label, {})

    def neighbours(self, selector: Requirements) -> Iterator[PodTemplate]:
        yield from self.selected(selector)
        if known := self.selectors.get(selector):
            yield from known.carriers

    def group(
        self, template: PodTemplate, without: Mapping[PodTemplate, None]
    ) -> SpreadGroup | None:
        """Return the group of a template, as it were without some others; None if no constraint
        concerns it."""
        own = selectors(template)
        reached: dict[PodTemplate, None] = {template: None}
        joined: dict[Requirements, None] = {}
        todo = [template]
        while todo:
            at = todo.pop()
            for selector in (*self.selecting(at), *selectors(at)):
                carried = selector in own or self._carried(selector, without)
                if selector in joined or not carried:
                    continue
                joined[selector] = None
                for each in self.neighbours(selector):
                    if each not in reached and each not in without:
                        reached[each] = None
                        todo.append(each)
        return SpreadGroup(min(map(text, joined)), tuple(reached)) if joined else None

    def _forget(self, template: PodTemplate) -> None:
        """Drop what is known of the groups that the template joins."""
        joins = (*self.selecting(template), *selectors(template))
        beside = (each for selector in joins for each in self.neighbours(selector))
        for each in (template, *beside):
            group = self.known.pop(each, None)
            for member in group.templates if group is not None else ():
                self.known.pop(member, None)

    def _carried(self, selector: Requirements, without: Mapping[PodTemplate, None]) -> bool:
        known = self.selectors.get(selector)
        return known is not None and any(each not in without for each in known.carriers)

    def _how_many(self, label: Label) -> int:
        return len(self._labelled.get(label, ()))


class SpreadGroups:
    """Follows the templates of which there are Pods on nodes."""

    def __init__(self) -> None:
        self._namespaces: dict[str, _Namespace] = {}
        self._shaped: dict[DomainShape, dict[tuple[str, PodTemplate], None]] = {}

    def add(self, namespace: str, template: PodTemplate) -> None:
        self._namespaces.setdefault(namespace, _Namespace()).add(template)
        for shape in _shapes(template):
            self._shaped.setdefault(shape, {})[namespace, template] = None

    def remove(self, namespace: str, template: PodTemplate) -> None:
        here = self._namespaces[namespace]
        here.remove(template)
        for shape in _shapes(template):
            _drop(self._shaped, shape, (namespace, template))
        if not here.templates:
            del self._namespaces[namespace]

    def namespaces(self) -> Sequence[str]:
        """Return, in order, the namespaces in which there is a group."""
        return sorted(name for name, here in self._namespaces.items() if here.selectors)

    def of_namespace(self, namespace: str) -> Sequence[SpreadGroup]:
        """Return the groups of a namespace, by name."""
        here = self._namespaces.get(namespace)
        carriers = [] if here is None else [next(iter(x.carriers)) for x in here.selectors.values()]
        found = (self.of_template(namespace, each) for each in carriers)
        by_name = {each.name: each for each in found if each is not None}
        return [by_name[name] for name in sorted(by_name)]

    def named(self, namespace: str, name: str) -> SpreadGroup | None:
        """Return a group; None if there is none of this very name."""
        here = self._namespaces.get(namespace)
        selector = here.by_text.get(name) if here is not None else None
        if here is None or selector is None:
            return None
        carrier = next(iter(here.selectors[selector].carriers))
        group = self.of_template(namespace, carrier)
        return group if group is not None and group.name == name else None

    def of_template(self, namespace: str, template: PodTemplate) -> SpreadGroup | None:
        """Return the group that a template is in, or would be in; None if it is in none."""
        here = self._namespaces.get(namespace)
        if here is None:
            return None
        if template not in here.templates:
            return here.group(template, {})
        if template not in here.known:
            group = here.group(template, {})
            for each in group.templates if group is not None else (template,):
                here.known[each] = group
        return here.known[template]

    def touched(self, namespace: str, templates: Iterable[PodTemplate]) -> Sequence[str]:
        """Return the names of all groups that these templates are in, or may have been in before
        one of them came or went.

        A group that they join or part bears the name of one of its parts, or of one of their own
        selectors. Some of the names may be those of no group.
        """
        here = self._namespaces.get(namespace)
        changed = dict.fromkeys(templates)
        if here is None or not here.selectors:
            return [text(each) for template in changed for each in selectors(template)]
        if all(each in here.known for each in changed):
            # Nothing came or went since these were asked for.
            groups = [here.known[each] for each in changed]
            return list(dict.fromkeys(each.name for each in groups if each is not None))
        names: dict[str, None] = {}
        seen: set[PodTemplate] = set()
        for template in changed:
            own = selectors(template)
            names.update(dict.fromkeys(map(text, own)))
            beside = (each for selector in own for each in here.neighbours(selector))
            above = (
                each
                for selector in here.selecting(template)
                for each in here.selectors[selector].carriers
            )
            for each in (*beside, *above):
                if each in changed or each in seen:
                    continue
                group = here.group(each, changed)
                seen.update(group.templates if group is not None else (each,))
                if group is not None:
                    names[group.name] = None
        return list(names)

    def reading(self, reads: Callable[[DomainShape], bool]) -> Iterator[tuple[str, str]]:
        """Return namespace and name of the groups with a constraint over domains of such shapes.

        There may be thousands, which have to be found first: they may be taken while templates come
        and go.
        """
        found = [tuple(carriers) for shape, carriers in tuple(self._shaped.items()) if reads(shape)]
        return self._named(chain.from_iterable(found))

    def _named(self, carriers: Iterable[tuple[str, PodTemplate]]) -> Iterator[tuple[str, str]]:
        seen: set[tuple[str, str]] = set()
        for namespace, template in carriers:
            group = self.of_template(namespace, template)
            if group is not None and (namespace, group.name) not in seen:
                seen.add((namespace, group.name))
                yield namespace, group.name

    def selected(self, namespace: str, spread: Spread) -> Iterable[PodTemplate]:
        """Return the templates of which a constraint counts the Pods."""
        here = self._namespaces.get(namespace)
        return here.selected(spread.selector) if here is not None else ()

    def labelled(self, namespace: str, label: Label) -> Iterable[PodTemplate]:
        """Return the templates that have a label. A live view."""
        here = self._namespaces.get(namespace)
        return here.labelled(label) if here is not None else ()

    def snapshot(self) -> Mapping[str, Mapping[str, frozenset[PodTemplate]]]:
        """Return every group, for comparison with a recount."""
        return {
            namespace: {
                each.name: frozenset(each.templates) for each in self.of_namespace(namespace)
            }
            for namespace in self.namespaces()
        }

    @staticmethod
    def recount(
        templates: Iterable[tuple[str, PodTemplate]],
    ) -> Mapping[str, Mapping[str, frozenset[PodTemplate]]]:
        """Return what `snapshot` must be for templates of these namespaces, worked out by looking
        at each pair."""
        found: dict[str, list[tuple[set[Requirements], set[PodTemplate]]]] = {}
        everything = list(dict.fromkeys(templates))
        for namespace, carrier in everything:
            for selector in selectors(carrier):
                members = {carrier} | {
                    each
                    for place, each in everything
                    if place == namespace and selector.matches(each.labels)
                }
                apart = found.setdefault(namespace, [])
                joined = [each for each in apart if selector in each[0] or each[1] & members]
                for each in joined:
                    apart.remove(each)
                all_selectors = {selector}.union(*(each[0] for each in joined))
                apart.append((all_selectors, members.union(*(each[1] for each in joined))))
        return {
            namespace: {min(map(text, names)): frozenset(members) for names, members in groups}
            for namespace, groups in found.items()
        }


@lru_cache(maxsize=20_000)
def selectors(template: PodTemplate) -> tuple[Requirements, ...]:
    """Return the selectors of a template's constraints, hard and soft ones."""
    found = (*spreads(template, HARD), *spreads(template, SOFT))
    return tuple(dict.fromkeys(each.selector for each in found))


@lru_cache(maxsize=20_000)
def _shapes(template: PodTemplate) -> tuple[DomainShape, ...]:
    found = (*spreads(template, HARD), *spreads(template, SOFT))
    return tuple(dict.fromkeys(each.shape for each in found))


@lru_cache(maxsize=20_000)
def text(selector: Requirements) -> str:
    """Write a selector as policies do; an empty one, which matches all, is `*`."""
    return ",".join(map(_part, selector.requirements)) or "*"


_SIGNS = {"In": "in", "NotIn": "notin"}


def _part(requirement: Requirement) -> str:
    key, operator, values = requirement.key, requirement.operator, requirement.values or ()
    match operator:
        case "Exists":
            return key
        case "DoesNotExist":
            return f"!{key}"
        case "In" if len(values) == 1:
            return f"{key}={values[0]}"
    return f"{key} {_SIGNS[operator]} ({','.join(values)})"


@lru_cache(maxsize=20_000)
def _labels(selector: Requirements) -> tuple[Label, ...]:
    """Return the labels that each match must have."""
    return tuple(
        (each.key, each.values[0])
        for each in selector.requirements
        if each.operator == "In" and each.values and len(each.values) == 1
    )


def _drop(groups: dict[G, dict[M, None]], group: G, member: M) -> None:
    members = groups[group]
    del members[member]
    if not members:
        del groups[group]
