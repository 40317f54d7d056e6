"""The documents by which clients learn what is served; the unaggregated kind, which all know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactive_descheduler.sandbox.apiserver.resources import MEASURED, RESOURCES, REVIEWS
from reactive_descheduler.sandbox.apiserver.status import NotServed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reactive_descheduler.sandbox.apiserver.resources import Resource
    from reactive_descheduler.sandbox.documents import JsonObject

VERSION: JsonObject = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.0+sandbox",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
# Subresource: kind, group and version where they are not the resource's own, verbs.
_SUBRESOURCES: dict[str, tuple[str, str, str, list[str]]] = {
    "binding": ("Binding", "", "", ["create"]),
    "eviction": ("Eviction", "policy", "v1", ["create"]),
    "scale": ("Scale", "autoscaling", "v1", ["get", "patch", "update"]),
}


def discover(path: str, *, measured: bool) -> JsonObject:
    """The document at a discovery path; `measured` is whether there is a metrics API.

    Raises NotServed for a path that is none.
    """
    served = (*RESOURCES, *REVIEWS, *(MEASURED if measured else ()))
    match path.strip("/").split("/"):
        case ["version"]:
            return VERSION
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"]}
        case ["apis"]:
            versions = {r.group: r.version for r in served if r.group}
            groups = [_group(*each) for each in sorted(versions.items())]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ["apis", name] if version := {r.version for r in served if r.group == name}:
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, *version)}
        case ["api" | "apis", *rest]:
            return _resource_list([r for r in served if r.api_version == "/".join(rest)])
    raise NotServed


def is_discovery(path: str) -> bool:
    """Whether a path names no resource: `/api/v1`, `/apis/apps/v1` and what is shorter."""
    parts = path.strip("/").split("/")
    return parts[0] == "version" or len(parts) <= {"api": 2, "apis": 3}.get(parts[0], 0)


def _group(name: str, of_group: str) -> JsonObject:
    version: JsonObject = {"groupVersion": f"{name}/{of_group}", "version": of_group}
    return {"name": name, "versions": [version], "preferredVersion": version}


def _resource_list(served: Sequence[Resource]) -> JsonObject:
    if not served:
        raise NotServed
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": served[0].api_version,
        "resources": [entry for resource in served for entry in _entries(resource)],
    }


def _entries(resource: Resource) -> list[JsonObject]:
    whole: JsonObject = {
        "name": resource.plural,
        "singularName": resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _verbs(resource),
        "shortNames": list(resource.short_names),
    }
    if resource in MEASURED:
        return [whole]
    if resource.plural in ("pods", "deployments", "replicasets", "daemonsets", "statefulsets"):
        whole["categories"] = ["all"]
    entries = [whole]
    for name in (*resource.subresources, *(("status",) if resource.has_status else ())):
        kind, group, version, verbs = _SUBRESOURCES.get(
            name, (resource.kind, "", "", ["get", "patch", "update"])
        )
        entry: JsonObject = {
            "name": f"{resource.plural}/{name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": kind,
            "verbs": verbs,
        }
        if group:
            entry |= {"group": group, "version": version}
        entries.append(entry)
    return entries


def _verbs(resource: Resource) -> list[str]:
    if resource in MEASURED:
        return ["get", "list"]
    return ["create"] if resource in REVIEWS else _VERBS
