"""What changed on a Node. A heartbeat touches nothing here, so that it comes to no flag at all."""

from __future__ import annotations

from collections.abc import Callable

from reactive_descheduler.api.changes import Action
from reactive_descheduler.api.node import Node


def presence(old: Node | None, new: Node | None) -> Action:
    if old is None:
        return Action.NODE_ADDED
    return Action.NODE_REMOVED if new is None else Action(0)


def taints(old: Node | None, new: Node | None) -> Action:
    differ = old and new and old.taints != new.taints
    return Action.NODE_TAINTS if differ else Action(0)


def labels(old: Node | None, new: Node | None) -> Action:
    differ = old and new and old.labels != new.labels
    return Action.NODE_LABELS if differ else Action(0)


def allocatable(old: Node | None, new: Node | None) -> Action:
    differ = old and new and (old.allocatable, old.capacity) != (new.allocatable, new.capacity)
    return Action.NODE_ALLOCATABLE if differ else Action(0)


def schedulable(old: Node | None, new: Node | None) -> Action:
    differ = old and new and old.unschedulable != new.unschedulable
    return Action.NODE_SCHEDULABLE if differ else Action(0)


def ready(old: Node | None, new: Node | None) -> Action:
    differ = old and new and old.ready != new.ready
    return Action.NODE_READY if differ else Action(0)


def opaque(old: Node | None, new: Node | None) -> Action:
    differ = old and new and old.opaque != new.opaque
    return Action.NODE_OPAQUE if differ else Action(0)


EXTRACTORS: tuple[Callable[[Node | None, Node | None], Action], ...] = (
    presence,
    taints,
    labels,
    allocatable,
    schedulable,
    ready,
    opaque,
)
