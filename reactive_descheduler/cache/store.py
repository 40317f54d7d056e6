"""The objects of the cluster as last seen, with their indexes and counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import structs

from reactive_descheduler.api.changes import Change
from reactive_descheduler.api.meta import KubeObject
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.surroundings import Namespace, PodDisruptionBudget
from reactive_descheduler.cache.apart import ApartIndex
from reactive_descheduler.cache.budgets import BudgetIndex
from reactive_descheduler.cache.counts import NodeRequests
from reactive_descheduler.cache.indexes import (
    PodIndex,
    by_joint_owner,
    by_named_owner,
    by_namespace,
    by_node,
    by_owner,
    by_terminating,
    by_unreadable,
)
from reactive_descheduler.cache.joined import JoinedNamespaces
from reactive_descheduler.cache.placements import Placements
from reactive_descheduler.cache.topology import Topology

T = TypeVar("T")
Name = tuple[str, str]
"""Namespace (empty for what is cluster-wide) and name."""


def kind_of(found: KubeObject) -> str:
    """Return the kind of a read view: its class is named after it."""
    return type(found).__name__


class Store:
    """Objects by kind and name, Pods by UID too. Not thread-safe: it lives on the event loop.

    Every method that changes something returns the changes it made; store, indexes and counts agree
    again when it returns.
    """

    def __init__(self) -> None:
        self._objects: dict[str, dict[Name, KubeObject]] = {}
        self._pods: dict[str, Pod] = {}
        self._nodes: tuple[Node, ...] | None = ()
        self.pods_by_node = PodIndex(by_node)
        self.pods_by_namespace = PodIndex(by_namespace)
        self.pods_by_owner = PodIndex(by_owner)
        self.pods_by_named_owner = PodIndex(by_named_owner)
        self.pods_by_joint_owner = PodIndex(by_joint_owner)
        self.terminating_pods = PodIndex(by_terminating)
        self.unreadable_pods = PodIndex(by_unreadable)
        self.apart = ApartIndex()
        self.joined = JoinedNamespaces()
        self.requests = NodeRequests()
        self.placements = Placements()
        self.topology = Topology()
        self.budgets = BudgetIndex()
        self.version = 0
        """Moves with every change."""
        self.nodes_version = 0
        """Moves when a node comes or goes, or anything but its version differs on it."""

    def put(self, found: KubeObject) -> list[Change]:
        """Take in an object that was added or modified.

        What is known already, by UID and version, makes no change: a stream repeats itself after a
        reconnect. A known name under another UID is the old object's end and the new one's start.
        """
        kind = kind_of(found)
        old = self.get(kind, found.namespace, found.name)
        if old is None:
            return [self._set(kind, None, found)]
        if old.uid != found.uid:
            return [self._set(kind, old, None), self._set(kind, None, found)]
        if found.resource_version and old.resource_version == found.resource_version:
            return []
        return [self._set(kind, old, found)]

    def remove(self, found: KubeObject) -> list[Change]:
        """Take out an object that was deleted; `found` is its last state.

        Only the very object goes: if the name belongs to another UID by now, nothing happens.
        """
        kind = kind_of(found)
        old = self.get(kind, found.namespace, found.name)
        if old is None or (old.uid != found.uid and not found.opaque):
            return []
        return [self._set(kind, old, None)]

    def missing(self, kind: str, listed: Iterable[KubeObject]) -> list[KubeObject]:
        """Return the known objects of a kind that a new list no longer has."""
        names = {(each.namespace, each.name) for each in listed}
        return [each for name, each in self._objects.get(kind, {}).items() if name not in names]

    def get(self, kind: str, namespace: str, name: str) -> KubeObject | None:
        objects = self._objects.get(kind)
        return objects.get((namespace, name)) if objects is not None else None

    def all(self, kind: str) -> Iterable[KubeObject]:
        return self._objects.get(kind, {}).values()

    def pods(self) -> Mapping[str, Pod]:
        """Return all Pods by UID. A live view."""
        return self._pods

    def pods_of(self, index: PodIndex, group: str) -> list[Pod]:
        """Return the Pods of one group of an index, in order of (namespace, name)."""
        pods = self._pods
        return [pods[uid] for uid in index.uids(group)]

    def nodes(self) -> Sequence[Node]:
        """Return all nodes, by name."""
        if self._nodes is None:
            nodes = [each for each in self.all("Node") if isinstance(each, Node)]
            self._nodes = tuple(sorted(nodes, key=lambda node: node.name))
        return self._nodes

    def _set(self, kind: str, old: KubeObject | None, new: KubeObject | None) -> Change:
        change = Change(kind, old, new)
        objects = self._objects.setdefault(kind, {})
        name = (change.object.namespace, change.object.name)
        if new is not None:
            objects[name] = new
        else:
            del objects[name]
        self._index(old, new)
        self.version += 1
        return change

    def _index(self, old: KubeObject | None, new: KubeObject | None) -> None:
        if isinstance(old, Pod) or isinstance(new, Pod):
            self._index_pod(_one(Pod, old), _one(Pod, new))
        elif isinstance(old, Node) or isinstance(new, Node):
            self._nodes = None
            self.nodes_version += not _looks_alike(_one(Node, old), _one(Node, new))
            self.topology.update(_one(Node, old), _one(Node, new))
        elif isinstance(old, PodDisruptionBudget) or isinstance(new, PodDisruptionBudget):
            self.budgets.update(_one(PodDisruptionBudget, old), _one(PodDisruptionBudget, new))
        elif isinstance(old, Namespace) or isinstance(new, Namespace):
            self.joined.namespaces_moved()

    def _index_pod(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None:
            self._pods[new.uid] = new
        elif old is not None:
            del self._pods[old.uid]
        if old is not None and new is not None and _stands_alike(old, new):
            return
        for index in (
            self.pods_by_node,
            self.pods_by_namespace,
            self.pods_by_owner,
            self.pods_by_named_owner,
            self.pods_by_joint_owner,
            self.terminating_pods,
            self.unreadable_pods,
        ):
            index.update(old, new)
        self.apart.update(old, new)
        self.joined.update(old, new)
        self.requests.update(old, new)
        self.placements.update(old, new)
        if new is None and old is not None:
            left = self.pods_by_namespace.count(old.namespace)
            self.budgets.trim(old.namespace, left)


def _one(form: type[T], found: KubeObject | None) -> T | None:
    return found if isinstance(found, form) else None


def _stands_alike(old: Pod, new: Pod) -> bool:
    """Say whether no index and no count can tell the two apart: so it is for most changes."""
    return (
        old.template is new.template
        and old.node_name == new.node_name
        and old.active == new.active
        and (old.deleted is None) == (new.deleted is None)
        and bool(old.opaque) == bool(new.opaque)
    )


def _looks_alike(old: Node | None, new: Node | None) -> bool:
    if old is None or new is None:
        return old is new
    return structs.replace(old, resource_version=new.resource_version) == new
