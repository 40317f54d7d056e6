"""What LowNodeUtilization and HighNodeUtilization have in common (spec/strategies 4.9 to 4.11).

Both sum up every node, sort the nodes into classes, and move Pods from the sources among them for
as long as there is room on the destinations. One key stands for a whole profile, since any node can
be the room that another one waits for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import ClassVar, NamedTuple

from reactive_descheduler.api.changes import Action, Change, Key, Never, On, Wakes
from reactive_descheduler.api.eviction import (
    TAKEN,
    Candidate,
    Cause,
    Pause,
    Rejection,
    Stop,
    Verdict,
)
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.config.corrections import Correction, Corrections
from reactive_descheduler.config.evictor import DefaultEvictorArguments
from reactive_descheduler.framework.fitting import Fitting, fit_rules
from reactive_descheduler.framework.pod_order import low_priority_first
from reactive_descheduler.framework.strategy import (
    Evaluation,
    Holds,
    Phase,
    Scope,
    Subscription,
    View,
)

from .arguments import UtilizationArguments
from .ceiling import Ceiling
from .room import PlacedRoom, Room, SumRoom, Tolerance, tolerance
from .sources import NotMeasured, Reading, Source
from .sums import Amounts, NodeUse, Shares

_NODES = 200
"""Nodes that are summed up before the event loop may have its turn."""
_MOST = 200
"""Pods that are offered at a time where a key is looked at: more follow once these have gone and
their replacements are bound, and what is offered is looked at again before each request. The last
node may take it a little further."""
_PODS = 5
"""Pods that are offered before the same."""
_NAMED = 1000
"""Pods of which a key says, and is remembered for, why they stay; the rest are a number. A node
without limit may have ten times as many."""

_CLASSES = (
    Action.NODE_ADDED
    | Action.NODE_REMOVED
    | Action.NODE_READY
    | Action.NODE_ALLOCATABLE
    | Action.NODE_SCHEDULABLE
    | Action.NODE_LABELS
)
"""What on nodes turns their class, beside their Pods."""
_SUMS = Action.POD_GONE | Action.POD_RESOURCES | Action.POD_OPAQUE
_ANY_ROOM: Wakes = (On(_CLASSES | _SUMS, None),)
_FIT = Action.POD_TERMINATING | Action.POD_LABELS | Action.POD_SPEC
_ON_SOURCES = (
    Action.POD_ANNOTATIONS
    | Action.POD_OWNERS
    | Action.POD_STARTED
    | Action.POD_TOLERATIONS
    | Action.POD_PHASE
    | Action.POD_TERMINATING
    | Action.POD_LABELS
    | Action.POD_SPEC
)
"""What on a Pod of a source turns its own verdict, and moves no sum."""


def _on_a_node(change: Change, _lister: Lister, _key: Key) -> bool:
    sides = (change.old, change.new)
    return any(isinstance(side, Pod) and bool(side.node_name) for side in sides)


def _comes_to_life(change: Change, _lister: Lister, _key: Key) -> bool:
    old, new = change.old, change.new
    return isinstance(old, Pod) and isinstance(new, Pod) and new.active and not old.active


EVENTS: tuple[Subscription, ...] = (
    Subscription(_CLASSES | Action.NODE_TAINTS | Action.NODE_OPAQUE, Scope.ALL),
    Subscription(Action.POD_BOUND, Scope.ALL),
    Subscription(_SUMS | _FIT, Scope.ALL, _on_a_node),
    # Whether it counts; only a list after a gap shows a Pod that has come back to life.
    Subscription(Action.POD_PHASE, Scope.ALL, _comes_to_life),
    # What volumes, and anti-affinity by labels of namespaces, say about a destination.
    Subscription(Action.CLAIM | Action.VOLUME | Action.NAMESPACE_LABELS, Scope.ALL),
    Subscription(Action.USAGE, Scope.ALL),
)
"""Whatever moves a sum, a class, or what fits a destination. Usage only where it is measured."""


class Sorted(NamedTuple):
    """The nodes of one state, sorted."""

    sources: Sequence[NodeUse]
    """In the order in which they are relieved."""
    destinations: Sequence[NodeUse]
    """In the order in which they are tried."""
    high: Shares
    """Up to where a node may be used; all of it where nothing is said."""
    ceiling: Ceiling
    why_not: str = ""
    """Why nothing is moved although there are sources."""


Sorting = Generator[Pause, Verdict | None, Sorted]


class NodeUtilization(ABC):
    """`limit`: evictions from each node in one run."""

    NAME: ClassVar[str]
    PHASE: ClassVar[Phase] = Phase.BALANCE
    EVENTS: ClassVar[tuple[Subscription, ...]] = EVENTS
    HOLDS: ClassVar[Holds] = Holds.OWN
    UNREADABLE: ClassVar[str]
    """What becomes of a node of which a Pod cannot be read."""

    def __init__(
        self,
        arguments: UtilizationArguments,
        *,
        profile: int,
        corrections: Corrections,
        evictor: DefaultEvictorArguments | None,
        source: Source,
        limit: int | None = None,
    ) -> None:
        self.key = Key(profile, self.NAME, ())
        self.limit = limit
        self.needs_all = False
        """Whether one node whose usage is not known leaves nothing to go by."""
        self._source = source
        self._least = arguments.number_of_nodes
        self._excluded = frozenset(arguments.evictable_namespaces.exclude)
        self._named = tuple(sorted(arguments.thresholds))
        self.only_named = Correction.UTILIZATION_RESOURCES in corrections
        """Whether resources without thresholds play no part."""
        self.counted = self._named if self.only_named else tuple(source.names)
        """The resources that say when to stop."""
        self._as_scheduler = Correction.UTILIZATION_TOLERATIONS in corrections
        self._places = Correction.UTILIZATION_PLACEMENT in corrections
        looks_elsewhere = evictor is None or evictor.looks_elsewhere(corrections)
        self._fitting = Fitting(fit_rules(corrections)) if looks_elsewhere else None

    def keys_of(self, _lister: Lister, /) -> Iterable[Key]:
        return (self.key,)

    def keys_for(self, _scope: Scope, _change: Change, _lister: Lister, /) -> Iterable[Key]:
        return (self.key,)

    def evaluate(self, view: View, _key: Key, /) -> Evaluation:
        try:
            yield from self._look(view, most=_MOST)
        except NotMeasured as error:
            yield Rejection(self.NAME, str(error), error.wakes)

    def sweep(self, view: View, /) -> Evaluation:
        """Look at all nodes and relieve those that are to be.

        Raises UsageError where measured usage is asked for and is not to be had.
        """
        yield from self._look(view)

    def _look(self, view: View, *, most: int | None = None) -> Evaluation:
        if not view.nodes:
            return
        reading = self._source.read(view)
        uses = []
        for node in view.nodes.values():
            uses.append(reading.of_node(node))
            if len(uses) % _NODES == 0:
                yield Pause()
        unknown = [use for use in uses if use.unreadable is not None]
        if unknown:
            yield self._unreadable(unknown)
            if self.needs_all:
                return
        found = yield from self._sorted(uses, reading)
        yield Pause()
        if not found.sources:
            return
        if found.why_not:
            yield Rejection(self.NAME, found.why_not, _ANY_ROOM)
            return
        yield from _Relief(self, view, reading, found).relieve(most)

    def _unreadable(self, uses: Sequence[NodeUse]) -> Rejection:
        """Return what becomes of nodes that might be fuller than they look; told once for all."""
        first, more = uses[0], len(uses) - 1
        pod = first.unreadable
        assert pod is not None  # the callers choose them by it
        name = f"Pod {pod.namespace}/{pod.name}"
        others = f" (so with {more} more nodes)" if more else ""
        ends = "there is no mean of all nodes" if self.needs_all else self.UNREADABLE
        reason = f"what is used of node {first.node.name} is unknown, for {name} is unreadable"
        wake = On(Action.POD_OPAQUE, None)
        return Rejection(self.NAME, f"{reason}: {ends}{others}", (wake,))

    def counts(self, _key: Key, _pod: Pod, _lister: Lister, /) -> bool:
        return True

    def breaks(self, _cause: Cause, _change: Change, /) -> bool:
        return False

    @abstractmethod
    def _sorted(self, uses: Sequence[NodeUse], reading: Reading) -> Sorting:
        """Sort the nodes into sources and destinations."""

    def judges(self, use: NodeUse) -> bool:
        """Say whether the thresholds say anything of the node."""
        return not self.only_named or any(use.capacity.get(name, 0) for name in self._named)

    @abstractmethod
    def reason(self, source: NodeUse, high: Shares) -> str:
        """Say why Pods of this node go."""

    @abstractmethod
    def has_enough(self, source: NodeUse, high: Shares) -> bool:
        """Say whether enough has left this node."""

    def moves(self, _pod: Pod) -> bool:
        """Say whether a Pod is moved at all."""
        return True

    def helps(self, _amounts: Amounts, _source: NodeUse, _high: Shares) -> bool:
        """Say whether the node is better off when this much leaves it."""
        return True

    def excludes(self, pod: Pod) -> Rejection | None:
        if pod.namespace not in self._excluded:
            return None
        reason = f"evictableNamespaces excludes namespace {pod.namespace}"
        return Rejection(self.NAME, reason, (Never(pod.uid),), pod.ref)

    def room(self, view: View, reading: Reading, found: Sorted) -> Room:
        """Return what there is room for on the destinations."""
        if not self._places:
            return SumRoom(found.destinations, found.high, self.counted)
        for destination in found.destinations:
            for promised in view.lister.promised_on(destination.node.name):
                amounts = reading.of_pod(promised)
                if isinstance(amounts, Mapping):
                    destination.add(amounts)
        unnamed = [name for name in self.counted if name not in self._named]
        return PlacedRoom(
            found.destinations,
            found.ceiling,
            names=self._named,
            total=SumRoom(found.destinations, found.high, unnamed),
            fitting=self._fitting,
            lister=view.lister,
        )

    def tolerance(self, found: Sorted) -> Tolerance:
        return tolerance(found.destinations, as_scheduler=self._as_scheduler)


_Relieving = Generator[Candidate | Rejection | Pause, Verdict | None, Stop]


class _Relief:
    """Moves Pods from the sources of one state."""

    def __init__(
        self, strategy: NodeUtilization, view: View, reading: Reading, found: Sorted
    ) -> None:
        self._strategy = strategy
        self._view = view
        self._reading = reading
        self._found = found
        self._room = strategy.room(view, reading, found)
        self._tolerates = strategy.tolerance(found)
        self._taken = 0
        self._staying = 0

    def relieve(self, most: int | None) -> Evaluation:
        """Move Pods, if `most` is given no more than about that many; and say who stays."""
        # Room that was promised may be free again.
        self._view.note(On(Action.REPLACED, None))
        for source in self._found.sources:
            if not self._room.open():
                yield Rejection(self._strategy.NAME, "no destination has room left", _ANY_ROOM)
                break
            if most is not None and self._taken >= most:
                break
            if (yield from self._relieve(source)) is Stop.ALL:
                break
            yield Pause()
        if self._staying > _NAMED:
            more = f"{self._staying - _NAMED} more Pods stay for such reasons"
            yield Rejection(self._strategy.NAME, more, _ANY_ROOM)

    def _relieve(self, source: NodeUse) -> _Relieving:
        strategy, high = self._strategy, self._found.high
        self._view.note(On(_ON_SOURCES, source.node.ref))
        if strategy.has_enough(source, high):
            return Stop.NO
        movable = self._movable(source)
        if not movable:
            yield self._none_movable(source)
            return Stop.NO
        left = self._reading.left(source.node)
        if left and strategy.limit is None:
            yield self._not_shown(source)
            return Stop.NO
        return (yield from self._offered(movable, source, left))

    def _offered(self, movable: Sequence[Pod], source: NodeUse, evicted: int) -> _Relieving:
        """Offer Pods until enough has left the node, or room or limit is used up."""
        strategy, high = self._strategy, self._found.high
        reason = strategy.reason(source, high)
        cause = Cause("utilization", (source.node.name,), (source.node.ref,))
        for asked, pod in enumerate(movable, start=1):
            if strategy.limit is not None and evicted >= strategy.limit:
                break
            if asked % _PODS == 0:
                yield Pause()
            amounts = yield from self._asked(pod, source)
            if isinstance(amounts, Rejection):
                yield from self._stayed(amounts)
                continue
            verdict = (yield Candidate(strategy.key, pod, cause, reason)) or TAKEN
            if verdict.stop is not Stop.NO:
                return verdict.stop
            if not verdict.taken:
                continue
            evicted += 1
            self._taken += 1
            if self._ends(pod, amounts, source):
                break
        return Stop.NO

    def _stayed(self, refused: Rejection) -> Iterable[Rejection]:
        """Tell why a Pod stays; of those that are too many, keep what would change that."""
        self._staying += 1
        if self._staying <= _NAMED:
            yield refused
        else:
            self._view.note(*(wake for wake in refused.wakes if not isinstance(wake, Never)))

    def _ends(self, pod: Pod, amounts: Amounts | None, source: NodeUse) -> bool:
        """Reckon with a Pod that goes; say whether the node is done with."""
        self._room.take(pod, amounts or {}, source)
        if amounts is None:
            # What it used is not known: without a limit one is enough until the next sample.
            return self._strategy.limit is None
        source.add(amounts, -1)
        return not self._room.open() or self._strategy.has_enough(source, self._found.high)

    def _movable(self, source: NodeUse) -> list[Pod]:
        """Return the Pods that may go, in the order in which they do."""
        pods = self._view.lister.pods_on(source.node.name)
        return low_priority_first(
            pod
            for pod in pods
            if pod.active and self._strategy.moves(pod) and self._view.filter(pod) is None
        )

    def _asked(
        self, pod: Pod, source: NodeUse
    ) -> Generator[Pause, Verdict | None, Amounts | Rejection | None]:
        """Return what leaves with the Pod, None if that is not known, or why it stays."""
        if not self._tolerates(pod):
            return self._stays(pod, "it tolerates the taints of no destination")
        if (refused := self._strategy.excludes(pod)) is not None:
            return refused
        amounts = self._reading.of_pod(pod)
        if isinstance(amounts, str):
            return self._stays(pod, amounts, (On(Action.USAGE, None),))
        if amounts is not None and not self._strategy.helps(amounts, source, self._found.high):
            return self._stays(pod, "it uses nothing of what the node has too much used of")
        # Before the filters, for it is the cheaper where most find none.
        if not (yield from self._room.find(pod, amounts, source)):
            return self._stays(pod, "no destination has room for it")
        return self._view.pre_eviction(pod) or amounts

    def _stays(self, pod: Pod, reason: str, wakes: Wakes = _ANY_ROOM) -> Rejection:
        return Rejection(self._strategy.NAME, reason, wakes, pod.ref)

    def _none_movable(self, source: NodeUse) -> Rejection:
        reason = f"{self._strategy.reason(source, self._found.high)}, and none of its Pods may go"
        return Rejection(self._strategy.NAME, reason, (On(_SUMS | _ON_SOURCES, source.node.ref),))

    def _not_shown(self, source: NodeUse) -> Rejection:
        reason = f"what has left node {source.node.name} is not measured yet"
        return Rejection(self._strategy.NAME, reason, (On(Action.USAGE, None),))
