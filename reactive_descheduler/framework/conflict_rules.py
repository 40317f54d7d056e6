"""The terms of required anti-affinity, with who holds them and whom they keep away, by place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Kin, Pod, PodTemplate
from reactive_descheduler.api.terms import LabelSelector, PodAffinityTerm

Label = tuple[str, str]
Place = tuple[bool, str]
"""Of a node for a topology key: whether it has the label, and the label's value or its own name.

Upstream takes Pods of one node for together even where the node lacks the label; to the scheduler
such a node is in no domain, and it would place them there again.
"""


class Crowd:
    """Pods of one place. None of them is in the way of those that count as itself."""

    def __init__(self) -> None:
        self._pods: dict[str, dict[str, Pod]] = {}
        self._size = 0

    def add(self, itself: str, pod: Pod) -> None:
        self._pods.setdefault(itself, {})[pod.uid] = pod
        self._size += 1

    def drop(self, itself: str, uid: str) -> None:
        same = self._pods[itself]
        del same[uid]
        if not same:
            del self._pods[itself]
        self._size -= 1

    def others(self, itself: str) -> int:
        return self._size - len(self._pods.get(itself, ()))

    def first_other(self, itself: str) -> Pod | None:
        for each, same in self._pods.items():
            if each != itself:
                return next(iter(same.values()))
        return None

    def __iter__(self) -> Iterator[Pod]:
        return (pod for same in self._pods.values() for pod in same.values())


class Places(dict[str, "Place | None"]):
    """The place of each node by its name, for one topology key; None outside of the cycle and, with
    `only_labelled`, for a node without the label."""

    def __init__(
        self, topology_key: str, nodes: Mapping[str, Node], *, only_labelled: bool
    ) -> None:
        self._key = topology_key
        self._nodes = nodes
        self._only_labelled = only_labelled

    def __missing__(self, name: str) -> Place | None:
        node = self._nodes.get(name)
        value = node.labels.get(self._key) if node is not None else None
        found = (True, value) if value is not None else None
        if found is None and node is not None and not self._only_labelled:
            found = (False, name)
        self[name] = found
        return found


class Rule:
    """One term of Pods that share it, with who holds it and whom it keeps away, by place.

    First they are counted; then those of places where there may be a conflict are read.
    """

    def __init__(
        self, term: PodAffinityTerm, owner: Kin, namespaces: Iterable[str], places: Places
    ) -> None:
        self.term = term
        self.owner = owner
        self.namespaces = frozenset(namespaces)
        self.places = places
        self.holding: list[Kin] = []
        self.kept: list[Kin] = []
        self.holders: dict[Place, Crowd] = {}
        self.kept_away: dict[Place, Crowd] = {}


class RuleTable:
    """The rules that look into one namespace, found by a label that they ask for."""

    def __init__(self) -> None:
        self._by_label: dict[Label, list[Rule]] = {}
        self._others: list[Rule] = []

    def add(self, rule: Rule) -> None:
        asked = asked_for(rule.term.label_selector)
        if asked is None:
            self._others.append(rule)
        for label in asked or ():
            self._by_label.setdefault(label, []).append(rule)

    def about(self, template: PodTemplate) -> Iterator[Rule]:
        """Yield the rules that may keep Pods of this template away."""
        yield from self._others
        for label in template.labels.items():
            yield from self._by_label.get(label, ())


def asked_for(selector: LabelSelector | None) -> Sequence[Label] | None:
    """Return labels of which a Pod must have one to be selected; None if there are none such."""
    if selector is None:
        return ()
    for label in (selector.match_labels or {}).items():
        return [label]
    for each in selector.match_expressions or ():
        if each.operator == "In":
            return [(each.key, value) for value in dict.fromkeys(each.values or ())]
    return None
