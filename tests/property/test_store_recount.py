"""After any sequence of events, every index and count equals a recount from scratch."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from reactive_descheduler.api.changes import Change, WatchEvent, WatchEventType
from reactive_descheduler.api.pod import Kin, Pod
from reactive_descheduler.api.selectors import matches
from reactive_descheduler.api.surroundings import PodDisruptionBudget
from reactive_descheduler.cache.gone import GonePods
from reactive_descheduler.cache.informer import Informer
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.store import Store
from tests.builders import Manifest, budget_view, make_budget, make_pod, owner, pod_view

NODES = ("", "n1", "n2")
NAMESPACES = ("x", "y")
OWNERS = ("a", "b")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
APART: tuple[Manifest, ...] = tuple(
    {"topologyKey": "zone", "labelSelector": {}, **more}
    for more in ({}, {"namespaces": ["y"]}, {"namespaces": ["x"], "namespaceSelector": {}})
)

names = st.sampled_from(("p1", "p2", "p3", "p4"))
namespaces = st.sampled_from(NAMESPACES)
pods = st.fixed_dictionaries(
    {
        "name": names,
        "namespace": namespaces,
        "uid": st.sampled_from(("u1", "u2")),
        "node": st.sampled_from(NODES),
        "phase": st.sampled_from(("Pending", "Running", "Succeeded", "Failed")),
        "app": st.sampled_from(("web", "db")),
        "cpu": st.sampled_from((None, "0", "100m", "1")),
        "owners": st.lists(st.sampled_from(OWNERS), max_size=2),
        "apart": st.sampled_from((None, None, *APART)),
        "deleted": st.sampled_from((False, False, True)),
        "opaque": st.sampled_from((False, False, False, True)),
    }
)


class Clusters(RuleBasedStateMachine):
    """Feeds one informer; what it must know stands beside it, by name, as plain views."""

    @initialize()
    def start(self) -> None:
        self.store = Store()
        self.lister = Lister(self.store)
        self.mirror: dict[tuple[str, str], Pod] = {}
        self.told: dict[tuple[str, str], Pod] = {}
        self.budgets: dict[tuple[str, str], PodDisruptionBudget] = {}
        self.informer = Informer(self.store, self.follow)
        self.version = 0

    def follow(self, change: Change) -> None:
        """Rebuild the Pods from the changes alone: each starts where the one before ended."""
        if change.kind != "Pod":
            return
        key = (change.object.namespace, change.object.name)
        assert self.told.get(key) is change.old
        if isinstance(change.new, Pod):
            self.told[key] = change.new
        else:
            del self.told[key]

    def make(self, drawn: dict[str, object]) -> Pod:
        self.version += 1
        return pod_view(manifest(drawn, str(self.version)))

    @rule(drawn=pods, kind=st.sampled_from((WatchEventType.ADDED, WatchEventType.MODIFIED)))
    def arrive(self, drawn: dict[str, object], kind: WatchEventType) -> None:
        pod = self.make(drawn)
        self.informer.apply(WatchEvent(kind, pod, pod.resource_version))
        self.mirror[pod.namespace, pod.name] = pod

    @rule(drawn=pods)
    def delete(self, drawn: dict[str, object]) -> None:
        pod = self.make(drawn)
        self.informer.apply(WatchEvent(WatchEventType.DELETED, pod, pod.resource_version))
        known = self.mirror.get((pod.namespace, pod.name))
        # Of one that cannot be read nor can its UID.
        if known is not None and (known.uid == pod.uid or pod.opaque):
            del self.mirror[pod.namespace, pod.name]

    @rule(data=st.data())
    def replay(self, data: st.DataObject) -> None:
        if self.mirror:
            pod = self.mirror[data.draw(st.sampled_from(sorted(self.mirror)))]
            event = WatchEvent(WatchEventType.MODIFIED, pod, pod.resource_version)
            assert self.informer.apply(event) == []

    @rule(
        drawn=st.lists(pods, max_size=4, unique_by=lambda each: (each["namespace"], each["name"])),
        kept=st.booleans(),
    )
    def relist(self, drawn: list[dict[str, object]], kept: bool) -> None:
        listed = {(pod.namespace, pod.name): pod for pod in map(self.make, drawn)}
        self.mirror = {**self.mirror, **listed} if kept else listed
        deque(self.informer.replace("Pod", self.mirror.values(), str(self.version)), maxlen=0)

    @rule(
        name=st.sampled_from(("b1", "b2")), namespace=namespaces, app=st.sampled_from(("web", ""))
    )
    def budget(self, name: str, namespace: str, app: str) -> None:
        self.version += 1
        selector = {"matchLabels": {"app": app}} if app else {}
        made = budget_view(
            make_budget(name, namespace=namespace, selector=selector, version=str(self.version))
        )
        self.informer.apply(WatchEvent(WatchEventType.MODIFIED, made, made.resource_version))
        self.budgets[namespace, name] = made

    @rule(data=st.data())
    def end_budget(self, data: st.DataObject) -> None:
        if self.budgets:
            gone = self.budgets.pop(data.draw(st.sampled_from(sorted(self.budgets))))
            self.informer.apply(WatchEvent(WatchEventType.DELETED, gone, gone.resource_version))

    @invariant()
    def objects_are_what_was_sent(self) -> None:
        assert {(pod.namespace, pod.name): pod for pod in self.lister.pods()} == self.mirror
        assert self.told == self.mirror

    @invariant()
    def indexes_and_counts_equal_a_recount(self) -> None:
        known = list(self.mirror.values())
        for index in (
            self.store.pods_by_node,
            self.store.pods_by_namespace,
            self.store.pods_by_owner,
            self.store.pods_by_named_owner,
            self.store.pods_by_joint_owner,
            self.store.terminating_pods,
            self.store.unreadable_pods,
        ):
            assert index.snapshot() == index.recount(known)
        assert self.store.requests.snapshot() == self.store.requests.recount(known)
        assert self.store.apart.snapshot() == self.store.apart.recount(known)

    @invariant()
    def budgets_of_each_pod_equal_a_fresh_look(self) -> None:
        for pod in self.mirror.values():
            fresh = [
                budget
                for (namespace, _), budget in sorted(self.budgets.items())
                if namespace == pod.namespace and matches(budget.selector, pod.template.labels)
            ]
            assert list(self.lister.budgets_of(pod)) == fresh

    @rule(data=st.data())
    def less_equals_a_store_without_them(self, data: st.DataObject) -> None:
        by_uid = {pod.uid: pod for pod in self.mirror.values()}
        gone = data.draw(st.sets(st.sampled_from(sorted(by_uid)))) if by_uid else set()
        lister = self.lister.less(GonePods(by_uid[uid] for uid in gone))
        store = Store()
        for pod in self.mirror.values():
            if pod.uid not in gone:
                store.put(pod)
        assert faces(lister) == faces(Lister(store))


def keeping_apart(lister: Lister, namespace: str) -> dict[Kin, set[str]]:
    """Return whose terms may look into a namespace, and which Pods these are."""
    found = {
        kin: {pod.uid for pod in lister.apart_pods(kin)} for kin in lister.kept_apart(namespace)
    }
    return {kin: uids for kin, uids in found.items() if uids}


def faces(lister: Lister) -> list[object]:
    """Return all that a lister says about Pods."""
    uids = {
        f"{namespace}-{name}-{uid}"
        for namespace in NAMESPACES
        for name in ("p1", "p2", "p3", "p4")
        for uid in ("u1", "u2")
    }
    owners = [f"uid-replicaset-{name}" for name in OWNERS]
    named = [f"{namespace}/ReplicaSet/{name}" for namespace in NAMESPACES for name in OWNERS]
    return [
        {pod.uid for pod in lister.pods()},
        {uid for uid in uids if lister.pod(uid)},
        [lister.pods_on(node) for node in NODES],
        [lister.pods_in(namespace) for namespace in NAMESPACES],
        [lister.terminating(namespace) for namespace in NAMESPACES],
        [lister.unreadable(namespace) for namespace in NAMESPACES],
        [lister.owned_pods(uid) for uid in owners],
        [lister.owned_by(uid) for uid in owners],
        [lister.pods_of_named(owner) for owner in named],
        [lister.joint_pods_of(owner) for owner in named],
        [dict(lister.requests_on(node)) for node in NODES],
        [lister.active_pods_on(node) for node in NODES],
        [keeping_apart(lister, namespace) for namespace in NAMESPACES],
    ]


def manifest(drawn: dict[str, object], version: str) -> Manifest:
    name, namespace, cpu = str(drawn["name"]), str(drawn["namespace"]), drawn["cpu"]
    owners = drawn["owners"]
    assert isinstance(owners, list)
    made = make_pod(
        name,
        namespace=namespace,
        uid=f"{namespace}-{name}-{drawn['uid']}",
        version=version,
        node=str(drawn["node"]),
        phase=str(drawn["phase"]),
        labels={"app": str(drawn["app"])},
        requests={} if cpu is None else {"cpu": str(cpu)},
        owners=[owner(each) for each in owners],
        affinity={"podAntiAffinity": {_REQUIRED: [drawn["apart"]]}} if drawn["apart"] else {},
        deleted="2026-01-01T00:00:00Z" if drawn["deleted"] else None,
    )
    return made | {"status": 1} if drawn["opaque"] else made


@pytest.mark.timeout(120)
def test_what_is_kept_equals_a_recount() -> None:
    usual = settings(max_examples=150, stateful_step_count=50)
    run_state_machine_as_test(Clusters, settings=usual)
