"""Pods that count as gone although the store still has them: evicted in this pass, or assumed
going."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from reactive_descheduler.api.pod import Pod


class GonePods(Mapping[str, Pod]):
    """Pods by UID, grouped by node and by namespace, so that a lister over it is live and costs
    what these have."""

    def __init__(self, pods: Iterable[Pod] = ()) -> None:
        self._pods: dict[str, Pod] = {}
        self._by_node: dict[str, dict[str, Pod]] = {}
        self._by_namespace: dict[str, dict[str, Pod]] = {}
        self.version = 0
        """Moves whenever a Pod is added or dropped."""
        for pod in pods:
            self.add(pod)

    def add(self, pod: Pod) -> None:
        self.version += 1
        self._pods[pod.uid] = pod
        self._by_node.setdefault(pod.node_name, {})[pod.uid] = pod
        self._by_namespace.setdefault(pod.namespace, {})[pod.uid] = pod

    def drop(self, uid: str) -> None:
        pod = self._pods.pop(uid, None)
        if pod is None:
            return
        self.version += 1
        for groups, name in (
            (self._by_node, pod.node_name),
            (self._by_namespace, pod.namespace),
        ):
            del groups[name][uid]
            if not groups[name]:
                del groups[name]

    def on(self, node_name: str) -> Sequence[str]:
        """Return the UIDs of those on a node."""
        return tuple(self._by_node.get(node_name, ()))

    def within(self, namespace: str) -> Sequence[str]:
        """Return the UIDs of those of a namespace."""
        return tuple(self._by_namespace.get(namespace, ()))

    def __contains__(self, uid: object) -> bool:
        return uid in self._pods  # asked for every Pod that is looked at; the mixin's is slow

    def __getitem__(self, uid: str) -> Pod:
        return self._pods[uid]

    def __iter__(self) -> Iterator[str]:
        return iter(self._pods)

    def __len__(self) -> int:
        return len(self._pods)
