"""The read-only face of the store, for strategies, filters and gates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar, cast

from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Kin, Pod, PodTemplate
from reactive_descheduler.api.scheduling.spread import (
    DomainCounts,
    DomainShape,
    Spread,
    is_counted,
    shifted,
)
from reactive_descheduler.api.surroundings import (
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    PriorityClass,
)
from reactive_descheduler.cache.counts import takes_room, total_requests
from reactive_descheduler.cache.gone import GonePods
from reactive_descheduler.cache.indexes import PodIndex
from reactive_descheduler.cache.promised import PromisedOver, PromisedPods
from reactive_descheduler.cache.spread_groups import SpreadGroups
from reactive_descheduler.cache.store import Store

_NONE_GONE = GonePods()
_NONE_PROMISED = PromisedPods()
T = TypeVar("T")


class Lister:
    """Reads the store, live: what it returned before a change may be stale after it.

    With `gone`, Pods that are still there count as gone in every list, count and sum; whoever owns
    it may go on filling it. `promised` is read by node fit alone: these Pods stand nowhere yet.
    """

    def __init__(
        self,
        store: Store,
        gone: GonePods = _NONE_GONE,
        promised: PromisedPods = _NONE_PROMISED,
    ) -> None:
        self._store = store
        self._gone = gone
        self._promised = promised
        self._known: dict[Hashable, object] = {}
        self._known_at = -1

    @property
    def version(self) -> int:
        """Moves with every change that was applied to the store, of what counts as gone, and of
        what is promised."""
        return self._store.version + self._gone.version + self._promised.version

    @property
    def nodes_version(self) -> int:
        """Moves when a node comes, goes or differs; not with heartbeats, nor with Pods."""
        return self._store.nodes_version

    def less(self, gone: GonePods, promised: PromisedPods | None = None) -> Lister:
        """Return the same face with these Pods taken as gone, now and as `gone` goes on changing;
        so with `promised`.

        Costs in proportion to `gone`, whatever the size of the cluster. Pods that the store no
        longer has are no matter.
        """
        return Lister(self._store, gone, _NONE_PROMISED if promised is None else promised)

    def fork(self) -> tuple[Lister, GonePods, PromisedPods]:
        """Return the same face over copies of what is gone and promised, to reckon on with."""
        gone, promised = GonePods(self._gone.values()), PromisedPods()
        for pod in self._promised.all():
            promised.promise(pod, pod.node_name)
        return self.less(gone, promised), gone, promised

    def promising(self) -> tuple[Lister, PromisedPods]:
        """Return the same face with further promises, to reckon on with: what is promised here
        stands below them, live."""
        promised = PromisedOver(self._promised)
        return self.less(self._gone, promised), promised

    def pods(self) -> Iterable[Pod]:
        """Return all Pods, in no particular order."""
        pods = self._store.pods()
        if not self._gone:
            return pods.values()
        left = dict(pods)
        for uid in self._gone:
            left.pop(uid, None)
        return left.values()

    def pod(self, uid: str) -> Pod | None:
        return None if uid in self._gone else self._store.pods().get(uid)

    def pod_named(self, namespace: str, name: str) -> Pod | None:
        found = self._store.get("Pod", namespace, name)
        return found if isinstance(found, Pod) and found.uid not in self._gone else None

    def pods_on(self, node_name: str) -> Sequence[Pod]:
        """Return the Pods bound to a node, in any phase, in order of (namespace, name)."""
        return self._group(self._store.pods_by_node, node_name)

    def pods_in(self, namespace: str) -> Sequence[Pod]:
        """Return the Pods of a namespace, in any phase, in order of name."""
        return self._group(self._store.pods_by_namespace, namespace)

    def terminating(self, namespace: str) -> Sequence[Pod]:
        """Return the active Pods of a namespace that are on their way from a node, by name."""
        return self._group(self._store.terminating_pods, namespace)

    def unreadable(self, namespace: str) -> Sequence[Pod]:
        """Return the Pods of a namespace that cannot be read, by name."""
        return self._group(self._store.unreadable_pods, namespace)

    def _unreadable_by_node(self) -> Mapping[str, Sequence[Pod]]:
        """Return the Pods that cannot be read of each node that has any: mostly none at all."""
        found: dict[str, list[Pod]] = {}
        for namespace in sorted(self._store.unreadable_pods.groups()):
            for pod in self.unreadable(namespace):
                if pod.node_name:
                    found.setdefault(pod.node_name, []).append(pod)
        return found

    def unreadable_on(self, node_name: str) -> Sequence[Pod]:
        """Return the Pods that cannot be read and are bound to a node, as far as that is known."""
        if not self._store.unreadable_pods.groups():
            return ()
        return self.once("unreadable by node", self._unreadable_by_node).get(node_name, ())

    def owned_pods(self, owner_uid: str) -> Sequence[Pod]:
        """Return the Pods that have this owner among theirs, in any phase."""
        return self._group(self._store.pods_by_owner, owner_uid)

    def owned_by(self, owner_uid: str) -> int:
        """Return how many Pods have this owner among theirs, in any phase."""
        if self._gone:
            return len(self.owned_pods(owner_uid))
        return self._store.pods_by_owner.count(owner_uid)

    def named_owners(self) -> Sequence[str]:
        """Return every owner of a Pod as `namespace/kind/name`."""
        return tuple(self._store.pods_by_named_owner.groups())

    def pods_of_named(self, owner: str) -> Sequence[Pod]:
        """Return the Pods of an owner (`namespace/kind/name`), in any phase, in order of name."""
        return self._group(self._store.pods_by_named_owner, owner)

    def joint_pods_of(self, owner: str) -> Sequence[Pod]:
        """Return those Pods of an owner (`namespace/kind/name`) that have another one too."""
        return self._group(self._store.pods_by_joint_owner, owner)

    def requests_on(self, node_name: str) -> Mapping[str, int]:
        """Return what the node's active Pods request, in nanos; a name that is missing is zero."""
        requests = self._store.requests.requests(node_name)
        gone = self.gone_on(node_name)
        if not gone:
            return requests
        freed = total_requests(gone)
        left = {name: amount - freed.get(name, 0) for name, amount in requests.items()}
        return {name: amount for name, amount in left.items() if amount}

    def active_pods_on(self, node_name: str) -> int:
        return self._store.requests.pods(node_name) - len(self.gone_on(node_name))

    def has_promises(self) -> bool:
        """Say whether room is promised to anybody."""
        return len(self._promised) > 0

    def promised_with_affinity(self) -> Collection[Pod]:
        """Return the Pods to which room is promised, each on the node where: of those that have to
        be near others."""
        return self._promised.with_affinity()

    def nodes_in(self, shape: DomainShape, value: str) -> Sequence[str]:
        """Return the names of the nodes in a topology domain. Worked out anew only after a node's
        labels or taints have moved."""
        return self._store.topology.domains(shape, self._store.nodes()).nodes.get(value, ())

    def promised_requests_on(self, node_name: str) -> Mapping[str, int]:
        """Return what those with a promise on a node request in all, in nanos."""
        return self._promised.requests(node_name)

    def has_promise(self, uid: str) -> bool:
        """Say whether room is promised to this Pod: it does not stand in its own way."""
        return uid in self._promised

    def promised_kins(self, namespace: str) -> Collection[Kin]:
        """Return whom of a namespace room is promised to, by template. A live view."""
        return self._promised.kins(namespace)

    def promised_of(self, kin: Kin) -> Collection[Pod]:
        return self._promised.of(kin)

    def promised_apart(self, namespace: str) -> Sequence[Kin]:
        """Return whose required anti-affinity may look into a namespace, of those to come."""
        return self._promised.apart(namespace)

    def promised_on(self, node_name: str) -> Sequence[Pod]:
        return self._promised.on(node_name)

    def kept_apart(self, namespace: str) -> Sequence[Kin]:
        """Return which Pods on nodes have required anti-affinity that may look into a
        namespace."""
        return self._store.apart.looking_into(namespace)

    def apart_pods(self, kin: Kin) -> Sequence[Pod]:
        """Return the active Pods on nodes of one of those."""
        pods = self._store.pods()
        return [pods[uid] for uid in self._store.apart.uids(kin) if uid not in self._gone]

    def apart_namespaces(self) -> Sequence[str]:
        """Return the namespaces in which Pods on nodes have required anti-affinity, in order."""
        return sorted(self._store.apart.namespaces())

    def apart_kins(self, namespace: str) -> Sequence[Kin]:
        """Return which Pods on nodes of a namespace have required anti-affinity."""
        return self._store.apart.kins(namespace)

    def joined_namespaces(self, namespace: str, *, by_labels: bool) -> Sequence[str]:
        """Return the namespaces, this one among them, that required anti-affinity joins, in order
        of names. `by_labels`: whether namespaceSelector is read."""
        return self._store.joined.group(namespace, self.namespaces, by_labels=by_labels)

    def joining_pods(self, kin: Kin) -> int:
        """Return how many Pods on nodes join namespaces as these do."""
        return self._store.joined.pods(kin)

    def choosing_kins(self) -> Sequence[Kin]:
        """Return which Pods on nodes have terms that choose namespaces by their labels."""
        return self._store.joined.choosing()

    def templates_in(self, namespace: str) -> Collection[PodTemplate]:
        """Return the templates of the active Pods on nodes in a namespace. A live view."""
        return self._store.placements.templates(namespace)

    def standing(self, kin: Kin) -> Mapping[str, int]:
        """Return how many Pods of one namespace and template each node has: of those that do not
        terminate, also such as are gone. A live view."""
        return self._store.placements.standing(*kin)

    def placed_pods(self, kin: Kin) -> Sequence[Pod]:
        """Return the active Pods on nodes of one namespace and template, in order of name."""
        pods = self._store.pods()
        uids = self._store.placements.uids(*kin)
        found = [pods[uid] for uid in uids if uid not in self._gone]
        return sorted(found, key=lambda pod: pod.name)

    def spread_counts(self, namespace: str, spread: Spread, /) -> DomainCounts:
        """Return what a topology spread constraint counts in a namespace. Worked out anew only
        after a Pod there or a node's labels have moved."""
        store = self._store
        domains = store.topology.domains(spread.shape, store.nodes())
        counted = store.placements.counts(namespace, spread, domains)
        if not self._gone:
            return counted
        known = (store.pods().get(uid) for uid in self._gone.within(namespace))
        gone = [pod for pod in known if pod is not None and is_counted(pod)]
        return shifted(counted, spread, namespace, gone=gone)

    @property
    def spread_groups(self) -> SpreadGroups:
        """The Pods that topology spread constraints join, gone or not."""
        return self._store.placements.groups

    def nodes(self) -> Sequence[Node]:
        """Return all nodes, by name."""
        return self._store.nodes()

    def node(self, name: str) -> Node | None:
        found = self._store.get("Node", "", name)
        return found if isinstance(found, Node) else None

    def namespace(self, name: str) -> Namespace | None:
        found = self._store.get("Namespace", "", name)
        return found if isinstance(found, Namespace) else None

    def namespaces(self) -> Sequence[Namespace]:
        """Return all namespaces, in no particular order."""
        return [each for each in self._store.all("Namespace") if isinstance(each, Namespace)]

    def budgets(self, namespace: str) -> Sequence[PodDisruptionBudget]:
        """Return the budgets of a namespace, by name."""
        return self._store.budgets.of_namespace(namespace)

    def budgets_of(self, pod: Pod) -> Sequence[PodDisruptionBudget]:
        """Return the budgets that select a Pod, by name; an invalid selector selects none."""
        return self._store.budgets.of_pod(pod)

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        found = self._store.get("PersistentVolumeClaim", namespace, name)
        return found if isinstance(found, PersistentVolumeClaim) else None

    def volume(self, name: str) -> PersistentVolume | None:
        found = self._store.get("PersistentVolume", "", name)
        return found if isinstance(found, PersistentVolume) else None

    def priority_class(self, name: str) -> PriorityClass | None:
        found = self._store.get("PriorityClass", "", name)
        return found if isinstance(found, PriorityClass) else None

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what `make` gives for this state; it is asked once for each key and state."""
        if self._known_at != self.version:
            self._known_at = self.version
            self._known.clear()
        if key not in self._known:
            self._known[key] = make()
        return cast(T, self._known[key])

    def _group(self, index: PodIndex, group: str) -> Sequence[Pod]:
        pods = self._store.pods_of(index, group)
        return [pod for pod in pods if pod.uid not in self._gone] if self._gone else pods

    def gone_on(self, node_name: str) -> Sequence[Pod]:
        """Return those gone Pods that the node's counts hold, as the store knows them now."""
        if not self._gone:
            return ()
        known = self._store.pods()
        pods = (known.get(uid) for uid in self._gone.on(node_name))
        return [pod for pod in pods if pod is not None and takes_room(pod)]
