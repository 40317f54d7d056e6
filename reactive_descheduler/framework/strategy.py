"""The interface of a strategy, and what it is handed.

A strategy is plain and synchronous: it reads a View, yields Candidates and Rejections, and is sent
the verdict on each candidate before it goes on. The daemon, `plan`, `run --once` and the
conformance corpus drive the very same generators.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import ClassVar, NamedTuple, Protocol, TypeVar, runtime_checkable

from reactive_descheduler.api.changes import Action, At, Change, Key, On
from reactive_descheduler.api.eviction import Candidate, Cause, Pause, Rejection, Verdict
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.usage import Usage

_Found = TypeVar("_Found")
Step = Generator[Candidate | Rejection | Pause, Verdict | None, _Found]
"""A part of an evaluation, which comes to something."""
Evaluation = Step[None]
"""After each Candidate the driver sends its Verdict; after anything else it sends None."""


class Phase(Enum):
    """Upstream runs all deschedule strategies of all profiles before any balance strategy."""

    DESCHEDULE = "deschedule"
    BALANCE = "balance"


class Scope(Enum):
    """What a subscription names; it expands to keys when the change arrives (spec/strategies
    5.1)."""

    ALL = "all"
    NODE = "node"
    """The Pods on the changed node."""
    POD = "pod"
    """The changed Pod."""
    OWNER = "owner"
    """The owners of the changed Pod."""
    CONSTRAINT = "constraint"
    """The constraints that count the changed Pod, that it carries, or that read the changed
    node."""
    NAMESPACES = "namespaces"
    """The namespaces that anti-affinity joins with the changed Pod's."""


class Holds(Enum):
    """What keeps a key from being evaluated for more than it offers already (design 5.3)."""

    NOTHING = "nothing"
    COUNTED = "counted"
    """A Pod that it counts is in flight or terminating, or the replacement of one that was evicted
    is not bound yet."""
    OWN = "own"
    """The same, for evictions only that the key asked for itself; what others evicted holds it
    until the Pod is gone."""


Narrow = Callable[[Change, Lister, Key], bool]
"""False: the change cannot flip this key. An exception in it counts as True: doubt means run."""


class Subscription(NamedTuple):
    action: Action
    """Any of these flags."""
    scope: Scope
    narrow: Narrow | None = None


class View(Protocol):
    """One profile's reading of one state.

    In the daemon: live, less the Pods that are assumed going. In a full pass: less what it took
    itself. Both filter steps note the wakes of what they say for the key under evaluation, also
    where a strategy only counts and never offers.
    """

    @property
    def lister(self) -> Lister: ...
    @property
    def now(self) -> datetime: ...
    @property
    def nodes(self) -> Mapping[str, Node]:
        """The cycle's nodes by name, in order of names: ready and selected by the policy.

        Empty when there are fewer than two (spec/strategies 1.2).
        """

    @property
    def usage(self) -> Usage | None:
        """Measured usage; None where the policy configures no source of it."""

    @property
    def version(self) -> int:
        """Moves with the state that this reads."""

    def filter(self, pod: Pod, /) -> Rejection | None: ...
    def pre_eviction(self, pod: Pod, /) -> Rejection | None: ...
    def note(self, *wakes: On | At) -> None:
        """Look at the key again when one of these happens, whatever this evaluation yields."""


class Strategy(Protocol):
    """Keys partition: no Pod can be a candidate of two keys of one (profile, strategy)."""

    NAME: ClassVar[str]
    """Upstream's name, as in policies, logs and metrics."""
    PHASE: ClassVar[Phase]
    EVENTS: ClassVar[tuple[Subscription, ...]]
    HOLDS: ClassVar[Holds]

    def keys_of(self, lister: Lister, /) -> Iterable[Key]:
        """Return every key of the key space.

        They are taken over many turns of the event loop, while the lister goes on changing: a lazy
        answer has to rest on a copy.
        """

    def keys_for(self, scope: Scope, change: Change, lister: Lister, /) -> Iterable[Key]:
        """Return the keys that a scope means here, from the old and from the new object.

        Thousands are better given as an iterator, which is taken over many turns of the event loop,
        while the lister goes on changing: it has to rest on a copy, and what changes meanwhile to
        wake its keys by itself.
        """

    def evaluate(self, view: View, key: Key, /) -> Evaluation:
        """Look at one key. One that vanished yields nothing."""

    def sweep(self, view: View, /) -> Evaluation:
        """Look at everything, in upstream's order and with its stops."""

    def counts(self, key: Key, pod: Pod, lister: Lister, /) -> bool:
        """Say whether the key counts this Pod, wherever it is; only asked where HOLDS is
        COUNTED."""

    def breaks(self, cause: Cause, change: Change, /) -> bool:
        """Say whether this change interrupted the cause, so that it has to settle anew."""


@runtime_checkable
class Reevaluates(Protocol):
    """A strategy that looks at a part of a key for less than at the whole."""

    def reevaluate(self, view: View, candidate: Candidate, /) -> Evaluation:
        """Look at that part of the candidate's key on which it depends whether it is offered.

        A cap on what a key offers at once need not hold here.
        """


Strategies = Sequence[Strategy]
