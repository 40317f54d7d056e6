"""RemovePodsViolatingInterPodAntiAffinity: evicts Pods beside one that their own terms keep away.

Only required anti-affinity, and only whoever owns the term: evicting the other would not help, for
it may come back to the same node. Each eviction may end conflicts of others, so a key is all Pods
between which that can be: a namespace, or those that terms join with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import count
from typing import ClassVar, NamedTuple

from reactive_descheduler.api.changes import Action, Change, Key, On
from reactive_descheduler.api.eviction import Candidate, Cause, Pause, Stop
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Kin, Pod, kin
from reactive_descheduler.api.selectors import SelectorError, matches
from reactive_descheduler.cache.counts import takes_room
from reactive_descheduler.cache.joined import joins, reached
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.config.corrections import Correction, Corrections
from reactive_descheduler.config.evictor import DefaultEvictorArguments
from reactive_descheduler.framework.conflicts import Conflict, Conflicts
from reactive_descheduler.framework.pod_order import importance
from reactive_descheduler.framework.pod_strategy import (
    NODE_MATTERS,
    POD_MATTERS,
    PodArguments,
    is_ready,
)
from reactive_descheduler.framework.strategy import (
    Evaluation,
    Holds,
    Phase,
    Scope,
    Subscription,
    View,
)

_STEP = 100
"""Pods that are asked about between two pauses."""
_STANDS = (
    Action.POD_BOUND
    | Action.POD_LABELS
    | Action.POD_PHASE
    | Action.POD_SPEC
    | Action.POD_TERMINATING
    | Action.POD_GONE
    | Action.POD_OPAQUE
)
"""What on the other Pod may end a conflict."""


class AntiAffinityArguments(PodArguments):
    """Arguments of RemovePodsViolatingInterPodAntiAffinity.

    Pods that are left out count for nothing, not even as the other side of a conflict.
    """


class _Rank(NamedTuple):
    """Who goes first."""

    listed: str
    """The node without the correction: upstream goes through one after the other."""
    importance: tuple[bool, int, int, bool]
    ends: int
    """With it: the conflicts that the leaving ends, negative so that most come first."""
    node: str
    namespace: str
    name: str


class RemovePodsViolatingInterPodAntiAffinity:
    NAME: ClassVar[str] = "RemovePodsViolatingInterPodAntiAffinity"
    PHASE: ClassVar[Phase] = Phase.DESCHEDULE
    HOLDS: ClassVar[Holds] = Holds.NOTHING
    EVENTS: ClassVar[tuple[Subscription, ...]] = (
        # A Pod comes to stand beside others, or under their terms; its terms come or go.
        Subscription(
            Action.POD_BOUND
            | Action.POD_LABELS
            | Action.POD_PHASE
            | Action.POD_SPEC
            | Action.POD_GONE
            | Action.POD_OPAQUE,
            Scope.NAMESPACES,
        ),
        # A node comes into the cycle with its Pods, or into another topology domain.
        Subscription(
            Action.NODE_ADDED | Action.NODE_READY | Action.NODE_LABELS, Scope.NODE, is_ready
        ),
        Subscription(Action.NAMESPACE_LABELS, Scope.NAMESPACES),
    )

    def __init__(
        self,
        arguments: AntiAffinityArguments,
        *,
        profile: int,
        corrections: Corrections,
        evictor: DefaultEvictorArguments | None = None,
    ) -> None:
        self._profile = profile
        self._include = frozenset(arguments.namespaces.include)
        self._exclude = frozenset(arguments.namespaces.exclude)
        self._selector = arguments.label_selector
        self._as_scheduler = Correction.ANTI_AFFINITY_SCOPE in corrections
        self._fewest = Correction.ANTI_AFFINITY_FEWEST in corrections

    def keys_of(self, lister: Lister, /) -> Iterable[Key]:
        return self._keys(lister.apart_namespaces(), lister)

    def keys_for(self, scope: Scope, change: Change, lister: Lister, /) -> Iterable[Key]:
        if scope is Scope.ALL:
            return self.keys_of(lister)
        if scope is Scope.NODE:
            return self._keys(_concerned_on(change, lister), lister)
        if change.kind == "Namespace":
            return self._keys_after_relabelling(change.object.name, lister)
        keys = self._keys_after_joining(change, lister)
        pod = change.new
        if isinstance(pod, Pod) and _comes_to_stand(change) and _concerns(pod, lister):
            keys.update(self._keys([pod.namespace], lister))
        return keys

    def evaluate(self, view: View, key: Key, /) -> Evaluation:
        joined = view.lister.joined_namespaces(key.unit[0], by_labels=self._as_scheduler)
        if joined[0] == key.unit[0]:  # else it was parted or joined: another key has its Pods
            yield from self._look(view, joined)

    def sweep(self, view: View, /) -> Evaluation:
        """Look at everything: without the correction node by node, on each in order of priority."""
        yield from self._look(view, view.lister.apart_namespaces())

    def counts(self, _key: Key, _pod: Pod, _lister: Lister, /) -> bool:
        return False  # never asked, for it holds nothing

    def breaks(self, cause: Cause, change: Change, /) -> bool:
        """Say whether one of the two Pods, or a node's domain, is no longer what it was."""
        if change.ref not in cause.objects:
            return False
        old, new = change.old, change.new
        if isinstance(old, Node) and isinstance(new, Node):
            key = cause.ident[2]
            return not new.ready or old.labels.get(key) != new.labels.get(key)
        if not isinstance(old, Pod) or not isinstance(new, Pod):
            return True
        return (
            new.node_name != old.node_name
            or not new.active
            or (new.deleted is not None and old.deleted is None)
            or new.template.labels != old.template.labels
        )

    def _look(self, view: View, namespaces: Sequence[str]) -> Evaluation:
        conflicts = Conflicts(
            view.lister,
            view.nodes,
            counts=self._counts,
            corrected=self._as_scheduler,
            # One that goes ends its conflicts by itself.
            terminating=not self._fewest,
        )
        for _ in conflicts.read(namespaces):
            yield Pause()
        found = conflicts.found()
        yield Pause()
        self._note(view, conflicts, found)
        yield Pause()
        order = [(self._rank(conflicts, each.pod), each.pod) for each in found]
        heapify(order)
        left: set[str] = set()
        for step in count(1):
            if not order:
                return
            if step % _STEP == 0:
                yield Pause()
            rank, pod = heappop(order)
            # What was taken since may have ended some of its conflicts: it never added any.
            ends = self._ends(conflicts, pod)
            if ends != rank.ends:
                heappush(order, (rank._replace(ends=ends), pod))
                continue
            conflict = conflicts.of(pod)
            if conflict is None or pod.node_name in left:
                continue
            refused = view.filter(pod) or view.pre_eviction(pod)
            if refused is not None:
                yield refused
                continue
            verdict = yield self._candidate(view, conflict)
            if verdict is None:
                continue
            if verdict.taken:
                conflicts.take_out(pod)
            if verdict.stop is Stop.ALL:
                return
            if verdict.stop is Stop.NODE:
                left.add(pod.node_name)

    def _counts(self, of: Kin) -> bool:
        return (
            (not self._include or of.namespace in self._include)
            and of.namespace not in self._exclude
            and (self._selector is None or matches(self._selector, of.template.labels))
        )

    def _rank(self, conflicts: Conflicts, pod: Pod) -> _Rank:
        return _Rank(
            "" if self._fewest else pod.node_name,
            importance(pod),
            self._ends(conflicts, pod),
            pod.node_name,
            pod.namespace,
            pod.name,
        )

    def _ends(self, conflicts: Conflicts, pod: Pod) -> int:
        return -conflicts.ended_by(pod) if self._fewest else 0

    def _candidate(self, view: View, conflict: Conflict) -> Candidate:
        pod, other, topology_key = conflict
        nodes = {name: view.nodes[name].ref for name in (pod.node_name, other.node_name)}
        cause = Cause(
            "anti-affinity",
            (pod.node_name, pod.uid, topology_key),
            (pod.ref, other.ref, *nodes.values()),
        )
        place = f"on {other.node_name}"
        if other.node_name != pod.node_name:
            place += f" with the same {topology_key}"
        reason = f"its anti-affinity keeps away {other.namespace}/{other.name} {place}"
        (key,) = self._keys([pod.namespace], view.lister)
        return Candidate(key, pod, cause, reason)

    def _note(self, view: View, conflicts: Conflicts, found: Sequence[Conflict]) -> None:
        """Take note of what could end one of the conflicts, or change who goes first."""
        involved = conflicts.involved(found)
        view.note(*(On(POD_MATTERS, each.pod.ref) for each in found))
        view.note(*(On(_STANDS, pod.ref) for pod in involved))
        names = dict.fromkeys(pod.node_name for pod in involved)
        view.note(*(On(NODE_MATTERS, view.nodes[name].ref) for name in names))

    def _keys(self, namespaces: Iterable[str], lister: Lister) -> dict[Key, None]:
        """Return the keys to which these namespaces belong."""
        return {
            Key(self._profile, self.NAME, (self._joined(name, lister)[0],)): None
            for name in namespaces
        }

    def _joined(self, namespace: str, lister: Lister) -> Sequence[str]:
        return lister.joined_namespaces(namespace, by_labels=self._as_scheduler)

    def _keys_after_joining(self, change: Change, lister: Lister) -> dict[Key, None]:
        """Return the keys of namespaces that a Pod may have joined or parted.

        Which they were is not known any more. One that was parted is named by the first of what
        came of it, and one that was joined by one of its members now.
        """
        sides = [
            kin(side)
            for side in (change.old, change.new)
            if isinstance(side, Pod) and joins(side) and lister.joining_pods(kin(side)) <= 1
        ]
        if len(sides) == 2 and sides[0] == sides[1]:
            return {}
        keys: dict[Key, None] = {}
        for side in sides:
            keys.update(self._keys(self._reached(side, lister), lister))
            keys.update(self._named(self._joined(side.namespace, lister)))
        return keys

    def _keys_after_relabelling(self, namespace: str, lister: Lister) -> dict[Key, None]:
        """Return the same for a namespace that came, went or has other labels."""
        choosing = lister.choosing_kins() if self._as_scheduler else ()
        if not choosing:
            return {}
        owners = dict.fromkeys(each.namespace for each in choosing)
        return self._named(self._joined(namespace, lister)) | self._keys(owners, lister)

    def _reached(self, of: Kin, lister: Lister) -> Iterator[str]:
        for term in of.template.anti_affinity:
            yield from reached(
                term, of.namespace, lister.namespaces(), by_labels=self._as_scheduler
            )

    def _named(self, namespaces: Iterable[str]) -> dict[Key, None]:
        return {Key(self._profile, self.NAME, (name,)): None for name in namespaces}


def _comes_to_stand(change: Change) -> bool:
    """Say whether the Pod is on a node, and was not there before as it is now."""
    old, new = change.old, change.new
    if not isinstance(new, Pod) or not takes_room(new):
        return False
    return not (
        isinstance(old, Pod)
        and takes_room(old)
        and old.node_name == new.node_name
        and old.template is new.template
        and old.opaque == new.opaque
    )


def _concerned_on(change: Change, lister: Lister) -> Iterable[str]:
    """Return the namespaces of those Pods on the changed node that anti-affinity may concern."""
    return dict.fromkeys(
        pod.namespace
        for pod in lister.pods_on(change.object.name)
        if takes_room(pod) and (pod.template.anti_affinity or lister.kept_apart(pod.namespace))
    )


def _concerns(pod: Pod, lister: Lister) -> bool:
    """Say whether the Pod has terms of its own, or other Pods' terms may keep it away."""
    if pod.template.anti_affinity:
        return True
    terms = {
        id(each.template.anti_affinity): each.template.anti_affinity
        for each in lister.kept_apart(pod.namespace)
    }
    try:
        return any(
            matches(term.label_selector, pod.template.labels)
            for each in terms.values()
            for term in each
        )
    except SelectorError:  # doubt means run
        return True
