"""After any sequence of events, namespaces are joined as a fresh look at all terms would join them;
and each change that joins or parts some gives the keys of what they were and of what they are."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec import structs

from reactive_descheduler.api.changes import Change, WatchEvent, WatchEventType
from reactive_descheduler.api.meta import KubeObject
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.selectors import matches
from reactive_descheduler.api.surroundings import Namespace
from reactive_descheduler.cache.informer import Informer
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.store import Store
from reactive_descheduler.config.corrections import ALL, NONE
from reactive_descheduler.framework.strategy import Strategy
from reactive_descheduler.strategies.remove_pods_violating_inter_pod_anti_affinity import (
    AntiAffinityArguments,
    RemovePodsViolatingInterPodAntiAffinity,
)
from reactive_descheduler.triggers import cluster_events
from tests.builders import make_namespace, make_pod, view

NAMES = ("a", "b", "c", "d")
RED, BLUE = {"team": "red"}, {"team": "blue"}
TERMS: tuple[dict[str, object], ...] = (
    {},
    {"namespaces": ["a"]},
    {"namespaces": ["b", "d"]},
    {"namespaceSelector": {"matchLabels": RED}},
    {"namespaceSelector": {"matchLabels": BLUE}, "namespaces": ["c"]},
    {"namespaceSelector": {}},
)
Groups = frozenset[tuple[str, ...]]

terms = st.lists(st.sampled_from(TERMS), max_size=2)
pods = st.fixed_dictionaries(
    {
        "name": st.sampled_from(("p1", "p2")),
        "namespace": st.sampled_from(NAMES),
        "uid": st.sampled_from(("u1", "u2")),
        "node": st.sampled_from(("", "n1", "n1")),
        "phase": st.sampled_from(("Running", "Running", "Failed")),
    }
)


class Joined(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.store = Store()
        self.lister = Lister(self.store)
        self.informer = Informer(self.store, self.follow)
        self.version = 0
        self.told: dict[bool, set[str]] = {True: set(), False: set()}
        self.strategies: dict[bool, Strategy] = {
            by_labels: RemovePodsViolatingInterPodAntiAffinity(
                AntiAffinityArguments(), profile=0, corrections=ALL if by_labels else NONE
            )
            for by_labels in (True, False)
        }
        self.before = {by_labels: self.fresh(by_labels) for by_labels in (True, False)}

    def follow(self, change: Change) -> None:
        for by_labels, strategy in self.strategies.items():
            actions = cluster_events(change)
            for subscription in strategy.EVENTS:
                if subscription.action & actions:
                    keys = strategy.keys_for(subscription.scope, change, self.lister)
                    self.told[by_labels].update(key.unit[0] for key in keys)

    @rule(drawn=pods, chosen=terms, gone=st.sampled_from((False, False, True)))
    def change_pod(
        self, drawn: dict[str, str], chosen: list[dict[str, object]], gone: bool
    ) -> None:
        required = {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "labelSelector": {}, **term} for term in chosen
            ]
        }
        uid = "-".join((drawn["namespace"], drawn["name"], drawn["uid"]))
        affinity = {"podAntiAffinity": required} if chosen else {}
        self.send(view(make_pod(**{**drawn, "uid": uid}, affinity=affinity)), gone)  # type: ignore[arg-type]

    @rule(
        name=st.sampled_from(NAMES),
        labels=st.sampled_from((RED, BLUE, {})),
        gone=st.sampled_from((False, False, True)),
        opaque=st.sampled_from((False, False, True)),
    )
    def change_namespace(self, name: str, labels: dict[str, str], gone: bool, opaque: bool) -> None:
        manifest = make_namespace(name, labels=labels)
        metadata = manifest["metadata"]
        assert isinstance(metadata, dict)
        metadata |= {"labels": 1} if opaque else {}
        self.send(view(manifest), gone)

    def send(self, found: KubeObject, gone: bool) -> None:
        self.version += 1
        kind = WatchEventType.DELETED if gone else WatchEventType.MODIFIED
        for told in self.told.values():
            told.clear()
        self.informer.apply(WatchEvent(kind, _renewed(found, str(self.version)), str(self.version)))
        for by_labels, told in self.told.items():
            after = self.fresh(by_labels)
            moved = self.before[by_labels] ^ after
            assert {group[0] for group in moved} <= told
            self.before[by_labels] = after

    @invariant()
    def namespaces_are_joined_as_a_fresh_look_says(self) -> None:
        for by_labels in (True, False):
            for group in self.fresh(by_labels):
                for name in group:
                    joined = self.lister.joined_namespaces(name, by_labels=by_labels)
                    assert tuple(joined) == group

    @invariant()
    def indexes_equal_a_recount(self) -> None:
        known = list(self.store.pods().values())
        assert self.store.joined.snapshot() == self.store.joined.recount(known)
        assert self.store.apart.snapshot() == self.store.apart.recount(known)

    def fresh(self, by_labels: bool) -> Groups:
        """Join namespaces one pair after the other until nothing moves any more."""
        spaces = [each for each in self.store.all("Namespace") if isinstance(each, Namespace)]
        groups = {name: {name} for name in NAMES}
        for pod in self.store.pods().values():
            if not (pod.node_name and pod.active):
                continue
            for name in _looked_into(pod, spaces, by_labels):
                merged = groups[pod.namespace] | groups[name]
                groups.update(dict.fromkeys(merged, merged))
        return frozenset(tuple(sorted(group)) for group in groups.values())


def _looked_into(pod: Pod, spaces: list[Namespace], by_labels: bool) -> set[str]:
    found: set[str] = set()
    for term in pod.template.anti_affinity:
        found.update(term.namespaces or ())
        selector = term.namespace_selector
        if by_labels and selector is not None:
            found.update(s.name for s in spaces if not s.opaque and matches(selector, s.labels))
    return found


def _renewed(found: KubeObject, version: str) -> KubeObject:
    return structs.replace(found, resource_version=version)  # type: ignore[type-var]


TestJoined = Joined.TestCase
TestJoined.settings = settings(max_examples=60)
