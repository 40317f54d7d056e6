"""An OpenAPI v3 description of the kinds served: for `kubectl explain`, `create` and `apply`.

kubectl asks whether the server validates fields by itself, which it reads off the parameters of
each kind's PATCH; if so it sends the object unchecked. `apply` reads merge keys off the schemas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactive_descheduler.sandbox.apiserver.kinds import TYPES, Field, Type, type_of
from reactive_descheduler.sandbox.apiserver.resources import RESOURCES
from reactive_descheduler.sandbox.apiserver.status import NotServed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reactive_descheduler.sandbox.apiserver.resources import Resource
    from reactive_descheduler.sandbox.documents import JsonObject

_ROOT = "/openapi/v3"
_PRIMITIVES: dict[str, JsonObject] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "bool": {"type": "boolean"},
    "bytes": {"type": "string", "format": "byte"},
    "Time": {"type": "string", "format": "date-time"},
    "MicroTime": {"type": "string", "format": "date-time"},
    "Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "IntOrString": {"type": "string", "format": "int-or-string"},
}
_TYPE_META: dict[str, JsonObject] = {
    "apiVersion": {"type": "string", "description": "Group and version of the kind."},
    "kind": {"type": "string", "description": "What the object is."},
}


def is_openapi(path: str) -> bool:
    return path == _ROOT or path.startswith(f"{_ROOT}/")


def describe(path: str) -> JsonObject:
    """The index, or the description of one group and version.

    Raises NotServed for other paths.
    """
    groups: dict[str, list[Resource]] = {}
    for resource in RESOURCES:
        groups.setdefault(resource.root.lstrip("/"), []).append(resource)
    if path == _ROOT:
        return {"paths": {root: {"serverRelativeURL": f"{_ROOT}/{root}"} for root in groups}}
    resources = groups.get(path.removeprefix(f"{_ROOT}/"))
    if resources is None:
        raise NotServed
    return {
        "openapi": "3.0.0",
        "info": {"title": "Sandbox", "version": "v1"},
        "paths": {
            resource.path("{namespace}", "{name}"): _operations(resource) for resource in resources
        },
        "components": {"schemas": _schemas(resources)},
    }


def _operations(resource: Resource) -> JsonObject:
    kind = _group_version_kind(resource)
    parameter = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}
    patch: JsonObject = {"x-kubernetes-group-version-kind": kind, "parameters": [parameter]}
    return {"get": {"x-kubernetes-group-version-kind": kind}, "patch": patch}


def _group_version_kind(resource: Resource) -> JsonObject:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _schemas(resources: Iterable[Resource]) -> JsonObject:
    """The kinds, and every type that they are made of."""
    schemas: JsonObject = {}
    for resource in resources:
        described = type_of(resource.api_version, resource.kind)
        if described is not None:
            schema = _add(described, schemas)
            schema["x-kubernetes-group-version-kind"] = [_group_version_kind(resource)]
            schema["properties"] = {**_TYPE_META, **_properties(described)}
    return schemas


def _add(described: Type, schemas: JsonObject) -> JsonObject:
    schema: JsonObject = {"type": "object", "description": described.description}
    schemas[described.name] = schema
    schema["properties"] = _properties(described)
    for name in _named(described):
        if name not in schemas:
            _add(TYPES[name], schemas)
    return schema


def _named(described: Type) -> Iterable[str]:
    for field in described.fields:
        if field.is_inline:
            yield from _named(TYPES[field.type])
        elif field.type in TYPES:
            yield field.type


def _properties(described: Type) -> JsonObject:
    properties: JsonObject = {}
    for field in described.fields:
        if field.is_inline:
            properties |= _properties(TYPES[field.type])
        else:
            properties[field.name] = _property(field)
    return properties


def _property(field: Field) -> JsonObject:
    below = TYPES.get(field.type)
    described: JsonObject = {
        "description": field.description or (below.description if below else "")
    }
    # A reference alone may have no description beside it.
    reference: JsonObject = {"$ref": f"#/components/schemas/{field.type}"}
    one = _PRIMITIVES.get(field.type, {"allOf": [reference]})
    match field.shape:
        case "one":
            return described | one
        case "map":
            return described | {"type": "object", "additionalProperties": one}
    described |= {"type": "array", "items": one}
    if field.merge_by:
        described["x-kubernetes-patch-strategy"] = "merge"
        if field.merge_by != "set":
            described["x-kubernetes-patch-merge-key"] = field.merge_by
    return described
