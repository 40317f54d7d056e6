"""Whose Pods crowd where: duplicates, and the owner keys that they are counted by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod, PodTemplate
from reactive_descheduler.cache.lister import Lister


class OwnerKey(NamedTuple):
    """Whose Pods are counted together: those of one owner with the same images."""

    namespace: str
    kind: str
    name: str
    images: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Crowd(NamedTuple):
    """The Pods that count for one owner key."""

    owner: OwnerKey
    on: Mapping[str, Sequence[Pod]]
    """By node; nodes and Pods in order."""
    nodes: Sequence[Node]
    """That they are to be spread over."""

    @property
    def average(self) -> int:
        return -(-sum(map(len, self.on.values())) // len(self.nodes))

    def above(self, level: int) -> int:
        """Return how many Pods are on nodes over the level."""
        return sum(len(pods) - level for pods in self.on.values() if len(pods) > level)


def crowded(
    lister: Lister, owners: Iterable[str], in_scope: Callable[[Pod], bool]
) -> dict[OwnerKey, list[Pod]]:
    """Return the Pods of these owners that are in scope, by owner key and in order of nodes, where
    there are duplicates.

    A Pod that names an owner twice is there twice, as upstream has it.
    """
    found: dict[OwnerKey, list[Pod]] = {}
    for owner in owners:
        pods = lister.pods_of_named(owner)
        if len({pod.node_name for pod in pods}) == len(pods):
            continue  # so it is with most
        groups: dict[OwnerKey, list[Pod]] = {}
        for pod in sorted(filter(in_scope, pods), key=lambda pod: pod.node_name):
            for kind, name, images in _owners(pod.template):
                if owner == f"{pod.namespace}/{kind}/{name}":
                    key = OwnerKey(pod.namespace, kind, name, images)
                    groups.setdefault(key, []).append(pod)
        found |= {key: group for key, group in groups.items() if _some_duplicate(group)}
    return found


def duplicates(pods: Iterable[Pod]) -> list[Pod]:
    """Return the Pods of one node without the first of each kind."""
    first: dict[tuple[str, ...], Pod] = {}
    return [pod for pod in pods if first.setdefault(_identity(pod.template), pod) is not pod]


def _some_duplicate(pods: Iterable[Pod]) -> bool:
    first: dict[tuple[str, tuple[str, ...]], Pod] = {}
    return any(
        first.setdefault((pod.node_name, _identity(pod.template)), pod) is not pod for pod in pods
    )


@lru_cache(maxsize=10_000)
def _owners(template: PodTemplate) -> tuple[tuple[str, str, str], ...]:
    """Return kind, name and images for each owner reference, as they are written."""
    images = "#".join(sorted(template.images))
    return tuple((owner.kind, owner.name, images) for owner in template.owners)


@lru_cache(maxsize=10_000)
def _identity(template: PodTemplate) -> tuple[str, ...]:
    """Return what makes two Pods of a namespace on one node duplicates."""
    return tuple(
        sorted(
            f"{owner.kind}/{owner.name}/{image}"
            for owner in template.owners
            for image in template.images
        )
    )
