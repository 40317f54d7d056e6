"""Room that is promised: Pods that went or are about to go, on the nodes that would take them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from reactive_descheduler.api.pod import Kin, Pod, kin
from reactive_descheduler.cache.apart import ApartIndex
from reactive_descheduler.cache.counts import Amounts, NodeRequests


class PromisedPods:
    """Pods by UID and by node, each as it would stand there; a lister over it is live."""

    def __init__(self) -> None:
        self._pods: dict[str, Pod] = {}
        self._by_node: dict[str, dict[str, Pod]] = {}
        self._kins: dict[str, dict[Kin, dict[str, Pod]]] = {}
        self._with_affinity: dict[str, Pod] = {}
        self._apart = ApartIndex()
        self._room = NodeRequests()
        self._moves = 0

    @property
    def version(self) -> int:
        """Moves whenever a promise is made or ends."""
        return self._moves

    def promise(self, pod: Pod, node_name: str) -> None:
        """Promise the Pod room on a node, in place of what it was promised before."""
        self.end(pod.uid)
        self._moves += 1
        there = msgspec.structs.replace(pod, node_name=node_name, deleted=None)
        self._pods[pod.uid] = there
        self._by_node.setdefault(node_name, {})[pod.uid] = there
        self._room.update(None, there)
        of_namespace = self._kins.setdefault(pod.namespace, {})
        of_namespace.setdefault(kin(pod), {})[pod.uid] = there
        self._apart.update(None, there)
        if pod.template.pod_affinity:
            self._with_affinity[pod.uid] = there

    def end(self, uid: str) -> Pod | None:
        """End a promise; return the Pod as it would have stood there."""
        pod = self._pods.pop(uid, None)
        if pod is None:
            return None
        self._moves += 1
        self._with_affinity.pop(uid, None)
        self._apart.update(pod, None)
        self._leave_kin(pod)
        self._room.update(pod, None)
        on_node = self._by_node[pod.node_name]
        del on_node[uid]
        if not on_node:
            del self._by_node[pod.node_name]
        return pod

    def __contains__(self, uid: object) -> bool:
        return uid in self._pods

    def all(self) -> Collection[Pod]:
        return self._pods.values()

    def with_affinity(self) -> Collection[Pod]:
        """Return those that have to be near others."""
        return self._with_affinity.values()

    def kins(self, namespace: str) -> Collection[Kin]:
        return self._kins.get(namespace, {}).keys()

    def of(self, kin: Kin) -> Collection[Pod]:
        return self._kins.get(kin.namespace, {}).get(kin, {}).values()

    def apart(self, namespace: str) -> Sequence[Kin]:
        """Return whose required anti-affinity may look into a namespace."""
        return self._apart.looking_into(namespace)

    def on(self, node_name: str) -> Sequence[Pod]:
        return tuple(self._by_node.get(node_name, {}).values()) if self._by_node else ()

    def requests(self, node_name: str) -> Amounts:
        """Return what those on a node request in all. A live view."""
        return self._room.requests(node_name)

    def _leave_kin(self, pod: Pod) -> None:
        of_namespace = self._kins[pod.namespace]
        pods = of_namespace[kin(pod)]
        del pods[pod.uid]
        if not pods:
            del of_namespace[kin(pod)]
        if not of_namespace:
            del self._kins[pod.namespace]

    def __len__(self) -> int:
        return len(self._pods)


class PromisedOver(PromisedPods):
    """Promises on top of others, which go on living and are not touched; of other Pods than
    theirs."""

    def __init__(self, below: PromisedPods) -> None:
        super().__init__()
        self._below = below

    @property
    def version(self) -> int:
        return self._moves + self._below.version

    def __contains__(self, uid: object) -> bool:
        return super().__contains__(uid) or uid in self._below

    def all(self) -> Collection[Pod]:
        return [*super().all(), *self._below.all()]

    def with_affinity(self) -> Collection[Pod]:
        return [*super().with_affinity(), *self._below.with_affinity()]

    def kins(self, namespace: str) -> Collection[Kin]:
        return dict.fromkeys((*super().kins(namespace), *self._below.kins(namespace)))

    def of(self, kin: Kin) -> Collection[Pod]:
        return [*super().of(kin), *self._below.of(kin)]

    def apart(self, namespace: str) -> Sequence[Kin]:
        return tuple(dict.fromkeys((*super().apart(namespace), *self._below.apart(namespace))))

    def on(self, node_name: str) -> Sequence[Pod]:
        return (*super().on(node_name), *self._below.on(node_name))

    def requests(self, node_name: str) -> Amounts:
        own, below = super().requests(node_name), self._below.requests(node_name)
        if not own or not below:
            return own or below
        return {name: own.get(name, 0) + below.get(name, 0) for name in {**own, **below}}

    def __len__(self) -> int:
        return super().__len__() + len(self._below)
