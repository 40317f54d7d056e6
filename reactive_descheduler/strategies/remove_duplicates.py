"""RemoveDuplicates: evicts Pods of one owner that crowd on a node while others have fewer.

Pods are duplicates if they stand on one node and have the same owners and images. Their owner's
Pods, divided by the nodes whose taints and labels they accept, are what a node may keep. The first
Pod of each kind on a node always stays.

A key is the set of owners of a Pod: such sets part the Pods, while owners may share some. What is
counted for an owner is counted over all its Pods, in whichever key they are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Generator, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, ClassVar, NamedTuple, TypeVar

from pydantic import Field

from reactive_descheduler.api.changes import Action, Change, Key, On
from reactive_descheduler.api.eviction import Candidate, Cause, Pause, Rejection, Stop, Verdict
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod, PodTemplate
from reactive_descheduler.api.scheduling.fit import slots
from reactive_descheduler.api.scheduling.spread import hard_keys
from reactive_descheduler.cache.indexes import owner_names
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.config.args import Arguments, Listed, Namespaces
from reactive_descheduler.config.corrections import Correction, Corrections
from reactive_descheduler.config.evictor import DefaultEvictorArguments
from reactive_descheduler.framework.fitting import Fitting, fit_rules
from reactive_descheduler.framework.reach import Reach, wishes
from reactive_descheduler.framework.strategy import (
    Evaluation,
    Holds,
    Phase,
    Scope,
    Subscription,
    View,
)
from reactive_descheduler.framework.uncounted import uncounted

_T = TypeVar("_T")
_Step = Generator[Candidate | Rejection | Pause, Verdict | None, _T]

_PODS_AT_ONCE = 200
_OWNERS_AT_ONCE = 200
_NODES_AT_ONCE = 500
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


class DuplicatesArguments(Arguments):
    """Arguments of RemoveDuplicates."""

    namespaces: Annotated[
        Namespaces, Field(description="Namespaces whose Pods are looked at; none means all.")
    ] = Namespaces()
    exclude_owner_kinds: Annotated[
        Listed[str],
        Field(description="Pods with an owner of one of these kinds are not looked at."),
    ] = ()


class _OwnerKey(NamedTuple):
    """Whose Pods are counted together: those of one owner with the same images."""

    namespace: str
    kind: str
    name: str
    images: str


class _Crowd(NamedTuple):
    """The Pods that count for one owner key."""

    owner: _OwnerKey
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
        self._include = frozenset(arguments.namespaces.include)
        self._exclude = frozenset(arguments.namespaces.exclude)
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
        groups = {
            owner: pods
            for owner, pods in self._crowded(
                view.lister, (f"{namespace}/{name}" for name in names)
            ).items()
            if any(owner_names(pod.template) == (*names,) for pod in pods)
        }
        if groups:
            view.note(On(_NODE_MATTERS, None))
            yield from self._even_out(view, groups, key)

    def sweep(self, view: View, /) -> Evaluation:
        groups: dict[_OwnerKey, list[Pod]] = {}
        owners = view.lister.named_owners()
        for start in range(0, len(owners), _OWNERS_AT_ONCE):
            groups |= self._crowded(view.lister, owners[start : start + _OWNERS_AT_ONCE])
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
            and (not self._include or pod.namespace in self._include)
            and pod.namespace not in self._exclude
            and not any(owner.kind in self._exclude_kinds for owner in pod.template.owners)
        )

    def _crowded(self, lister: Lister, owners: Iterable[str]) -> dict[_OwnerKey, list[Pod]]:
        """Return the Pods of these owners, by owner key and in order of nodes, where there are
        duplicates, whoever counts.

        A Pod that names an owner twice is there twice, as upstream has it.
        """
        crowded: dict[_OwnerKey, list[Pod]] = {}
        for owner in owners:
            pods = lister.pods_of_named(owner)
            if len({pod.node_name for pod in pods}) == len(pods):
                continue  # so it is with most
            groups: dict[_OwnerKey, list[Pod]] = {}
            for pod in sorted(filter(self._in_scope, pods), key=lambda pod: pod.node_name):
                for kind, name, images in _owners(pod.template):
                    if owner == f"{pod.namespace}/{kind}/{name}":
                        key = _OwnerKey(pod.namespace, kind, name, images)
                        groups.setdefault(key, []).append(pod)
            crowded |= {key: found for key, found in groups.items() if _some_duplicate(found)}
        return crowded

    def _even_out(
        self, view: View, groups: Mapping[_OwnerKey, list[Pod]], key: Key | None
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
            crowd = _Crowd(owner, on, nodes)
            level = yield from self._level(view, crowd)
            stop = yield from self._offer(view, crowd, level, key, told)
            if stop is Stop.ALL:
                return

    def _counted(self, view: View, pods: Iterable[Pod]) -> _Step[dict[str, list[Pod]]]:
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

    def _feasible(self, view: View, on: Mapping[str, Sequence[Pod]]) -> _Step[Sequence[Node]]:
        """Return the nodes that some duplicate accepts, by name; of those who accept but one node
        none."""
        asked = {
            wishes(pod.template): pod.template for pods in on.values() for pod in _duplicates(pods)
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

    def _level(self, view: View, crowd: _Crowd) -> _Step[int]:
        """Return how many Pods a node may keep: the average, or the lowest number above it for
        which the nodes below have room.

        Moves from above to below it leave it where it is, so none of them is taken back.
        """
        average = crowd.average
        excess = crowd.above(average)
        if not excess or not self._looks_for_room:
            return average
        # One from the fullest node, which is no destination at any level.
        victim = max(crowd.on.values(), key=len)[-1]
        places: list[tuple[int, int]] = []
        for number, node in enumerate(crowd.nodes):
            if number % _NODES_AT_ONCE == _NODES_AT_ONCE - 1:
                yield Pause()
            room = self._room(view, victim, node)
            if not room:
                continue
            view.note(*self._fitting.loss_wakes(victim, node, view.lister))
            places.append((len(crowd.on.get(node.name, ())), room))
            excess -= _below(average, places[-1:])
            if excess <= 0:
                return average
        wakes = self._fitting.room_wakes(victim, view.lister)
        reason = "the nodes with fewer of them have no room for all that should go"
        yield Rejection(self.NAME, f"{_name(crowd.owner)}: {reason}", wakes)
        levels = range(max(map(len, crowd.on.values())) + 1)
        return bisect_left(
            levels,
            True,
            lo=average + 1,
            key=lambda level: crowd.above(level) <= _below(level, places),
        )

    def _room(self, view: View, pod: Pod, node: Node) -> int:
        """Return how many Pods like this one fit a node; no more than one where that hangs on what
        else is there."""
        if node.name == pod.node_name or self._fitting.misfit(pod, node, view.lister):
            return 0
        template = pod.template
        near = template.anti_affinity or hard_keys(template)
        if near or template.host_ports or template.claims:
            return 1
        return slots(pod, node, view.lister)

    def _offer(
        self, view: View, crowd: _Crowd, level: int, key: Key | None, told: set[str]
    ) -> _Step[Stop]:
        duplicates = {name: _duplicates(pods) for name, pods in crowd.on.items()}
        for name in sorted(duplicates, key=lambda name: (-len(duplicates[name]), name)):
            excess = len(duplicates[name]) + 1 - level
            if excess <= 0:
                return Stop.NO  # so it is with all that follow
            reason = (
                f"node {name} has {len(crowd.on[name])} Pods of {_name(crowd.owner)}, "
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
    ) -> _Step[Stop]:
        """Offer the last of a node's duplicates; where all Pods count, others for those that have
        to stay."""
        refused: dict[str, Rejection | None] = {}
        if self._counts_all:
            refused = {pod.uid: view.filter(pod) for pod in pods}
            pods = sorted(pods, key=lambda pod: refused[pod.uid] is None)
        duplicates = _duplicates(pods)
        stay: list[Rejection] = []
        for pod in (*duplicates[-excess:], *(duplicates[:-excess] if self._counts_all else ())):
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


def _duplicates(pods: Iterable[Pod]) -> list[Pod]:
    """Return the Pods of one node without the first of each kind."""
    first: dict[tuple[str, ...], Pod] = {}
    return [pod for pod in pods if first.setdefault(_identity(pod.template), pod) is not pod]


def _some_duplicate(pods: Iterable[Pod]) -> bool:
    first: dict[tuple[str, tuple[str, ...]], Pod] = {}
    return any(
        first.setdefault((pod.node_name, _identity(pod.template)), pod) is not pod for pod in pods
    )


def _below(level: int, places: Iterable[tuple[int, int]]) -> int:
    """Return for how many Pods there is room below a level; `places`: Pods there, and room."""
    return sum(min(room, level - count) for count, room in places if count < level)


def _name(owner: _OwnerKey) -> str:
    return f"{owner.kind} {owner.name}"


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
