"""What is special about Pods: graceful deletion, and conditions."""

from __future__ import annotations

from reactive_descheduler.sandbox.documents import (
    JsonObject,
    attach,
    integer,
    lookup,
    objects,
    text,
    timestamp,
)

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
