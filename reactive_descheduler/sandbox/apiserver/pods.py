"""What is special about Pods: graceful deletion and binding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactive_descheduler.sandbox.apiserver.resources import PODS
from reactive_descheduler.sandbox.apiserver.status import ApiError, conflict
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    attach,
    integer,
    is_terminating,
    lookup,
    objects,
    string_map,
    text,
    timestamp,
    uid_of,
)

if TYPE_CHECKING:
    from reactive_descheduler.sandbox.apiserver.registry import Registry
    from reactive_descheduler.sandbox.apiserver.store import ObjectKey

FINISHED = ("Succeeded", "Failed")


def grace_period(pod: JsonObject, options: JsonObject) -> int:
    """Seconds that a Pod keeps after its deletion; 0 removes it at once.

    Pods that are not bound or have finished get none, whatever is asked for.
    """
    if not text(pod, "spec", "nodeName") or text(pod, "status", "phase") in FINISHED:
        return 0
    default = integer(pod, "spec", "terminationGracePeriodSeconds", default=30)
    grace = integer(options, "gracePeriodSeconds", default=default)
    return 1 if grace < 0 else grace


def shortens(pod: JsonObject, grace: int) -> bool:
    """Whether a second deletion changes anything: only a shorter grace period does."""
    return grace < integer(pod, "metadata", "deletionGracePeriodSeconds")


def bind(registry: Registry, key: ObjectKey, binding: JsonObject, *, dry_run: bool) -> None:
    """Assign a Pod to a node, and set its condition PodScheduled.

    Raises ApiError 409 if it is terminating, bound already, or of another uid.
    """
    stored = registry.get(PODS, key)
    node = text(binding, "target", "name")
    if not node:
        raise ApiError(400, "target.name: Required value")
    pod = stored.copy()
    wanted = text(binding, "metadata", "uid")
    if wanted and wanted != uid_of(pod):
        why = f"UID in precondition: {wanted}, UID in object meta: {uid_of(pod)}"
        raise conflict(PODS, key[1], f"Precondition failed: {why}")
    if is_terminating(pod):
        why = f"pod {key[1]} is being deleted, cannot be assigned to a host"
        raise conflict(PODS, key[1], why)
    if bound := text(pod, "spec", "nodeName"):
        raise conflict(PODS, key[1], f"pod {key[1]} is already assigned to node {bound!r}")
    attach(pod, "spec")["nodeName"] = node
    annotations = string_map(binding, "metadata", "annotations")
    if annotations:
        attach(pod, "metadata", "annotations").update(annotations)
    set_condition(pod, {"type": "PodScheduled", "status": "True"}, registry.now())
    if not dry_run:
        registry.store.put(PODS, pod)


def set_condition(document: JsonObject, condition: JsonObject, now: float) -> None:
    """Put a status condition in place of the one of its type."""
    kind = condition["type"]
    present = objects(document, "status", "conditions")
    before: JsonObject = next((c for c in present if c.get("type") == kind), {})
    same = before.get("status") == condition["status"]
    since = lookup(before, "lastTransitionTime") if same else None
    entry = {"lastTransitionTime": since or timestamp(now), **condition}
    kept: list[object] = [c for c in present if c.get("type") != kind]
    attach(document, "status")["conditions"] = [*kept, entry]
