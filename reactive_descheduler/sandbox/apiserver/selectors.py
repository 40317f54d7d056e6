"""Label selectors and field selectors, as text in a query and as documents in a spec."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from reactive_descheduler.sandbox.apiserver.status import ApiError
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    labels,
    lookup,
    mapping,
    objects,
    string_map,
    strings,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactive_descheduler.sandbox.apiserver.resources import Resource

    Predicate = Callable[[JsonObject], bool]
    LabelTest = Callable[[dict[str, str]], bool]

_SET_TERM = re.compile(r"^(\S+)\s+(in|notin)\s*\(([^)]*)\)$")
_EQUALITY_TERM = re.compile(r"^([^\s=!]+)\s*(==|=|!=)\s*([^\s=!]*)$")
_EXISTS_TERM = re.compile(r"^(!?)\s*([\w./-]+)$")

_FIELDS: dict[str, tuple[str, ...]] = {
    "pods": (
        "spec.nodeName", "status.phase", "spec.restartPolicy", "spec.schedulerName",
        "spec.serviceAccountName", "status.podIP", "status.nominatedNodeName",
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "events": (
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
        "involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion",
        "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type",
    ),
    "secrets": ("type",),
    "replicasets.apps": ("status.replicas",),
    "jobs.batch": ("status.successful",),
}  # fmt: skip


def matches_labels(selector: object, values: dict[str, str]) -> bool:
    """Whether a LabelSelector document matches; null matches nothing, an empty one everything."""
    if not isinstance(selector, dict):
        return False
    if any(values.get(k) != v for k, v in string_map(selector, "matchLabels").items()):
        return False
    return all(_expression(entry, values) for entry in objects(selector, "matchExpressions"))


def _expression(entry: JsonObject, values: dict[str, str]) -> bool:
    key, wanted = text(entry, "key"), strings(entry, "values")
    match text(entry, "operator"):
        case "In":
            return key in values and values[key] in wanted
        case "NotIn":
            return values.get(key) not in wanted
        case "Exists":
            return key in values
        case "DoesNotExist":
            return key not in values
    return False


def parse_label_selector(source: str) -> Predicate | None:
    """A predicate for `a=b,c!=d,e in (f,g),h,!i`; None if the text selects everything.

    Raises ApiError 400 for text that is no selector.
    """
    terms = [_label_term(part.strip()) for part in re.split(r",(?![^(]*\))", source) if part]
    if not terms:
        return None

    def matches(document: JsonObject) -> bool:
        values = labels(document)
        return all(term(values) for term in terms)

    return matches


def _label_term(part: str) -> LabelTest:
    if found := _SET_TERM.match(part):
        key, operator = found[1], found[2]
        wanted = {value.strip() for value in found[3].split(",")}
        if operator == "in":
            return lambda values: key in values and values[key] in wanted
        return lambda values: values.get(key) not in wanted
    if found := _EQUALITY_TERM.match(part):
        key, value = found[1], found[3]
        if found[2] == "!=":
            return lambda values: values.get(key) != value
        return lambda values: values.get(key) == value
    if found := _EXISTS_TERM.match(part):
        absent, key = bool(found[1]), found[2]
        return lambda values: (key in values) is not absent
    raise ApiError(400, f"unable to parse requirement: {part!r}")


def parse_field_selector(source: str, resource: Resource) -> Predicate | None:
    """A predicate for `metadata.name=a,spec.nodeName!=b`; None if the text selects everything.

    Raises ApiError 400 for text that is no selector and for fields that cannot be selected by.
    """
    supported = ("metadata.name", "metadata.namespace", *_FIELDS.get(resource.qualified, ()))
    terms = []
    for part in filter(None, source.split(",")):
        found = _EQUALITY_TERM.match(part.strip())
        if found is None:
            raise ApiError(400, f"invalid selector: {source!r}; can't understand {part!r}")
        if found[1] not in supported:
            raise ApiError(400, f"field label not supported: {found[1]}")
        terms.append((tuple(found[1].split(".")), found[3], found[2] != "!="))
    if not terms:
        return None
    return lambda document: all(
        (_field(document, path) == value) is equal for path, value, equal in terms
    )


def _field(document: JsonObject, path: tuple[str, ...]) -> str:
    if path == ("source",):
        return text(mapping(document, "source"), "component")
    value = lookup(document, *path)
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "false" if path == ("spec", "unschedulable") else ""
    return str(value)
