"""Which Pods are where: named index functions, and the index that keeps their answers up to date.

An index holds UIDs, not views, so it need not move when a view is replaced and cannot hold a stale
one.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from reactive_descheduler.api.pod import Pod, PodTemplate

IndexFunction = Callable[[Pod], Collection[str]]
"""Returns the groups a Pod belongs to. What it reads must be among what the store compares before
it leaves the indexes alone: node, template, being active, terminating, readable."""


def by_node(pod: Pod) -> Collection[str]:
    return (pod.node_name,) if pod.node_name else ()


def by_namespace(pod: Pod) -> Collection[str]:
    return (pod.namespace,)


def by_owner(pod: Pod) -> Collection[str]:
    """By the UID of each owner, controller or not (spec/evictor 2.3, row 10)."""
    return {owner.uid for owner in pod.template.owners}


def by_terminating(pod: Pod) -> Collection[str]:
    """By the namespace, of those that are on their way from a node."""
    return (pod.namespace,) if pod.deleted is not None and pod.active and pod.node_name else ()


def by_unreadable(pod: Pod) -> Collection[str]:
    """By the namespace, of those that cannot be read."""
    return (pod.namespace,) if pod.opaque else ()


def by_named_owner(pod: Pod) -> Collection[str]:
    """By namespace, kind and name of each owner: an owner that came back by its name is the
    same."""
    return [f"{pod.namespace}/{name}" for name in owner_names(pod.template)]


def by_joint_owner(pod: Pod) -> Collection[str]:
    """The same, of Pods that have several owners: hardly any."""
    return by_named_owner(pod) if len(owner_names(pod.template)) > 1 else ()


@lru_cache(maxsize=10_000)
def owner_names(template: PodTemplate) -> tuple[str, ...]:
    """Return `kind/name` of each owner, in order of the alphabet."""
    return tuple(sorted({f"{owner.kind}/{owner.name}" for owner in template.owners}))


class PodIndex:
    """UIDs of Pods by one index function, each group in order of namespace and name when asked."""

    def __init__(self, function: IndexFunction) -> None:
        self._function = function
        self._groups: dict[str, dict[str, tuple[str, str]]] = {}
        self._ordered: dict[str, list[str]] = {}

    def update(self, old: Pod | None, new: Pod | None) -> None:
        """Follow one change of one Pod; both sides have the same UID."""
        before = self._function(old) if old is not None else ()
        after = self._function(new) if new is not None else ()
        for group in before:
            if group not in after:
                self._leave(group, old)
        for group in after:
            if group not in before:
                self._enter(group, new)

    def count(self, group: str) -> int:
        return len(self._groups.get(group, ()))

    def groups(self) -> Collection[str]:
        """Return the groups that have members. A live view."""
        return self._groups.keys()

    def uids(self, group: str) -> Sequence[str]:
        """Return the group in order of (namespace, name). A live view.

        Sorted when first asked for, and from then on kept in order.
        """
        ordered = self._ordered.get(group)
        if ordered is None:
            members = self._groups.get(group)
            if members is None:
                return ()
            ordered = self._ordered[group] = sorted(members, key=members.__getitem__)
        return ordered

    def snapshot(self) -> Mapping[str, frozenset[str]]:
        """Return every group that has members, for comparison with a recount."""
        return {group: frozenset(members) for group, members in self._groups.items()}

    def recount(self, pods: Iterable[Pod]) -> Mapping[str, frozenset[str]]:
        """Return what `snapshot` must be for these Pods, worked out from scratch."""
        groups: dict[str, set[str]] = {}
        for pod in pods:
            for group in self._function(pod):
                groups.setdefault(group, set()).add(pod.uid)
        return {group: frozenset(uids) for group, uids in groups.items()}

    def _enter(self, group: str, pod: Pod | None) -> None:
        assert pod is not None  # only a side that is there has groups
        members = self._groups.setdefault(group, {})
        members[pod.uid] = (pod.namespace, pod.name)
        ordered = self._ordered.get(group)
        if ordered is not None:
            insort(ordered, pod.uid, key=members.__getitem__)

    def _leave(self, group: str, pod: Pod | None) -> None:
        assert pod is not None
        members = self._groups[group]
        ordered = self._ordered.get(group)
        if ordered is not None:
            at = bisect_left(ordered, members[pod.uid], key=members.__getitem__)
            del ordered[ordered.index(pod.uid, at)]
        del members[pod.uid]
        if not members:
            del self._groups[group]
            self._ordered.pop(group, None)
