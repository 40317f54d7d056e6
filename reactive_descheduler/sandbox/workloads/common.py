"""What the workload controllers share: Pods of a template, their owners, counts and statuses."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

import orjson

from reactive_descheduler.sandbox.apiserver.pods import FINISHED, set_condition
from reactive_descheduler.sandbox.client import ApiClient, ApiRefused
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    attach,
    clone,
    condition,
    controller_of,
    integer,
    is_ready,
    is_terminating,
    mapping,
    name_of,
    namespace_of,
    seconds_of,
    text,
    uid_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reactive_descheduler.sandbox.mirror import Mirror, ObjectKey

REVISION_LABEL = "controller-revision-hash"
_SAFE = "bcdfghjklmnpqrstvwxz2456789"
# Counts that the API types write even if they are 0.
_ALWAYS_WRITTEN: Mapping[str, frozenset[str]] = {
    "replicasets": frozenset({"replicas"}),
    "statefulsets": frozenset({"replicas", "availableReplicas"}),
    "daemonsets": frozenset(
        {
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
        }
    ),
}


def owner_uid(document: JsonObject) -> str:
    return text(controller_of(document), "uid")


def owner_key(document: JsonObject, kind: str) -> list[ObjectKey]:
    """The key of the controller, if it is of that kind."""
    owner = controller_of(document)
    if owner.get("kind") != kind:
        return []
    return [(namespace_of(document), text(owner, "name"))]


def template_hash(workload: JsonObject) -> str:
    """Ten signs that stand for the Pod template."""
    template = orjson.dumps(mapping(workload, "spec", "template"), option=orjson.OPT_SORT_KEYS)
    digest = hashlib.sha256(template).digest()
    return "".join(_SAFE[byte % len(_SAFE)] for byte in digest[:10])


def pod_of(workload: JsonObject) -> JsonObject:
    """A Pod of the workload's template, owned by it; the server completes the name."""
    template = clone(mapping(workload, "spec", "template"))
    metadata = attach(template, "metadata")
    metadata["generateName"] = f"{name_of(workload)}-"
    metadata["namespace"] = namespace_of(workload)
    metadata["ownerReferences"] = [reference_to(workload)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def reference_to(owner: JsonObject) -> JsonObject:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_finished(pod: JsonObject) -> bool:
    return text(pod, "status", "phase") in FINISHED


def active(pods: Iterable[JsonObject]) -> list[JsonObject]:
    return [pod for pod in pods if not is_terminating(pod) and not is_finished(pod)]


def ready_for(pod: JsonObject, now: float) -> float:
    """Seconds since a Pod became Ready; negative if it is not."""
    if not is_ready(pod):
        return -1.0
    since = text(condition(pod, "Ready"), "lastTransitionTime")
    return max(0.0, now - seconds_of(since)) if since else math.inf


def share(value: object, total: int, *, up: bool) -> int:
    """A count, or a percentage of the total."""
    if isinstance(value, int):
        return value
    part = int(str(value).removesuffix("%")) * total / 100
    return math.ceil(part) if up else math.floor(part)


async def delete_pod(client: ApiClient, pods: Mirror, pod: JsonObject) -> None:
    try:
        deleted = await client.delete("pods", name_of(pod), namespace=namespace_of(pod))
    except ApiRefused as error:
        if error.code != 404:
            raise
        return
    await pods.caught_up(deleted)


def with_conditions(
    workload: JsonObject, conditions: Iterable[JsonObject], now: float
) -> list[object]:
    """The status conditions with these in the places of theirs."""
    document: JsonObject = {"status": {"conditions": mapping(workload, "status").get("conditions")}}
    for entry in conditions:
        set_condition(document, entry, now)
    present = mapping(document, "status")["conditions"]
    assert isinstance(present, list)
    return present


async def patch_status(
    client: ApiClient, plural: str, workload: JsonObject, status: JsonObject
) -> None:
    """Report a status, if it is news; counts of 0 are left out as the API types have it."""
    always = _ALWAYS_WRITTEN.get(plural, frozenset())
    wanted: JsonObject = {
        field: None if value == 0 and field not in always else value
        for field, value in status.items()
    }
    wanted["observedGeneration"] = integer(workload, "metadata", "generation")
    present = mapping(workload, "status")
    if any(present.get(field) != value for field, value in wanted.items()):
        await client.patch(
            plural,
            name_of(workload),
            {"status": wanted},
            namespace=namespace_of(workload),
            subresource="status",
        )
