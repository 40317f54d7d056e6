"""The least of an OpenAPI v3 description that lets `kubectl create` and `apply` go ahead.

kubectl asks whether the server validates fields by itself, which it reads off the parameters of
each kind's PATCH; if so it sends the object unchecked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactive_descheduler.sandbox.apiserver.resources import RESOURCES
from reactive_descheduler.sandbox.apiserver.status import NotServed

if TYPE_CHECKING:
    from reactive_descheduler.sandbox.apiserver.resources import Resource
    from reactive_descheduler.sandbox.documents import JsonObject

_ROOT = "/openapi/v3"


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
            resource.path("{namespace}", "{name}"): _patch(resource) for resource in resources
        },
    }


def _patch(resource: Resource) -> JsonObject:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    parameter = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}
    return {"patch": {"x-kubernetes-group-version-kind": kind, "parameters": [parameter]}}
