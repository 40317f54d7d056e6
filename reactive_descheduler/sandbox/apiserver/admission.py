"""Defaults, checks and the separation of spec and status: what a write becomes before storage."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from reactive_descheduler.sandbox.apiserver.resources import NAMESPACES, PODS, PRIORITY_CLASSES
from reactive_descheduler.sandbox.apiserver.status import ApiError, invalid, not_found
from reactive_descheduler.sandbox.apiserver.workload_admission import (
    check_fixed,
    check_workload,
    default_pod_spec,
    default_workload,
    is_workload,
)
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    attach,
    clone,
    lookup,
    mapping,
    name_of,
    namespace_of,
    objects,
    text,
)

if TYPE_CHECKING:
    from reactive_descheduler.sandbox.apiserver.resources import Resource
    from reactive_descheduler.sandbox.apiserver.store import Store

_NAME = re.compile(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
_BUILT_IN_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_KEPT_METADATA = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_RAISED_BY_SERVER = ("resourceVersion", *_KEPT_METADATA, "generation", "selfLink", "managedFields")


def check_identity(resource: Resource, namespace: str, name: str, document: JsonObject) -> None:
    """Kind, namespace and name must agree with the URL.

    Raises ApiError 400 where they do not.
    """
    for field, wanted in (("kind", resource.kind), ("apiVersion", resource.api_version)):
        given = text(document, field)
        if given and given != wanted:
            raise ApiError(
                400, f"the {field} of the object ({given}) does not match the request ({wanted})"
            )
    metadata = attach(document, "metadata")
    if resource.namespaced:
        if metadata.setdefault("namespace", namespace) != namespace:
            raise ApiError(
                400,
                "the namespace of the provided object does not match the namespace sent on the "
                "request",
            )
    else:
        metadata.pop("namespace", None)
    if name and metadata.setdefault("name", name) != name:
        raise ApiError(
            400,
            f"the name of the object ({metadata['name']}) does not match the name on the URL "
            f"({name})",
        )


def prepare_create(store: Store, resource: Resource, document: JsonObject) -> None:
    """Check a new object and give it its defaults; uid, times and version come afterwards.

    Raises ApiError 404 for an unknown namespace, 422 for an object that is not valid.
    """
    name, namespace = name_of(document), namespace_of(document)
    if not _NAME.match(name) or len(name) > 253:
        why = f"Invalid value: {name!r}: a lowercase RFC 1123 subdomain is required"
        raise invalid(resource, name, "metadata.name", why)
    if resource.namespaced and ("", namespace) not in store.of(NAMESPACES).objects:
        raise not_found(NAMESPACES, namespace)
    metadata = attach(document, "metadata")
    for field in _RAISED_BY_SERVER:
        metadata.pop(field, None)
    if resource.has_generation:
        metadata["generation"] = 1
    if resource.has_status and resource.plural != "nodes":
        document.pop("status", None)
    if resource is PODS:
        _prepare_pod(store, document)
    elif resource is NAMESPACES:
        document["status"] = {"phase": "Active"}
        attach(document, "metadata", "labels").setdefault("kubernetes.io/metadata.name", name)
    elif is_workload(resource):
        default_workload(resource, document)
        check_workload(resource, document)


def prepare_update(resource: Resource, old: JsonObject, new: JsonObject, status_only: bool) -> None:
    """Carry over what this endpoint may not change, and count changes of the spec.

    Raises ApiError 422 for a change of a Pod's placement or other fixed fields.
    """
    if status_only:
        status = new.get("status", {})
        new.clear()
        new.update(clone(old))
        new["status"] = status
        return
    if resource.has_status:
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"]
    metadata = attach(new, "metadata")
    for field in (*_KEPT_METADATA, "generation"):
        metadata.pop(field, None)
        if (kept := lookup(old, "metadata", field)) is not None:
            metadata[field] = kept
    if resource is PODS and _fixed_part(old) != _fixed_part(new):
        why = (
            "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
            "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
            "additions to existing tolerations),`spec.terminationGracePeriodSeconds`"
        )
        raise invalid(resource, name_of(old), "spec", why)
    if is_workload(resource):
        default_workload(resource, new)
        check_fixed(resource, old, new)
        check_workload(resource, new)
    if resource.has_generation and old.get("spec") != new.get("spec"):
        metadata["generation"] = cast(int, metadata.get("generation", 1)) + 1


def _fixed_part(pod: JsonObject) -> JsonObject:
    changeable = ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds")
    spec = {k: v for k, v in mapping(pod, "spec").items() if k not in changeable}
    for kind in ("containers", "initContainers"):
        spec[kind] = [
            {k: v for k, v in container.items() if k != "image"}
            for container in objects(spec, kind)
        ]
    return spec


def _prepare_pod(store: Store, pod: JsonObject) -> None:
    if not objects(pod, "spec", "containers"):
        raise invalid(PODS, name_of(pod), "spec.containers", "Required value")
    spec = attach(pod, "spec")
    default_pod_spec(spec)
    spec.setdefault("serviceAccountName", "default")
    spec.setdefault("enableServiceLinks", True)
    _set_priority(store, pod, spec)
    _tolerate_lost_nodes(spec)
    pod["status"] = {"phase": "Pending", "qosClass": _qos_class(pod)}


def _set_priority(store: Store, pod: JsonObject, spec: JsonObject) -> None:
    classes = store.of(PRIORITY_CLASSES).objects
    name = text(spec, "priorityClassName")
    if not name:
        chosen = next(
            (c.document for c in classes.values() if c.document.get("globalDefault") is True), {}
        )
        name = name_of(chosen)
        if name:
            spec["priorityClassName"] = name
    if name in _BUILT_IN_PRIORITIES:
        spec["priority"] = _BUILT_IN_PRIORITIES[name]
    elif name:
        found = classes.get(("", name))
        if found is None:
            message = (
                f'pods "{name_of(pod)}" is forbidden: no PriorityClass with name {name} was found'
            )
            raise ApiError(403, message)
        spec["priority"] = found.document.get("value", 0)
        spec.setdefault(
            "preemptionPolicy", found.document.get("preemptionPolicy", "PreemptLowerPriority")
        )
    else:
        spec["priority"] = 0
        spec.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _tolerate_lost_nodes(spec: JsonObject) -> None:
    """The admission plugin DefaultTolerationSeconds: 300 s on nodes that are lost."""
    tolerations: list[object] = [*objects(spec, "tolerations")]
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(
            text(entry, "key") in ("", key) and text(entry, "effect") in ("", "NoExecute")
            for entry in tolerations
        ):
            tolerations.append(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            )
    spec["tolerations"] = tolerations


def _qos_class(pod: JsonObject) -> str:
    """Guaranteed, Burstable or BestEffort by the containers' cpu and memory."""
    containers = [*objects(pod, "spec", "containers"), *objects(pod, "spec", "initContainers")]
    asked, guaranteed = False, True
    for container in containers:
        limits, requests = (
            mapping(container, "resources", "limits"),
            mapping(container, "resources"),
        )
        requests = mapping(requests, "requests")
        for name in ("cpu", "memory"):
            limit, request = limits.get(name), requests.get(name, limits.get(name))
            asked = asked or limit is not None or request is not None
            guaranteed = guaranteed and limit is not None and limit == request
    return "BestEffort" if not asked else "Guaranteed" if guaranteed else "Burstable"
