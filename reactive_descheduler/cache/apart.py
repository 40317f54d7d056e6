"""Who keeps others away: Pods with required anti-affinity of their own, by whom it may concern."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from reactive_descheduler.api.pod import Kin, Pod, kin
from reactive_descheduler.api.scheduling.anti_affinity import namespaces_looked_into
from reactive_descheduler.api.scheduling.pod_terms import ANY_NAMESPACE
from reactive_descheduler.cache.counts import takes_room

Groups = Mapping[str, Mapping[Kin, frozenset[str]]]


class ApartIndex:
    """UIDs of such Pods by the namespaces that their terms look into, and by what they share.

    Most Pods have no such term and cost one look; a cluster has few templates that have one.
    """

    def __init__(self) -> None:
        self._pods: dict[Kin, dict[str, None]] = {}
        self._looking_into: dict[str, dict[Kin, None]] = {}
        self._of_namespace: dict[str, dict[Kin, None]] = {}

    def update(self, old: Pod | None, new: Pod | None) -> None:
        """Follow one change of one Pod; both sides have the same UID."""
        if old is not None and old.template.anti_affinity and takes_room(old):
            self._leave(kin(old), old.uid)
        if new is not None and new.template.anti_affinity and takes_room(new):
            self._enter(kin(new), new.uid)

    def looking_into(self, namespace: str) -> Sequence[Kin]:
        """Return whose terms may look into a namespace, each once."""
        if not self._looking_into:
            return ()
        named = self._looking_into.get(namespace, {})
        wide = self._looking_into.get(ANY_NAMESPACE, {})
        return (*named, *(each for each in wide if each not in named)) if wide else tuple(named)

    def namespaces(self) -> Collection[str]:
        """Return the namespaces of such Pods. A live view."""
        return self._of_namespace.keys()

    def kins(self, namespace: str) -> Sequence[Kin]:
        return tuple(self._of_namespace.get(namespace, ()))

    def uids(self, of: Kin) -> Collection[str]:
        return self._pods.get(of, {}).keys()

    def snapshot(self) -> Groups:
        """Return every group that has members, for comparison with a recount."""
        return {
            name: {each: frozenset(self._pods[each]) for each in members}
            for name, members in self._looking_into.items()
        }

    @staticmethod
    def recount(pods: Iterable[Pod]) -> Groups:
        """Return what `snapshot` must be for these Pods, worked out from scratch."""
        found: dict[str, dict[Kin, frozenset[str]]] = {}
        for pod in pods:
            if pod.template.anti_affinity and takes_room(pod):
                for name in namespaces_looked_into(kin(pod)):
                    known = found.setdefault(name, {})
                    known[kin(pod)] = known.get(kin(pod), frozenset()) | {pod.uid}
        return found

    def _enter(self, of: Kin, uid: str) -> None:
        if of not in self._pods:
            self._of_namespace.setdefault(of.namespace, {})[of] = None
            for name in namespaces_looked_into(of):
                self._looking_into.setdefault(name, {})[of] = None
        self._pods.setdefault(of, {})[uid] = None

    def _leave(self, of: Kin, uid: str) -> None:
        pods = self._pods[of]
        del pods[uid]
        if pods:
            return
        del self._pods[of]
        _take_out(self._of_namespace, of.namespace, of)
        for name in namespaces_looked_into(of):
            _take_out(self._looking_into, name, of)


def _take_out(groups: dict[str, dict[Kin, None]], name: str, of: Kin) -> None:
    members = groups[name]
    del members[of]
    if not members:
        del groups[name]
