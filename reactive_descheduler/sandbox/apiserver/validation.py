"""What makes an object invalid: the checks that clients meet in practice, in a real server's words.

Types of fields are not checked here, nor anywhere: the sandbox keeps what it is sent.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import orjson

from reactive_descheduler.sandbox.apiserver.status import ApiError, invalid
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    labels,
    lookup,
    mapping,
    name_of,
    namespace_of,
    objects,
    strings,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactive_descheduler.sandbox.apiserver.resources import Resource

    Check = Callable[[Resource, JsonObject], None]

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NAME_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def check_name(resource: Resource, document: JsonObject) -> None:
    """Raises ApiError 422 for a name that is missing or not one."""
    name = name_of(document)
    if not name:
        why = "Required value: name or generateName is required"
        raise invalid(resource, "", "metadata.name", why)
    if not _NAME.fullmatch(name) or len(name) > 253:
        why = f"Invalid value: {_quoted(name)}: {_NAME_RULE}"
        raise invalid(resource, name, "metadata.name", why)


def check_object(resource: Resource, document: JsonObject, *, old: JsonObject | None) -> None:
    """Raises ApiError 422 for new labels and for other fields that are not valid."""
    if old is None or labels(old) != labels(document):
        _check_labels(resource, document)
    check = _CHECKS.get(resource.qualified)
    if check is not None:
        check(resource, document)


def _check_labels(resource: Resource, document: JsonObject) -> None:
    for key, value in labels(document).items():
        prefix, _, name = key.rpartition("/")
        bad = key if not _LABEL_NAME.fullmatch(name) or len(name) > 63 else ""
        bad = bad or (prefix if prefix and not _NAME.fullmatch(prefix) else "")
        bad = bad or (value if not _LABEL_VALUE.fullmatch(value) or len(value) > 63 else "")
        if bad:
            why = f"Invalid value: {_quoted(bad)}: is no name or value of a label"
            raise invalid(resource, name_of(document), "metadata.labels", why)


def check_change(resource: Resource, old: JsonObject, new: JsonObject) -> None:
    """Raises ApiError 422 for finalizers that are added to an object on its way out."""
    if lookup(old, "metadata", "deletionTimestamp") is None:
        return
    before = strings(old, "metadata", "finalizers")
    added = [name for name in strings(new, "metadata", "finalizers") if name not in before]
    if added:
        found = ", ".join(map(_quoted, added))
        why = (
            "Forbidden: no new finalizers can be added if the object is being deleted, found new "
            f"finalizers []string{{{found}}}"
        )
        raise invalid(resource, name_of(new), "metadata.finalizers", why)


def _check_node(resource: Resource, node: JsonObject) -> None:
    seen: set[tuple[str, str]] = set()
    for place, taint in enumerate(objects(node, "spec", "taints")):
        key, effect = text(taint, "key"), text(taint, "effect")
        field = f"metadata.taints[{place}]"
        if effect not in _EFFECTS:
            known = ", ".join(map(_quoted, _EFFECTS))
            why = f"Unsupported value: {_quoted(effect)}: supported values: {known}"
            raise invalid(resource, name_of(node), f"{field}.effect", why)
        if (key, effect) in seen:
            why = f"Duplicate value: {_quoted(key)}: taints must be unique by key and effect pair"
            raise invalid(resource, name_of(node), field, why)
        seen.add((key, effect))


def _check_pod(resource: Resource, pod: JsonObject) -> None:
    containers = objects(pod, "spec", "containers")
    if not containers:
        raise invalid(resource, name_of(pod), "spec.containers", "Required value")
    for place, container in enumerate(containers):
        for field in ("name", "image"):
            if not text(container, field):
                at = f"spec.containers[{place}].{field}"
                raise invalid(resource, name_of(pod), at, "Required value")


def _check_budget(resource: Resource, budget: JsonObject) -> None:
    spec = mapping(budget, "spec")
    if {"minAvailable", "maxUnavailable"} <= {k for k, v in spec.items() if v is not None}:
        shown = orjson.dumps(spec).decode()
        why = f"Invalid value: {shown}: minAvailable and maxUnavailable cannot be both set"
        raise invalid(resource, name_of(budget), "spec", why)


def _check_lease(resource: Resource, lease: JsonObject) -> None:
    spec = mapping(lease, "spec")
    for field in ("acquireTime", "renewTime"):
        stamp = text(spec, field)
        if stamp and not _MICRO_TIME.fullmatch(stamp):
            message = (
                'Lease in version "v1" cannot be handled as a Lease: parsing time '
                f'{_quoted(stamp)} as "2006-01-02T15:04:05.000000Z07:00"'
            )
            raise ApiError(400, message)
    duration = spec.get("leaseDurationSeconds")
    if isinstance(duration, int) and duration <= 0:
        why = f"Invalid value: {duration}: must be greater than 0"
        raise invalid(resource, name_of(lease), "spec.leaseDurationSeconds", why)


def _check_event(resource: Resource, event: JsonObject) -> None:
    """Both forms keep to the namespace; the newer one, known by its time, is checked in full."""
    about = text(event, "involvedObject", "namespace")
    # Objects outside namespaces are told of in `default`.
    if about != namespace_of(event) and (about or namespace_of(event) != "default"):
        why = f"Invalid value: {_quoted(about)}: does not match event.namespace"
        raise invalid(resource, name_of(event), "involvedObject.namespace", why)


def check_new_event(resource: Resource, event: JsonObject) -> None:
    """Raises ApiError 422 for what `events.k8s.io/v1` asks for and `v1` does not."""
    for stored, field in (
        ("eventTime", "eventTime"),
        ("reportingComponent", "reportingController"),
        ("reportingInstance", "reportingInstance"),
        ("action", "action"),
        ("reason", "reason"),
    ):
        if not text(event, stored):
            raise invalid(resource, name_of(event), field, "Required value")
    if text(event, "type") not in ("Normal", "Warning"):
        why = f'Invalid value: "": has invalid value: {text(event, "type")}'
        raise invalid(resource, name_of(event), "type", why)


def _quoted(value: str) -> str:
    return orjson.dumps(value).decode()


_CHECKS: dict[str, Check] = {
    "nodes": _check_node,
    "pods": _check_pod,
    "poddisruptionbudgets.policy": _check_budget,
    "leases.coordination.k8s.io": _check_lease,
    "events": _check_event,
}
