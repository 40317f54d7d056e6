"""The documents by which clients learn what is served; the unaggregated kind, which all know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactive_descheduler.sandbox.apiserver.resources import RESOURCES, REVIEWS
from reactive_descheduler.sandbox.apiserver.status import NotServed

if TYPE_CHECKING:
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

_SERVED = (*RESOURCES, *REVIEWS)
_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
# Subresource: kind, group and version where they are not the resource's own, verbs.
_SUBRESOURCES: dict[str, tuple[str, str, str, list[str]]] = {
    "binding": ("Binding", "", "", ["create"]),
    "eviction": ("Eviction", "policy", "v1", ["create"]),
    "scale": ("Scale", "autoscaling", "v1", ["get", "patch", "update"]),
}


def discover(path: str) -> JsonObject:
    """The document at a discovery path.

    Raises NotServed for a path that is none.
    """
    match path.strip("/").split("/"):
        case ["version"]:
            return VERSION
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"]}
        case ["apis"]:
            groups = sorted({r.group for r in _SERVED if r.group})
            return {
                "kind": "APIGroupList",
                "apiVersion": "v1",
                "groups": [_group(name) for name in groups],
            }
        case ["apis", name] if any(r.group == name for r in _SERVED):
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(name)}
        case ["api" | "apis", *rest]:
            return _resource_list("/".join(rest))
    raise NotServed


def is_discovery(path: str) -> bool:
    """Whether a path names no resource: `/api/v1`, `/apis/apps/v1` and what is shorter."""
    parts = path.strip("/").split("/")
    return parts[0] == "version" or len(parts) <= {"api": 2, "apis": 3}.get(parts[0], 0)


def _group(name: str) -> JsonObject:
    version: JsonObject = {"groupVersion": f"{name}/v1", "version": "v1"}
    return {"name": name, "versions": [version], "preferredVersion": version}


def _resource_list(api_version: str) -> JsonObject:
    served = [r for r in _SERVED if r.api_version == api_version]
    if not served:
        raise NotServed
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": api_version,
        "resources": [entry for resource in served for entry in _entries(resource)],
    }


def _entries(resource: Resource) -> list[JsonObject]:
    whole: JsonObject = {
        "name": resource.plural,
        "singularName": resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": ["create"] if resource in REVIEWS else _VERBS,
        "shortNames": list(resource.short_names),
    }
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
