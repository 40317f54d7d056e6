"""What node fit asks about the present state: who stands where, and whose room is promised."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Kin, Pod, PodTemplate
from reactive_descheduler.api.scheduling.spread import SpreadOccupancy
from reactive_descheduler.api.surroundings import (
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
)

T = TypeVar("T")


class Occupancy(SpreadOccupancy, Protocol):
    """One state of a cluster; the cache's Lister is one."""

    def pods_on(self, node_name: str, /) -> Iterable[Pod]: ...
    def pods_in(self, namespace: str, /) -> Iterable[Pod]: ...

    def unreadable(self, namespace: str, /) -> Iterable[Pod]:
        """Return the Pods of a namespace that cannot be read."""

    def unreadable_on(self, node_name: str, /) -> Sequence[Pod]:
        """Return those that are bound to a node, as far as that is known."""

    def requests_on(self, node_name: str, /) -> Mapping[str, int]:
        """Return what the node's active Pods request in all, in billionths of the base unit."""

    def active_pods_on(self, node_name: str, /) -> int: ...

    def promised_with_affinity(self) -> Collection[Pod]:
        """Return the Pods to which room is promised, each on the node where: of those that have to
        be near others."""

    def promised_on(self, node_name: str, /) -> Sequence[Pod]: ...

    def promised_requests_on(self, node_name: str, /) -> Mapping[str, int]:
        """Return what those with a promise on a node request in all."""

    def promised_apart(self, namespace: str, /) -> Sequence[Kin]:
        """Return whose required anti-affinity may look into a namespace, of those to come."""

    def kept_apart(self, namespace: str, /) -> Sequence[Kin]:
        """Return whose required anti-affinity may look into a namespace."""

    def templates_in(self, namespace: str, /) -> Iterable[PodTemplate]:
        """Return the templates of the active Pods on nodes in a namespace."""

    def placed_pods(self, kin: Kin, /) -> Iterable[Pod]:
        """Return the active Pods on nodes of one namespace and template."""

    def apart_pods(self, kin: Kin, /) -> Iterable[Pod]:
        """Return the active Pods on nodes of one of those."""

    def node(self, name: str, /) -> Node | None: ...
    def namespace(self, name: str, /) -> Namespace | None: ...
    def namespaces(self) -> Iterable[Namespace]: ...
    def claim(self, namespace: str, name: str, /) -> PersistentVolumeClaim | None: ...
    def volume(self, name: str, /) -> PersistentVolume | None: ...
