"""RemoveDuplicates: evicts Pods of one owner that crowd on a node while others have fewer.

Pods are duplicates if they stand on one node and have the same owners and images. Their owner's
Pods, divided by the nodes whose taints and labels they accept, are what a node may keep. The first
Pod of each kind on a node always stays.

A key is the set of owners of a Pod: such sets part the Pods, while owners may share some. What is
counted for an owner is counted over all its Pods, in whichever key they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from reactive_descheduler.api.changes import Action, Change, Key, On
from reactive_descheduler.api.eviction import Candidate, Cause, Pause, Rejection, Stop
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.cache.indexes import owner_names
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.config.corrections import Correction, Corrections
from reactive_descheduler.config.evictor import DefaultEvictorArguments
from reactive_descheduler.framework.fitting import Fitting, fit_rules
from reactive_descheduler.framework.reach import Reach, wishes
from reactive_descheduler.framework.strategy import (
    Evaluation,
    Holds,
    Phase,
    Scope,
    Step,
    Subscription,
    View,
)
from reactive_descheduler.framework.uncounted import uncounted

from .arguments import DuplicatesArguments
from .crowds import Crowd, OwnerKey, crowded, duplicates
from .level import level_with_room

_PODS_AT_ONCE = 200
_OWNERS_AT_ONCE = 200
"""After how many a step gives way."""

_POD_MATTERS = (
    Action.POD_BOUND
    | Action.POD_GONE
    | Action.POD_TERMINATING
    | Action.POD_OWNERS
    | Action.POD_SPEC
    | Action.POD_TOLERATIONS
    | Action.POD_RESOURCES
    | Action.POD_LABELS
    | Action.POD_ANNOTATIONS
    | Action.POD_STARTED
    | Action.POD_OPAQUE
)
"""What on a Pod decides whether it counts, where it may go, or what filters say."""
_NODE_MATTERS = (
    Action.NODE_ADDED
    | Action.NODE_REMOVED
    | Action.NODE_READY
    | Action.NODE_TAINTS
    | Action.NODE_LABELS
    | Action.NODE_SCHEDULABLE
    | Action.NODE_OPAQUE
)
"""What on any node decides over how many of them Pods are to be spread."""


def _is_active(change: Change, _lister: Lister, _key: Key) -> bool:
    return isinstance(change.new, Pod) and change.new.active


class RemoveDuplicates:
    NAME: ClassVar[str] = "RemoveDuplicates"
    PHASE: ClassVar[Phase] = Phase.BALANCE
    HOLDS: ClassVar[Holds] = Holds.COUNTED
    EVENTS: ClassVar[tuple[Subscription, ...]] = (
        # Nodes need no line: a key with Pods that crowd on one waits for changes of any node.
        Subscription(_POD_MATTERS, Scope.OWNER),
        Subscription(Action.POD_PHASE, Scope.OWNER, _is_active),
    )

    def __init__(
        self,
        arguments: DuplicatesArguments,
        *,
        profile: int,
        corrections: Corrections,
        evictor: DefaultEvictorArguments | None = None,
    ) -> None:
        self._profile = profile
        self._looks_into = arguments.namespaces.choice()
        self._exclude_kinds = frozenset(arguments.exclude_owner_kinds)
        self._counts_all = Correction.DUPLICATES_COUNTING in corrections
        needs_room = Correction.DUPLICATES_ROOM in corrections
        self._looks_for_room = needs_room and (
            evictor is None or evictor.looks_elsewhere(corrections)
        )
        self._fitting = Fitting(fit_rules(corrections))
        self._reach = Reach(cordoned=not needs_room)

    def keys_of(self, lister: Lister, /) -> Iterable[Key]:
        found: dict[Key, None] = {}
        for owner in lister.named_owners():
            found.update(dict.fromkeys(self._keys_sharing(owner, lister)))
        return found

    def keys_for(self, scope: Scope, change: Change, lister: Lister, /) -> Iterable[Key]:
        if scope is not Scope.OWNER:
            return self.keys_of(lister)
        found: dict[Key, None] = {}
        for side in (change.old, change.new):
            if not isinstance(side, Pod):
                continue
            if names := owner_names(side.template):
                found[self._key(side.namespace, names)] = None
            for name in names:
                sharing = self._keys_sharing(f"{side.namespace}/{name}", lister)
                found.update(dict.fromkeys(sharing))
        return found

    def evaluate(self, view: View, key: Key, /) -> Evaluation:
        namespace, *names = key.unit
        owners = (f"{namespace}/{name}" for name in names)
        groups = {
            owner: pods
            for owner, pods in crowded(view.lister, owners, self._in_scope).items()
            if any(owner_names(pod.template) == (*names,) for pod in pods)
        }
        if groups:
            view.note(On(_NODE_MATTERS, None))
            yield from self._even_out(view, groups, key)

    def sweep(self, view: View, /) -> Evaluation:
        groups: dict[OwnerKey, list[Pod]] = {}
        owners = view.lister.named_owners()
        for start in range(0, len(owners), _OWNERS_AT_ONCE):
            groups |= crowded(view.lister, owners[start : start + _OWNERS_AT_ONCE], self._in_scope)
            yield Pause()
        yield from self._even_out(view, groups, None)

    def counts(self, key: Key, pod: Pod, _lister: Lister, /) -> bool:
        namespace, *names = key.unit
        return pod.namespace == namespace and not set(names).isdisjoint(owner_names(pod.template))

    def breaks(self, _cause: Cause, _change: Change, /) -> bool:
        return False

    def _key(self, namespace: str, names: tuple[str, ...]) -> Key:
        return Key(self._profile, self.NAME, (namespace, *names))

    def _keys_sharing(self, owner: str, lister: Lister) -> Iterable[Key]:
        """Return the keys that count the Pods of an owner: its own, and those of joint owners."""
        namespace, _, name = owner.partition("/")
        yield self._key(namespace, (name,))
        for pod in lister.joint_pods_of(owner):
            yield self._key(namespace, owner_names(pod.template))

    def _in_scope(self, pod: Pod) -> bool:
        return (
            bool(pod.node_name)
            and pod.active
            and self._looks_into(pod.namespace)
            and not any(owner.kind in self._exclude_kinds for owner in pod.template.owners)
        )

    def _even_out(
        self, view: View, groups: Mapping[OwnerKey, list[Pod]], key: Key | None
    ) -> Evaluation:
        """Count all, then offer owner key by owner key; with a key only its own Pods, each once."""
        counted, unknown = [], set[str]()
        for namespace in dict.fromkeys(owner.namespace for owner in sorted(groups)):
            if (refused := uncounted(view, self.NAME, namespace)) is not None:
                unknown.add(namespace)
                yield refused
        for owner, pods in sorted(groups.items()):
            if owner.namespace in unknown:
                continue
            on = yield from self._counted(view, pods)
            counted.append((owner, on))
        told: set[str] = set()
        for owner, on in counted:
            nodes = yield from self._feasible(view, on)
            if len(nodes) < 2:
                continue
            crowd = Crowd(owner, on, nodes)
            level = crowd.average
            if self._looks_for_room:
                level = yield from level_with_room(view, crowd, self._fitting, strategy=self.NAME)
            stop = yield from self._offer(view, crowd, level, key, told)
            if stop is Stop.ALL:
                return

    def _counted(self, view: View, pods: Iterable[Pod]) -> Step[dict[str, list[Pod]]]:
        """Return the Pods that count, by node of the cycle, in the order in which they came."""
        on: dict[str, list[Pod]] = {}
        for place, pod in enumerate(pods):
            if place % _PODS_AT_ONCE == _PODS_AT_ONCE - 1:
                yield Pause()
            if pod.node_name in view.nodes and self._counts(view, pod):
                on.setdefault(pod.node_name, []).append(pod)
        return on

    def _counts(self, view: View, pod: Pod) -> bool:
        if self._counts_all:
            return pod.deleted is None
        return view.filter(pod) is None and view.pre_eviction(pod) is None

    def _feasible(self, view: View, on: Mapping[str, Sequence[Pod]]) -> Step[Sequence[Node]]:
        """Return the nodes that some duplicate accepts, by name; of those who accept but one node
        none."""
        asked = {
            wishes(pod.template): pod.template for pods in on.values() for pod in duplicates(pods)
        }
        found: list[tuple[Node, ...]] = []
        for template in asked.values():
            nodes = yield from self._reach.nodes(view, template)
            if len(nodes) > 1:
                found.append(nodes)
        if len(found) < 2:
            return found[0] if found else ()
        union = {node.name: node for nodes in found for node in nodes}
        return [union[name] for name in sorted(union)]

    def _offer(
        self, view: View, crowd: Crowd, level: int, key: Key | None, told: set[str]
    ) -> Step[Stop]:
        number = {name: len(duplicates(pods)) for name, pods in crowd.on.items()}
        for name in sorted(number, key=lambda name: (-number[name], name)):
            excess = number[name] + 1 - level
            if excess <= 0:
                return Stop.NO  # so it is with all that follow
            reason = (
                f"node {name} has {len(crowd.on[name])} Pods of {crowd.owner}, "
                f"{level} would do on {len(crowd.nodes)} nodes"
            )
            stop = yield from self._offer_of_node(
                view, crowd.on[name], excess, reason=reason, key=key, told=told
            )
            if stop is Stop.ALL:
                return stop
        return Stop.NO

    def _offer_of_node(
        self,
        view: View,
        pods: Sequence[Pod],
        excess: int,
        *,
        reason: str,
        key: Key | None,
        told: set[str],
    ) -> Step[Stop]:
        """Offer the last of a node's duplicates; where all Pods count, others for those that have
        to stay."""
        refused: dict[str, Rejection | None] = {}
        if self._counts_all:
            refused = {pod.uid: view.filter(pod) for pod in pods}
            pods = sorted(pods, key=lambda pod: refused[pod.uid] is None)
        extra = duplicates(pods)
        stay: list[Rejection] = []
        for pod in (*extra[-excess:], *(extra[:-excess] if self._counts_all else ())):
            if not excess:
                break
            own = self._key(pod.namespace, owner_names(pod.template))
            if self._counts_all and (no := refused[pod.uid] or view.pre_eviction(pod)):
                stay += [no] if key in (None, own) else []
                continue
            excess -= 1
            if key is not None and (own != key or pod.uid in told):
                continue
            told.add(pod.uid)
            verdict = yield Candidate(own, pod, Cause("duplicates", own.unit, ()), reason)
            if verdict is not None and verdict.stop is not Stop.NO:
                return verdict.stop
        yield from stay[:excess]
        return Stop.NO
