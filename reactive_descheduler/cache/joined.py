"""Which namespaces required anti-affinity joins: a Pod of one looks at the Pods of another.

Who goes in one of them depends on who goes in the others, so they are looked at together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from reactive_descheduler.api.pod import Kin, Pod, kin
from reactive_descheduler.api.scheduling.anti_affinity import namespaces_looked_into
from reactive_descheduler.api.scheduling.pod_terms import ANY_NAMESPACE
from reactive_descheduler.api.selectors import SelectorError, matches
from reactive_descheduler.api.surroundings import Namespace
from reactive_descheduler.api.terms import PodAffinityTerm
from reactive_descheduler.cache.counts import takes_room

Groups = Mapping[str, Sequence[str]]


class JoinedNamespaces:
    """Follows the Pods whose terms look out of their own namespace: hardly any.

    `by_labels` says each time whether namespaceSelector is read; upstream does not.
    """

    def __init__(self) -> None:
        self._kins: dict[Kin, int] = {}
        self._groups: dict[bool, Groups] = {}

    def update(self, old: Pod | None, new: Pod | None) -> None:
        """Follow one change of one Pod."""
        if old is not None and joins(old):
            self._add(kin(old), -1)
        if new is not None and joins(new):
            self._add(kin(new), 1)

    def namespaces_moved(self) -> None:
        """Take note that a namespace came, went or was relabelled."""
        self._groups.pop(True, None)

    def pods(self, of: Kin) -> int:
        """Return how many Pods of this kind join namespaces."""
        return self._kins.get(of, 0)

    def choosing(self) -> Sequence[Kin]:
        """Return those whose terms choose namespaces by their labels."""
        return [each for each in self._kins if ANY_NAMESPACE in namespaces_looked_into(each)]

    def group(
        self, namespace: str, namespaces: Callable[[], Sequence[Namespace]], *, by_labels: bool
    ) -> Sequence[str]:
        """Return the namespaces that are joined with this one, itself among them, in order.

        `namespaces`: returns all that there are.
        """
        groups = self._groups.get(by_labels)
        if groups is None:
            groups = self._groups[by_labels] = self._joined(namespaces(), by_labels)
        return groups.get(namespace, (namespace,))

    def snapshot(self) -> Mapping[Kin, int]:
        """Return how many Pods join, by kind, for comparison with a recount."""
        return dict(self._kins)

    @staticmethod
    def recount(pods: Iterable[Pod]) -> Mapping[Kin, int]:
        """Return what `snapshot` must be for these Pods, worked out from scratch."""
        found: dict[Kin, int] = {}
        for pod in pods:
            if joins(pod):
                found[kin(pod)] = found.get(kin(pod), 0) + 1
        return found

    def _add(self, of: Kin, sign: int) -> None:
        pods = self._kins.get(of, 0) + sign
        if pods:
            self._kins[of] = pods
        else:
            del self._kins[of]
        if pods == 0 or (pods == 1 and sign > 0):
            self._groups.clear()

    def _joined(self, namespaces: Sequence[Namespace], by_labels: bool) -> Groups:
        group_of: dict[str, set[str]] = {}
        # Kinds that differ in other things share their terms, which may choose among many.
        for own, terms in {
            (each.namespace, id(each.template.anti_affinity)): (
                each.namespace,
                each.template.anti_affinity,
            )
            for each in self._kins
        }.values():
            merged = {own}
            for term in terms:
                merged |= reached(term, own, namespaces, by_labels=by_labels)
            if merged <= group_of.get(own, set()):
                continue
            for name in tuple(merged):
                merged |= group_of.get(name, set())
            group_of.update(dict.fromkeys(merged, merged))
        # Members of one group share one set, so it is put in order once.
        ordered = {id(group): tuple(sorted(group)) for group in group_of.values()}
        return {name: ordered[id(group)] for name, group in group_of.items()}


def joins(pod: Pod) -> bool:
    """Say whether a Pod stands on a node and has a term that looks out of its namespace."""
    return bool(pod.template.anti_affinity) and takes_room(pod) and _looks_out(kin(pod))


def _looks_out(of: Kin) -> bool:
    return not namespaces_looked_into(of) <= {of.namespace}


def reached(
    term: PodAffinityTerm, own: str, namespaces: Iterable[Namespace], *, by_labels: bool
) -> set[str]:
    """Return the namespaces that a term of a Pod in namespace `own` looks into.

    `namespaces`: all that there are. A selector that cannot be read chooses none; nor is a
    namespace chosen that cannot be read.
    """
    named = set(term.namespaces or ())
    selector = term.namespace_selector
    if not by_labels or selector is None:
        return named or {own}
    try:
        return named | {
            each.name for each in namespaces if not each.opaque and matches(selector, each.labels)
        }
    except SelectorError:
        return named
