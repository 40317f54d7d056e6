"""Defaults, checks and the separation of spec and status: what a write becomes before storage."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from reactive_descheduler.sandbox.apiserver.event_forms import CORE_EVENTS
from reactive_descheduler.sandbox.apiserver.resources import (
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
)
from reactive_descheduler.sandbox.apiserver.status import ApiError, invalid, not_found
from reactive_descheduler.sandbox.apiserver.validation import (
    check_change,
    check_name,
    check_object,
)
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

_BUILT_IN_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_NO_COUNTS: JsonObject = dict.fromkeys(
    ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"), 0
)
_INITIAL_STATUS: dict[str, JsonObject] = {
    "replicasets": {"replicas": 0},
    "statefulsets": {"replicas": 0, "availableReplicas": 0},
    "daemonsets": dict.fromkeys(
        ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"), 0
    ),
    "poddisruptionbudgets": _NO_COUNTS,
}
_EVENT_FIELDS: JsonObject = {
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
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
    if name and not metadata.get("name"):
        message = f"the name of the object ({name} based on URL) was undeterminable: "
        raise ApiError(400, message + "name must be provided")
    if name and metadata["name"] != name:
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
    check_name(resource, document)
    if resource.namespaced and ("", namespace) not in store.of(NAMESPACES).objects:
        raise not_found(NAMESPACES, namespace)
    metadata = attach(document, "metadata")
    if metadata.get("resourceVersion"):
        raise ApiError(500, "resourceVersion should not be set on objects to be created", reason="")
    for field in _RAISED_BY_SERVER:
        metadata.pop(field, None)
    if resource.has_generation:
        metadata["generation"] = 1
    if resource is NODES:
        document.setdefault("spec", {})
    elif resource.has_status:
        document["status"] = dict(_INITIAL_STATUS.get(resource.plural, {}))
    if resource is PODS:
        _prepare_pod(store, document)
    elif resource is NAMESPACES:
        document["status"] = {"phase": "Active"}
        attach(document, "metadata", "labels").setdefault("kubernetes.io/metadata.name", name)
    elif is_workload(resource):
        default_workload(resource, document)
        check_workload(resource, document)
    elif resource is CORE_EVENTS:
        for field, empty in _EVENT_FIELDS.items():
            document.setdefault(field, empty)
    check_object(resource, document, old=None)


def prepare_update(resource: Resource, old: JsonObject, new: JsonObject, status_only: bool) -> None:
    """Carry over what this endpoint may not change, and count changes of the spec.

    Raises ApiError 422 for a change of a Pod's placement or other fixed fields.
    """
    check_change(resource, old, new)
    if status_only:
        _keep_all_but_status(resource, old, new)
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
    if resource is PODS:
        _tolerate_lost_nodes(attach(new, "spec"))
    check_object(resource, new, old=old)
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


def _keep_all_but_status(resource: Resource, old: JsonObject, new: JsonObject) -> None:
    """Annotations and finalizers may be written along with a status; labels not in all groups."""
    status, metadata = new.get("status", {}), mapping(new, "metadata")
    kept = clone(old)
    for field in ("annotations", "finalizers", *(("labels",) if resource.group != "apps" else ())):
        attach(kept, "metadata").pop(field, None)
        if metadata.get(field):
            attach(kept, "metadata")[field] = metadata[field]
    new.clear()
    new.update(kept)
    new["status"] = status


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
    spec = attach(pod, "spec")
    default_pod_spec(spec)
    spec.setdefault("serviceAccountName", "default")
    spec.setdefault("serviceAccount", spec["serviceAccountName"])
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
