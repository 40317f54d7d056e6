"""What a request asks for: its URL and query, read into data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from reactive_descheduler.sandbox.apiserver import protobuf
from reactive_descheduler.sandbox.apiserver.event_forms import stored_as
from reactive_descheduler.sandbox.apiserver.options import check_list_options
from reactive_descheduler.sandbox.apiserver.resources import (
    BY_PATH,
    GROUP_VERSIONS,
    NAMESPACES,
    PODS,
    Resource,
)
from reactive_descheduler.sandbox.apiserver.selectors import (
    parse_field_selector,
    parse_label_selector,
)
from reactive_descheduler.sandbox.apiserver.status import ApiError, NotServed
from reactive_descheduler.sandbox.documents import JsonObject

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reactive_descheduler.sandbox.apiserver.selectors import Predicate

_OF_CONTAINERS = frozenset({"log", "exec", "attach", "portforward", "proxy"})


@dataclass(frozen=True)
class Target:
    """A collection, an object or a subresource. An empty namespace means all of them."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def label(self) -> str:
        """How faults name it: `pods`, `pods/eviction`, `deployments.apps`."""
        return "/".join(filter(None, (self.resource.qualified, self.subresource)))

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name


def parse_path(path: str) -> Target:
    """Find what a path names.

    Raises ApiError 404 for a resource that is not served, NotServed for a group that is not.
    """
    parts = path.strip("/").split("/")
    group = ""
    if parts[0] == "api":
        version, rest = parts[1:2], parts[2:]
    else:
        group, version, rest = "".join(parts[1:2]), parts[2:3], parts[3:]
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource, *more = [*rest, "", "", ""]
    if parts[0] not in ("api", "apis") or (group, "".join(version)) not in GROUP_VERSIONS:
        raise NotServed
    resource = BY_PATH.get((group, "".join(version), plural))
    if resource is None or any(more):
        raise unknown_path()
    if bool(namespace) > resource.namespaced or (name and resource.namespaced and not namespace):
        raise unknown_path()
    if resource is PODS and subresource in _OF_CONTAINERS:
        message = f"the sandbox runs no containers, so it does not serve pods/{subresource}"
        raise ApiError(405, message, details={})
    known = (*resource.subresources, "status") if resource.has_status else resource.subresources
    if subresource and subresource not in known:
        raise unknown_path()
    return Target(resource, namespace, name, subresource)


def unknown_path() -> ApiError:
    return ApiError(404, "the server could not find the requested resource", details={})


def not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, message, details={})


@dataclass(frozen=True)
class ListQuery:
    """The query of a list or a watch."""

    namespace: str
    labels: Predicate | None
    fields: Predicate | None
    version: int | None
    version_match: str
    limit: int
    continue_token: str
    timeout: float | None
    bookmarks: bool
    initial_events: bool | None

    @property
    def selects(self) -> bool:
        """Whether some objects of the resource may be left out."""
        return bool(self.namespace or self.labels or self.fields)

    def matches(self, document: JsonObject) -> bool:
        if self.namespace:
            metadata = document["metadata"]
            if isinstance(metadata, dict) and metadata.get("namespace") != self.namespace:
                return False
        return (self.labels is None or self.labels(document)) and (
            self.fields is None or self.fields(document)
        )


def parse_query(target: Target, query: Mapping[str, str], *, watching: bool = False) -> ListQuery:
    """Read a list's or watch's query.

    Raises ApiError 400 for selectors, versions and numbers that cannot be read, 422 for parameters
    that do not go together.
    """
    check_list_options(query, watching=watching)
    field_selector = query.get("fieldSelector", "")
    if target.name:
        field_selector = f"metadata.name={target.name}"
    version = query.get("resourceVersion", "")
    initial = query.get("sendInitialEvents")
    return ListQuery(
        namespace=target.namespace if target.resource is not NAMESPACES else "",
        labels=parse_label_selector(query.get("labelSelector", "")),
        fields=parse_field_selector(field_selector, stored_as(target.resource)),
        version=_version(version, watching=watching) if version else None,
        version_match=query.get("resourceVersionMatch", ""),
        limit=max(0, _number(query.get("limit", "0"))),
        continue_token=query.get("continue", ""),
        timeout=_number(query["timeoutSeconds"]) if "timeoutSeconds" in query else None,
        bookmarks=query.get("allowWatchBookmarks") in ("true", "1"),
        initial_events=None if initial is None else initial in ("true", "1"),
    )


def _number(source: str) -> int:
    try:
        return int(source)
    except ValueError as error:
        raise ApiError(400, f'strconv.ParseInt: parsing "{source}": invalid syntax') from error


def _version(source: str, *, watching: bool) -> int:
    if source.isdigit():
        return int(source)
    why = f'resourceVersion: Invalid value: "{source}": '
    why += f'strconv.ParseUint: parsing "{source}": invalid syntax'
    if watching:  # a real server's slip
        raise ApiError(500, why, reason="")
    raise ApiError(400, f"invalid resource version: {why}")


def decode_body(body: bytes, content_type: str) -> JsonObject:
    """The object that a request's body is, in JSON or protobuf.

    Raises ApiError 415 for other formats, 400 for a broken body or none.
    """
    if content_type == protobuf.MEDIA_TYPE:
        return protobuf.decode_protobuf(body)
    if content_type not in ("application/json", "application/octet-stream"):
        message = "the body of the request was in an unknown format - accepted media types include:"
        raise ApiError(415, f"{message} application/json, {protobuf.MEDIA_TYPE}")
    document = decode_json(body)
    if not isinstance(document, dict):
        raise ApiError(400, "the body of the request is no JSON object")
    return document


def decode_json(body: bytes) -> object:
    """Raises ApiError 400 for broken JSON."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ApiError(400, f"the object provided is unrecognized: {error}") from error
