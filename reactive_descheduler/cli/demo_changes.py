"""What somebody changed, in words: out of the old and the new object, as the demo's watches show
them. Pure functions; an absent object was created or deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from reactive_descheduler.cli.demo_timeline import Timeline
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    integer,
    is_ready,
    is_terminating,
    labels,
    lookup,
    name_of,
    objects,
    text,
    uid_of,
)

Describe: TypeAlias = Callable[[JsonObject, JsonObject], Iterator[str]]
Listener: TypeAlias = Callable[[JsonObject | None, JsonObject | None], None]

CORDON_TAINT = "node.kubernetes.io/unschedulable"
"""What a cordon brings by itself."""


def listener(timeline: Timeline, kind: str, describe: Describe) -> Listener:
    """Return a listener of a mirror that tells changes; `kind` stands before the names of what is
    created or deleted, and is empty where that is told otherwise."""

    def listen(old: JsonObject | None, new: JsonObject | None) -> None:
        if old is not None and new is not None and uid_of(old) == uid_of(new):
            for told in describe(old, new):
                timeline.change(told)
        elif kind:
            timeline.change(f"{kind} {name_of(new or old)} is {'created' if new else 'deleted'}")

    return listen


def node_changes(old: JsonObject, new: JsonObject) -> Iterator[str]:
    """Cordon, taints, labels, and whether it is Ready; heartbeats are no change."""
    name = name_of(new)
    if is_cordoned(old) != is_cordoned(new):
        yield f"{name} is {'cordoned' if is_cordoned(new) else 'uncordoned'}"
    before, after = taints(old), taints(new)
    yield from (f"{name} gets the taint {each}" for each in after if each not in before)
    yield from (f"{name} loses the taint {each}" for each in before if each not in after)
    yield from _label_changes(name, labels(old), labels(new))
    if is_ready(old) != is_ready(new):
        yield f"{name} is {'Ready' if is_ready(new) else 'no longer Ready'}"


def workload_changes(old: JsonObject, new: JsonObject) -> Iterator[str]:
    """Replicas and Pod template of a Deployment or StatefulSet."""
    before, after = (integer(each, "spec", "replicas", default=1) for each in (old, new))
    if before != after:
        yield f"{name_of(new)} is scaled from {before} to {after}"
    if lookup(old, "spec", "template") != lookup(new, "spec", "template"):
        yield f"{name_of(new)} gets another Pod template"


def budget_changes(old: JsonObject, new: JsonObject) -> Iterator[str]:
    for field, words in (("minAvailable", "available"), ("maxUnavailable", "unavailable at most")):
        value = lookup(new, "spec", field)
        if value is not None and value != lookup(old, "spec", field):
            yield f"the budget {name_of(new)} wants {value} {words}"


def pod_changes(old: JsonObject, new: JsonObject) -> Iterator[str]:
    """Labels and restarts; binding copies labels of the node, which nobody gave."""
    if is_terminating(new) or text(old, "spec", "nodeName") != text(new, "spec", "nodeName"):
        return
    yield from _label_changes(name_of(new), labels(old), labels(new))
    if (restarts := _restarts(new)) > _restarts(old):
        yield f"{name_of(new)} has restarted {restarts} times"


def is_cordoned(node: JsonObject) -> bool:
    return lookup(node, "spec", "unschedulable") is True


def taints(node: JsonObject) -> list[str]:
    """As kubectl writes them, without the one that says no more than that the node is cordoned."""
    return [
        f"{text(taint, 'key')}{value and '='}{value}:{text(taint, 'effect')}"
        for taint in objects(node, "spec", "taints")
        for value in (text(taint, "value"),)
        if text(taint, "key") != CORDON_TAINT
    ]


def _label_changes(name: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    for key, value in new.items():
        if key not in old:
            yield f"{name} gets the label {key}={value}"
        elif old[key] != value:
            yield f"{name} gets the label {key}={value} instead of {old[key]}"
    yield from (f"{name} loses the label {key}={old[key]}" for key in old if key not in new)


def _restarts(pod: JsonObject) -> int:
    statuses = objects(pod, "status", "containerStatuses")
    return sum(integer(each, "restartCount") for each in statuses)
