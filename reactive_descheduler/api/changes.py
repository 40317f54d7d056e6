"""What moves through the program: watch events, changes, cluster events, keys and wakes.

A *watch event* is what the API server sent; a *change* is what the cache made of it (old and new
view); a *cluster event* is one property that differs, with the object it differs on; a *key* says
what to look at again.
"""

from __future__ import annotations

from datetime import datetime
from enum import Flag, StrEnum, auto
from typing import NamedTuple

from reactive_descheduler.api.meta import KubeObject, Ref
from reactive_descheduler.api.pod import Shape


class WatchEventType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    ERROR = "ERROR"


class WatchEvent(NamedTuple):
    """One line of a watch, decoded. A bookmark has only a version; an ERROR never comes this far
    (it is raised)."""

    type: WatchEventType
    object: KubeObject | None
    resource_version: str


class Change(NamedTuple):
    """What one watch event made of one object, after store and indexes were updated.

    Added: `old` is None. Deleted: `new` is None. A name that comes back with another UID is
    Deleted(old), then Added(new).
    """

    kind: str
    old: KubeObject | None
    new: KubeObject | None

    @property
    def object(self) -> KubeObject:
        found = self.new if self.new is not None else self.old
        assert found is not None  # a change has at least one side
        return found

    @property
    def ref(self) -> Ref:
        return (self.kind, self.object.namespace, self.object.name)


class Action(Flag):
    """Properties that can change (extractors in `triggers`), and gates that open
    (`evictor.gates`)."""

    NODE_ADDED = auto()
    NODE_REMOVED = auto()
    NODE_TAINTS = auto()
    NODE_LABELS = auto()
    NODE_ALLOCATABLE = auto()
    NODE_SCHEDULABLE = auto()
    """The cordon flag went on or off."""
    NODE_READY = auto()
    """Readiness changed, either way."""
    NODE_OPAQUE = auto()

    POD_ADDED = auto()
    POD_BOUND = auto()
    """The Pod is on a node now and was not before: bound, or first seen bound."""
    POD_LABELS = auto()
    POD_ANNOTATIONS = auto()
    POD_OWNERS = auto()
    POD_PHASE = auto()
    POD_STATES = auto()
    """A container's waiting or terminated reason, an exit code, or `status.reason`."""
    POD_RESTARTS = auto()
    POD_CONDITIONS = auto()
    POD_STARTED = auto()
    """`status.startTime` was set."""
    POD_TOLERATIONS = auto()
    POD_RESOURCES = auto()
    POD_SPEC = auto()
    """Anything else in the shared template: images, selectors, affinity, volumes."""
    POD_READY = auto()
    POD_TERMINATING = auto()
    POD_GONE = auto()
    """Deleted, or finished (Succeeded or Failed): what it held on its node is free."""
    POD_DELETED = auto()
    POD_OPAQUE = auto()
    """Became readable or unreadable, or came or went as one that cannot be read."""

    NAMESPACE_LABELS = auto()
    """Namespace created, deleted or relabelled."""
    BUDGET_SELECTION = auto()
    """A budget came, went, or selects other Pods."""
    BUDGET_STATUS = auto()
    """Any status of a budget moved."""
    BUDGET_ROSE = auto()
    """`disruptionsAllowed` rose, or the budget went."""
    CLAIM = auto()
    """A PersistentVolumeClaim came, went, got another storage class or another volume."""
    VOLUME = auto()
    """A PersistentVolume came, went, or can be reached from other nodes."""

    LANE_FREE = auto()
    """From the lane gate: the request in flight for this budget was answered, or its debit was
    lifted."""
    LIMIT_FREED = auto()
    """From the limits gate: a request was refused for certain, and its permit is free again."""
    BUCKET_FILLED = auto()
    STREAM_FRESH = auto()
    """From the staleness gate: a stream that was stale speaks again."""
    REPLACED = auto()
    """An evicted Pod's replacement is bound, or is waited for no longer: what was held or promised
    for it is free. On the evicted Pod, and on the node that was promised."""
    USAGE = auto()
    """A new sample of measured usage is in."""
    CAUSE_BROKE = auto()
    """From causes: a change interrupted it, and its settle time starts anew."""


class ClusterEvent(NamedTuple):
    action: Action
    ref: Ref


class Key(NamedTuple):
    """What to look at again. The profile goes by its index, since names of profiles may repeat."""

    profile: int
    strategy: str
    unit: tuple[str, ...]


class At(NamedTuple):
    """Wake at this time (wall clock, UTC)."""

    time: datetime


class On(NamedTuple):
    """Wake when one of these actions happens to `ref` (None: to any object).

    With a shape: only if a Pod of that shape fits the changed node now.
    """

    action: Action
    ref: Ref | None
    shape: Shape | None = None


class Never(NamedTuple):
    """No wake: the verdict stands as long as the Pod of this UID exists."""

    uid: str


Wake = At | On | Never
Wakes = tuple[Wake, *tuple[Wake, ...]]
"""At least one: an empty tuple does not type-check."""
