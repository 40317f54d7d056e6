"""What strategies have in common that judge each Pod alone: keys, listing, evaluation, sweep.

Such a strategy brings one predicate, or several that are passes over all nodes one after another.
The predicate is asked first and the filters after it, for most Pods violate nothing; the verdict
is the same in either order.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Annotated, ClassVar, NamedTuple

from pydantic import Field

from reactive_descheduler.api.changes import Action, At, Change, Key, On
from reactive_descheduler.api.eviction import Candidate, Cause, Pause, Rejection, Stop
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.selectors import matches
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.config.args import Arguments, LabelSelector, Namespaces

from .strategy import Evaluation, Holds, Phase, Scope, Step, Subscription, View


class PodArguments(Arguments):
    """Arguments that all of these strategies take."""

    namespaces: Annotated[
        Namespaces, Field(description="Namespaces whose Pods are looked at; none means all.")
    ] = Namespaces()
    label_selector: Annotated[
        LabelSelector | None, Field(description="Only Pods with matching labels are looked at.")
    ] = None


def one_of(known: frozenset[str]) -> Callable[[str], str]:
    """Return a check that names what is allowed, in order of the alphabet."""

    def check(value: str) -> str:
        if value not in known:
            raise ValueError(f"must be one of {', '.join(sorted(known))}, not {value!r}")
        return value

    return check


def after(time: datetime | None, seconds: int) -> datetime | None:
    """Add seconds; None where that is past all time, or there is no time to add to."""
    if time is None:
        return None
    try:
        return time + timedelta(seconds=seconds)
    except OverflowError:
        return None


class Violation(NamedTuple):
    """A placement that is wrong now; `rank` as the candidate's."""

    cause: Cause
    reason: str
    rank: float = 0.0


class NotYet(NamedTuple):
    """A placement that becomes wrong by time alone, at `due`."""

    due: datetime
    reason: str


Predicate = Callable[[View, Pod, Node], Violation | NotYet | Rejection | None]
"""Returns a Rejection where the placement is wrong, and nothing better is to be had."""


def is_ready(change: Change, _lister: Lister, _key: Key) -> bool:
    return isinstance(change.new, Node) and change.new.ready


def _is_active(change: Change, _lister: Lister, _key: Key) -> bool:
    return isinstance(change.new, Pod) and change.new.active


COMMON_EVENTS: tuple[Subscription, ...] = (
    # A Pod comes under review: it is bound, relabelled into the scope, readable, active again.
    Subscription(Action.POD_BOUND | Action.POD_LABELS | Action.POD_OPAQUE, Scope.POD),
    Subscription(Action.POD_PHASE, Scope.POD, _is_active),
    # A node comes into the cycle, with its Pods; labels, for the policy's nodeSelector reads them.
    Subscription(Action.NODE_ADDED | Action.NODE_READY | Action.NODE_LABELS, Scope.NODE, is_ready),
)
"""What every strategy of this kind has to watch, beside what its own predicate reads."""

POD_MATTERS = (
    Action.POD_BOUND
    | Action.POD_LABELS
    | Action.POD_ANNOTATIONS
    | Action.POD_OWNERS
    | Action.POD_PHASE
    | Action.POD_STARTED
    | Action.POD_TOLERATIONS
    | Action.POD_RESOURCES
    | Action.POD_SPEC
    | Action.POD_TERMINATING
    | Action.POD_GONE
    | Action.POD_OPAQUE
)
"""What on a Pod scope, filters and fit read."""
NODE_MATTERS = Action.NODE_REMOVED | Action.NODE_READY | Action.NODE_LABELS | Action.NODE_OPAQUE
"""What on its node takes the Pod out of the cycle."""


