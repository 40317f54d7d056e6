"""Which Pods stand beside one that their own required anti-affinity keeps away.

A conflict is a term that a Pod breaks by standing in the topology domain of the term's owner. It is
the owner's: the other cannot help it. Read once from one state, then kept by what is taken out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import (
    Callable,
    Collection,
    Container,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from operator import attrgetter
from typing import NamedTuple

from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Kin, Pod, PodTemplate, kin
from reactive_descheduler.api.scheduling.pod_terms import chooses, labels_in
from reactive_descheduler.api.selectors import SelectorError, check_selector, matches
from reactive_descheduler.api.terms import PodAffinityTerm
from reactive_descheduler.cache.joined import reached
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.framework.conflict_rules import (
    Crowd,
    Label,
    Place,
    Places,
    Rule,
    RuleTable,
    asked_for,
)

_STEP = 1000
"""Templates, or Pods, that are read between two pauses."""

_Group = Mapping[Place, Sequence[Pod]]
_named = attrgetter("namespace", "name")


class Conflict(NamedTuple):
    """A Pod, and the first of those that its terms keep away from it."""

    pod: Pod
    other: Pod
    topology_key: str


class Conflicts:
    """The Pods of some namespaces that are on the nodes of the cycle.

    Args:
        counts: whether Pods of a kind count at all, as victims or as the other side.
        corrected: terms are read as the scheduler does, and Pods told apart by UID; else as
            upstream does: no namespaceSelector, and a Pod takes all of its name for itself.
        terminating: whether Pods that terminate count.
    """

    def __init__(
        self,
        lister: Lister,
        nodes: Mapping[str, Node],
        *,
        counts: Callable[[Kin], bool],
        corrected: bool,
        terminating: bool,
    ) -> None:
        self._lister = lister
        self._nodes = nodes
        self._counts = counts
        self._corrected = corrected
        self._terminating = terminating
        self._labels_of = labels_in(lister, doubtful=False)
        self._places: dict[str, Places] = {}
        self._rules: dict[Hashable, Sequence[Rule]] = {}
        self._held: dict[Kin, Sequence[Rule]] = {}
        self._broken: dict[Kin, Sequence[Rule]] = {}
        self._holders: dict[str, Pod] = {}
        self._alike: dict[tuple[Kin, str], Hashable] = {}
        self._ended: dict[Hashable, int] = {}

    def read(self, namespaces: Iterable[str]) -> Iterator[None]:
        """Read who has terms in these namespaces, and whom these keep away anywhere.

        Yields at places where it can give way.
        """
        yield from self._read_owners(namespaces)
        yield from self._find_kept_away()
        for rules in self._rules.values():
            for rule in rules:
                places = self._suspects(rule)
                yield
                if places:
                    yield from self._read_places(rule, places)

    def read_around(self, pod: Pod, namespaces: Iterable[str]) -> None:
        """Do the same, but read only those Pods on whom the fate of this one depends: its
        conflicts, those of the other side, and so on."""
        for _ in self._read_owners(namespaces):
            pass
        tables = self._tables()
        groups: dict[int, tuple[_Group, _Group]] = {}
        read: set[tuple[int, Place]] = set()
        left = [(kin(pod), pod.node_name)]
        while left:
            of, node = left.pop()
            if of not in self._broken:
                self._broken[of] = self._rules_about(of, tables)
            for rule, place in self._concerning(of, node):
                if (id(rule), place) in read:
                    continue
                read.add((id(rule), place))
                if id(rule) not in groups:
                    groups[id(rule)] = self._grouped_alone(rule)
                holding, kept = (group.get(place, ()) for group in groups[id(rule)])
                if holding and kept:
                    self._enter(rule, place, holding, kept)
                    stand = ((kin(each), each.node_name) for each in (*holding, *kept))
                    left.extend(dict.fromkeys(stand))

    def holders(self) -> Collection[Pod]:
        """Return the Pods that may have conflicts. A live view."""
        return self._holders.values()

    def of(self, pod: Pod) -> Conflict | None:
        """Return the Pod's first conflict, if it has one."""
        for rule, crowd in self._crowds(pod):
            other = crowd.first_other(self._itself(pod))
            if other is not None:
                return Conflict(pod, other, rule.term.topology_key)
        return None

    def ended_by(self, pod: Pod) -> int:
        """Return how many conflicts the Pod's leaving ends: its own, and others' with it."""
        alike = self.alike(pod)
        known = self._ended.get(alike)
        if known is None:
            itself = self._itself(pod)
            known = sum(crowd.others(itself) for _, crowd in self._crowds(pod))
            for rule in self._broken.get(kin(pod), ()):
                place = rule.places[pod.node_name]
                holders = rule.holders.get(place) if place is not None else None
                known += holders.others(itself) if holders is not None else 0
            self._ended[alike] = known
        return known

    def alike(self, pod: Pod) -> Hashable:
        """Return what is the same for Pods whose leaving ends equally many, whoever else left."""
        of = kin(pod)
        stands = (of, pod.node_name)
        known = self._alike.get(stands)
        if known is None:
            rules = (*self._held.get(of, ()), *self._broken.get(of, ()))
            known = self._alike[stands] = (of, *(rule.places[pod.node_name] for rule in rules))
        return known if self._corrected else (known, pod.name)

    def take_out(self, pod: Pod) -> None:
        """Let the Pod count no more."""
        itself, of = self._itself(pod), kin(pod)
        self._ended.clear()
        self._holders.pop(pod.uid, None)
        for rule in self._held.get(of, ()):
            _drop(rule.holders, rule.places[pod.node_name], itself, pod)
        for rule in self._broken.get(of, ()):
            _drop(rule.kept_away, rule.places[pod.node_name], itself, pod)

    def kept_away(self, pods: Iterable[Pod]) -> Iterator[Iterable[Pod]]:
        """Yield, for each of these Pods, those whom its terms keep away that were not among those
        before."""
        seen: set[int] = set()
        for pod in pods:
            for _, crowd in self._crowds(pod):
                if id(crowd) not in seen:
                    seen.add(id(crowd))
                    yield crowd

    def _itself(self, pod: Pod) -> str:
        return pod.uid if self._corrected else pod.name

    def _crowds(self, pod: Pod) -> Iterator[tuple[Rule, Crowd]]:
        """Yield what each term of the Pod keeps away from where it stands."""
        for rule in self._held.get(kin(pod), ()):
            place = rule.places[pod.node_name]
            crowd = rule.kept_away.get(place) if place is not None else None
            if crowd is not None:
                yield rule, crowd

    def _suspects(self, rule: Rule) -> set[Place]:
        """Return the places where Pods are kept away from somebody, by their numbers alone.

        What is gone is still counted, so there may be fewer.
        """
        numbers: Counter[Place | None] = Counter()
        for of in rule.kept:
            for name, number in self._standing(of):
                numbers[rule.places[name]] += number
        found = set()
        for of in rule.holding:
            itself = 1 if rule in self._broken.get(of, ()) else 0
            for name, _ in self._standing(of):
                place = rule.places[name]
                if place is not None and numbers[place] > itself:
                    found.add(place)
        return found

    def _standing(self, of: Kin) -> Iterator[tuple[str, int]]:
        yield from self._lister.standing(of).items()
        if self._terminating:
            for pod in self._lister.terminating(of.namespace):
                if pod.template is of.template:
                    yield pod.node_name, 1

    def _read_owners(self, namespaces: Iterable[str]) -> Iterator[None]:
        for name in namespaces:
            for owner in self._lister.apart_kins(name):
                if self._counts(owner):
                    self._held[owner] = rules = self._rules_of(owner)
                    for rule in rules:
                        rule.holding.append(owner)
            yield

    def _grouped_alone(self, rule: Rule) -> tuple[_Group, _Group]:
        """Find whom one rule keeps away; return its holders and those by place."""
        asked = asked_for(rule.term.label_selector)
        found = (Kin(name, each) for name in rule.namespaces for each in self._having(name, asked))
        rule.kept += (of for of in found if self._keeps_away(rule, of) and self._counts(of))
        holding = self._grouped(rule, rule.holding)
        same = rule.kept == rule.holding
        return holding, holding if same else self._grouped(rule, rule.kept)

    def _having(self, namespace: str, labels: Sequence[Label] | None) -> Iterable[PodTemplate]:
        """Return the templates of a namespace that have one of these labels; of None: all."""
        if labels is None:
            return self._lister.templates_in(namespace)
        groups = self._lister.spread_groups
        return dict.fromkeys(each for label in labels for each in groups.labelled(namespace, label))

    def _concerning(self, of: Kin, node: str) -> Iterator[tuple[Rule, Place]]:
        """Yield the rules that Pods hold or break, and where, that stand on a node."""
        for rule in (*self._held.get(of, ()), *self._broken.get(of, ())):
            if (place := rule.places[node]) is not None:
                yield rule, place

    def _read_places(self, rule: Rule, places: Container[Place]) -> Iterator[None]:
        """Read the Pods of these places."""
        holding = self._grouped(rule, rule.holding, places)
        yield
        same = rule.kept == rule.holding  # a workload that keeps its own Pods apart
        kept = holding if same else self._grouped(rule, rule.kept, places)
        yield
        done = 0
        for place, pods in holding.items():
            others = kept.get(place, ())
            self._enter(rule, place, pods, others)
            done += len(pods) + len(others)
            if done >= _STEP:
                yield
                done = 0

    def _grouped(
        self, rule: Rule, kins: Sequence[Kin], places: Container[Place] | None = None
    ) -> _Group:
        """Return the Pods by place, in order of names: the first of a crowd must not depend on
        which came first."""
        pods = [
            pod
            for of in kins
            for pod in self._lister.placed_pods(of)
            if self._terminating or pod.deleted is None
        ]
        if len(kins) > 1:
            pods.sort(key=_named)
        found: dict[Place, list[Pod]] = {}
        for pod in pods:
            place = rule.places[pod.node_name]
            if place is not None and (places is None or place in places):
                found.setdefault(place, []).append(pod)
        return found

    def _enter(self, rule: Rule, place: Place, holding: Iterable[Pod], kept: Iterable[Pod]) -> None:
        holders, kept_away = Crowd(), Crowd()
        for pod in holding:
            self._holders[pod.uid] = pod
            holders.add(self._itself(pod), pod)
        for pod in kept:
            kept_away.add(self._itself(pod), pod)
        rule.holders[place] = holders
        rule.kept_away[place] = kept_away

    def _rules_of(self, owner: Kin) -> Sequence[Rule]:
        """Return the rules of a kind of Pods, the same for all kinds that share their terms."""
        terms, labels = owner.template.anti_affinity, owner.template.labels
        compared = tuple(
            labels.get(key)
            for term in terms
            for key in (*(term.match_label_keys or ()), *(term.mismatch_label_keys or ()))
        )
        name = (id(terms), owner.namespace, compared)
        known = self._rules.get(name)
        if known is None:
            known = self._rules[name] = [
                Rule(term, owner, self._reached(term, owner), self._places_for(term.topology_key))
                for term in self._readable(terms)
            ]
        return known

    def _places_for(self, topology_key: str) -> Places:
        if topology_key not in self._places:
            self._places[topology_key] = Places(
                topology_key, self._nodes, only_labelled=self._corrected
            )
        return self._places[topology_key]

    def _reached(self, term: PodAffinityTerm, owner: Kin) -> Iterable[str]:
        chooses = self._corrected and term.namespace_selector is not None
        namespaces = self._lister.namespaces() if chooses else ()
        return reached(term, owner.namespace, namespaces, by_labels=self._corrected)

    def _readable(self, terms: Iterable[PodAffinityTerm]) -> Iterator[PodAffinityTerm]:
        """Yield the terms before the first that is malformed: upstream looks no further."""
        for term in terms:
            selectors = [term.label_selector, term.namespace_selector if self._corrected else None]
            try:
                for selector in selectors:
                    if selector is not None:
                        check_selector(selector)
            except SelectorError:
                return
            if term.label_selector is not None:
                yield term

    def _tables(self) -> Mapping[str, RuleTable]:
        """Return the rules by the namespaces into which they look."""
        tables: dict[str, RuleTable] = {}
        for rules in self._rules.values():
            for rule in rules:
                for name in rule.namespaces:
                    tables.setdefault(name, RuleTable()).add(rule)
        return tables

    def _find_kept_away(self) -> Iterator[None]:
        tables = self._tables()
        for name in sorted(tables):
            for number, template in enumerate(tuple(self._lister.templates_in(name)), 1):
                of = Kin(name, template)
                if rules := self._rules_about(of, tables):
                    self._broken[of] = rules
                    for rule in rules:
                        rule.kept.append(of)
                if number % _STEP == 0:
                    yield

    def _rules_about(self, of: Kin, tables: Mapping[str, RuleTable]) -> Sequence[Rule]:
        """Return the rules that keep Pods of a kind away."""
        table = tables.get(of.namespace)
        if table is None:
            return ()
        rules = [rule for rule in table.about(of.template) if self._keeps_away(rule, of)]
        return rules if rules and self._counts(of) else ()

    def _keeps_away(self, rule: Rule, other: Kin) -> bool:
        if not self._corrected:
            return matches(rule.term.label_selector, other.template.labels)
        return chooses(rule.term, rule.owner, other, self._labels_of)


def _drop(crowds: Mapping[Place, Crowd], place: Place | None, itself: str, pod: Pod) -> None:
    crowd = crowds.get(place) if place is not None else None
    if crowd is not None:
        crowd.drop(itself, pod.uid)
