"""The subresource `scale`: the count of replicas alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactive_descheduler.sandbox.apiserver.patches import apply_patch
from reactive_descheduler.sandbox.apiserver.requests import not_allowed
from reactive_descheduler.sandbox.apiserver.status import conflict
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    attach,
    integer,
    mapping,
    string_map,
    text,
)

if TYPE_CHECKING:
    from reactive_descheduler.sandbox.apiserver.registry import Registry
    from reactive_descheduler.sandbox.apiserver.resources import Resource
    from reactive_descheduler.sandbox.apiserver.store import ObjectKey, Stored


def scale(
    registry: Registry,
    resource: Resource,
    key: ObjectKey,
    *,
    verb: str,
    body: object,
    content_type: str,
) -> JsonObject:
    """Read or change the count; gives the Scale.

    Raises ApiError 404 if there is no such workload, 409 for another resourceVersion.
    """
    stored = registry.get(resource, key)
    if verb == "get":
        return _document(stored)
    if verb == "patch":
        wanted = apply_patch(_document(stored), body, content_type)
    elif verb == "update":
        wanted = body if isinstance(body, dict) else {}
    else:
        raise not_allowed()
    if text(wanted, "metadata", "resourceVersion") not in ("", str(stored.version)):
        raise conflict(resource, key[1], "the object has been modified")
    workload = stored.copy()
    attach(workload, "spec")["replicas"] = integer(wanted, "spec", "replicas")
    return _document(registry.update(resource, key, workload))


def _document(stored: Stored) -> JsonObject:
    workload = stored.document
    metadata = mapping(workload, "metadata")
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    chosen = string_map(workload, "spec", "selector", "matchLabels")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in kept},
        "spec": {"replicas": integer(workload, "spec", "replicas")},
        "status": {
            "replicas": integer(workload, "status", "replicas"),
            "selector": ",".join(f"{name}={value}" for name, value in sorted(chosen.items())),
        },
    }
