"""RemovePodsViolatingInterPodAntiAffinity: evicts Pods beside one that their own terms keep away.

Only required anti-affinity, and only whoever owns the term: evicting the other would not help, for
it may come back to the same node. Each eviction may end conflicts of others, so a key is all Pods
between which that can be: a namespace, or those that terms join with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import ClassVar

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
from reactive_descheduler.framework.conflict_order import ConflictOrder
from reactive_descheduler.framework.conflicts import Conflict, Conflicts
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
    Step,
    Subscription,
    View,
)

_STEP = 100
"""Pods that are asked about between two pauses."""
_READ = 1000
"""Pods of which conflicts are found between two pauses."""
_MANY = 1000
"""Pods in conflict from where it is not noted of each what could end them, but of namespaces."""
_MOST = 200
"""Pods that are offered at a time where a key is looked at: more follow once these have gone, and
what is offered is looked at again before each request."""
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
        self._looks_into = arguments.namespaces.choice()
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
        if not (joined := self._namespaces_of(key, view.lister)):
            return
        conflicts = self._conflicts(view)
        for _ in conflicts.read(joined):
            yield Pause()
        found = yield from self._found(conflicts)
        yield from self._look(view, conflicts, found, most=_MOST)
        yield from self._note(view, conflicts, found, joined)

    def reevaluate(self, view: View, candidate: Candidate, /) -> Evaluation:
        if not (joined := self._namespaces_of(candidate.key, view.lister)):
            return
        conflicts = self._conflicts(view)
        conflicts.read_around(candidate.pod, joined)
        found = yield from self._found(conflicts)
        yield from self._look(view, conflicts, found)

    def sweep(self, view: View, /) -> Evaluation:
        """Look at everything: without the correction node by node, on each in order of priority."""
        conflicts = self._conflicts(view)
        for _ in conflicts.read(view.lister.apart_namespaces()):
            yield Pause()
        found = yield from self._found(conflicts)
        yield from self._look(view, conflicts, found)

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

    def _namespaces_of(self, key: Key, lister: Lister) -> Sequence[str]:
        """Return the namespaces of a key; none where it was parted or joined, so that another key
        has its Pods."""
        joined = self._joined(key.unit[0], lister)
        return joined if joined[0] == key.unit[0] else ()

    def _conflicts(self, view: View) -> Conflicts:
        return Conflicts(
            view.lister,
            view.nodes,
            counts=self._counts,
            corrected=self._as_scheduler,
            # One that goes ends its conflicts by itself.
            terminating=not self._fewest,
        )

    def _found(self, conflicts: Conflicts) -> Step[list[Pod]]:
        """Return the Pods that have conflicts."""
        found = []
        for number, pod in enumerate(conflicts.holders(), 1):
            if conflicts.of(pod) is not None:
                found.append(pod)
            if number % _READ == 0:
                yield Pause()
        return found

    def _ordered(self, conflicts: Conflicts, found: Iterable[Pod]) -> Step[ConflictOrder]:
        order = ConflictOrder(conflicts, fewest=self._fewest)
        for number, pod in enumerate(found, 1):
            order.add(pod)
            if number % _READ == 0:
                yield Pause()
        for _ in order.make():
            yield Pause()
        yield Pause()
        return order

    def _look(
        self, view: View, conflicts: Conflicts, found: Sequence[Pod], *, most: int | None = None
    ) -> Evaluation:
        """Offer Pods, one after the other as long as there are conflicts."""
        order = yield from self._ordered(conflicts, found)
        left: set[str] = set()
        taken = 0
        for step in count(1):
            if not order or taken == most:
                return
            if step % _STEP == 0:
                yield Pause()
            next_one = order.pop()
            conflict = conflicts.of(next_one) if next_one is not None else None
            if conflict is None or conflict.pod.node_name in left:
                continue
            pod = conflict.pod
            refused = view.filter(pod) or view.pre_eviction(pod)
            if refused is not None:
                yield refused
                continue
            verdict = yield self._candidate(view, conflict)
            if verdict is None:
                continue
            if verdict.taken:
                conflicts.take_out(pod)
                taken += 1
            if verdict.stop is Stop.ALL:
                return
            if verdict.stop is Stop.NODE:
                left.add(pod.node_name)

    def _counts(self, of: Kin) -> bool:
        return self._looks_into(of.namespace) and (
            self._selector is None or matches(self._selector, of.template.labels)
        )

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

    def _note(
        self, view: View, conflicts: Conflicts, found: Sequence[Pod], namespaces: Sequence[str]
    ) -> Step[None]:
        """Take note of what could end one of the conflicts, or change who goes first.

        That some were taken meanwhile is no matter, for these are among those found.
        """
        if len(found) > _MANY:
            what = POD_MATTERS | _STANDS
            view.note(*(On(what, ("Namespace", "", name)) for name in namespaces))
            view.note(On(NODE_MATTERS, None))
            return
        involved = {pod.uid: pod for pod in found}
        for crowd in conflicts.kept_away(found):
            involved.update((pod.uid, pod) for pod in crowd)
        yield Pause()
        view.note(*(On(POD_MATTERS, pod.ref) for pod in found))
        view.note(*(On(_STANDS, pod.ref) for pod in involved.values()))
        on = dict.fromkeys(pod.node_name for pod in involved.values())
        view.note(*(On(NODE_MATTERS, view.nodes[name].ref) for name in on))

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