class PodStrategy(ABC):
    """Base of strategies keyed by Pod UID. A subclass names itself and hands in its predicates."""

    NAME: ClassVar[str]
    PHASE: ClassVar[Phase] = Phase.DESCHEDULE
    EVENTS: ClassVar[tuple[Subscription, ...]]
    HOLDS: ClassVar[Holds] = Holds.NOTHING
    FINISHED_TOO: ClassVar[bool] = False
    """Whether Pods that have succeeded or failed are looked at (spec/strategies 1.3)."""
    READS_POD: ClassVar[Action] = Action(0)
    READS_NODE: ClassVar[Action] = Action(0)
    """What the predicate reads of the Pod and of its node, beside what every strategy does: any of
    these may end a violation."""

    def __init__(
        self, arguments: PodArguments, *, profile: int, predicates: Sequence[Predicate]
    ) -> None:
        self._profile = profile
        self._predicates = predicates
        self._looks_into = arguments.namespaces.choice()
        self._selector = arguments.label_selector

    def keys_of(self, lister: Lister, /) -> Iterable[Key]:
        pods = tuple(lister.pods())
        return (self._key(pod) for pod in pods if pod.node_name)

    def keys_for(self, scope: Scope, change: Change, lister: Lister, /) -> Iterable[Key]:
        if scope is Scope.ALL:
            return self.keys_of(lister)
        changed = [side for side in (change.old, change.new) if side is not None]
        if scope is Scope.POD:
            pods = [side for side in changed if isinstance(side, Pod)]
        else:
            names = {side.node_name if isinstance(side, Pod) else side.name for side in changed}
            pods = [pod for name in sorted(names - {""}) for pod in lister.pods_on(name)]
        return dict.fromkeys(map(self._key, pods))

    def evaluate(self, view: View, key: Key, /) -> Evaluation:
        pod = view.lister.pod(key.unit[0])
        node = view.nodes.get(pod.node_name) if pod is not None else None
        if pod is None or node is None or not self._lists(pod):
            return
        told: list[Candidate | Rejection] = []
        for predicate in self._predicates:
            outcome = self._outcome(predicate, view, pod, node)
            if outcome is None or outcome in told:
                continue
            told.append(outcome)
            yield outcome
            if isinstance(outcome, Candidate):
                return

    def sweep(self, view: View, /) -> Evaluation:
        """Look at everything: pass by pass, node by node; a node is listed, then acted on."""
        for predicate in self._predicates:
            for node in view.nodes.values():
                listed = yield from self._listed(predicate, view, node)
                stop = yield from self._offered(listed)
                if stop is Stop.ALL:
                    break
                yield Pause()

    def counts(self, key: Key, pod: Pod, _lister: Lister, /) -> bool:
        return key.unit == (pod.uid,)

    def breaks(self, _cause: Cause, _change: Change, /) -> bool:
        return False

    def _refuses(self, _view: View, _pod: Pod, _node: Node) -> Rejection | None:
        """Refuse what violates and passes every filter; asked last, for it may be dear."""
        return None

    def _key(self, pod: Pod) -> Key:
        return Key(self._profile, self.NAME, (pod.uid,))

    def _lists(self, pod: Pod) -> bool:
        return (
            (self.FINISHED_TOO or pod.active)
            and self._looks_into(pod.namespace)
            and (self._selector is None or matches(self._selector, pod.template.labels))
        )

    def _outcome(
        self, predicate: Predicate, view: View, pod: Pod, node: Node
    ) -> Candidate | Rejection | None:
        found = predicate(view, pod, node)
        if found is None:
            return None
        view.note(
            On(POD_MATTERS | self.READS_POD, pod.ref),
            On(NODE_MATTERS | self.READS_NODE, node.ref),
        )
        if isinstance(found, Rejection):
            return found
        if isinstance(found, NotYet):
            return Rejection(self.NAME, found.reason, (At(found.due),), pod.ref)
        refused = view.filter(pod) or view.pre_eviction(pod) or self._refuses(view, pod, node)
        return refused or Candidate(self._key(pod), pod, found.cause, found.reason, found.rank)

    def _listed(self, predicate: Predicate, view: View, node: Node) -> Step[list[Candidate]]:
        """Return the candidates of one node in the order in which they are offered."""
        candidates = []
        for pod in view.lister.pods_on(node.name):
            outcome = self._outcome(predicate, view, pod, node) if self._lists(pod) else None
            if isinstance(outcome, Candidate):
                candidates.append(outcome)
            elif outcome is not None:
                yield outcome
        return sorted(candidates, key=attrgetter("rank"))

    def _offered(self, candidates: Iterable[Candidate]) -> Step[Stop]:
        """Offer until a limit stops it; return which one did."""
        for candidate in candidates:
            verdict = yield candidate
            if verdict is not None and verdict.stop is not Stop.NO:
                return verdict.stop
        return Stop.NO
