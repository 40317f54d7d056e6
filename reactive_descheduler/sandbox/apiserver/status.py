"""Kubernetes `Status` documents, and the exception that carries one to the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reactive_descheduler.sandbox.apiserver.resources import Resource
    from reactive_descheduler.sandbox.documents import JsonObject

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}

_CAUSES = {
    "Required value": "FieldValueRequired",
    "Forbidden": "FieldValueForbidden",
    "Unsupported value": "FieldValueNotSupported",
    "Duplicate value": "FieldValueDuplicate",
}


class ApiError(Exception):
    """The request fails with this Status; raised anywhere below the HTTP layer."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        reason: str | None = None,
        details: JsonObject | None = None,
        metadata: JsonObject | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = _REASONS.get(code, "") if reason is None else reason
        self.details = details
        self.metadata = metadata or {}

    @property
    def retry_after(self) -> int:
        """Seconds for the header Retry-After; 0 if it is not to be sent."""
        seconds = (self.details or {}).get("retryAfterSeconds")
        return seconds if isinstance(seconds, int) else 0

    def document(self) -> JsonObject:
        """The Status as it goes over the wire."""
        document: JsonObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": str(self),
        }
        if self.reason:
            document["reason"] = self.reason
        if self.details is not None:
            document["details"] = self.details
        return document | {"code": self.code}


class NotServed(ApiError):
    """A group or path that does not exist at all: answered 404 in plain text, without a Status."""

    text = "404 page not found\n"

    def __init__(self) -> None:
        super().__init__(404, self.text)


def success(code: int = 200, details: JsonObject | None = None) -> JsonObject:
    """A Status that tells of success; as on a real server, 200 is left out of it."""
    document: JsonObject = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
    }
    if details is not None:
        document["details"] = details
    if code != 200:
        document["code"] = code
    return document


def _about(resource: Resource, name: str) -> JsonObject:
    details: JsonObject = {"name": name, "kind": resource.plural}
    if resource.group:
        details["group"] = resource.group
    return details


def not_found(resource: Resource, name: str) -> ApiError:
    message = f'{resource.qualified} "{name}" not found'
    return ApiError(404, message, details=_about(resource, name))


def already_exists(resource: Resource, name: str) -> ApiError:
    message = f'{resource.qualified} "{name}" already exists'
    return ApiError(409, message, reason="AlreadyExists", details=_about(resource, name))


def conflict(resource: Resource, name: str, why: str, *, subresource: str = "") -> ApiError:
    about, below = _about(resource, name), f"/{subresource}" if subresource else ""
    about["kind"] = resource.plural + below
    message = f'Operation cannot be fulfilled on {resource.qualified}{below} "{name}": {why}'
    return ApiError(409, message, details=about)


def precondition_failed(resource: Resource, name: str, why: str) -> ApiError:
    """What deletions and evictions answer; unlike other conflicts it speaks of the kind."""
    message = f'Operation cannot be fulfilled on {resource.kind} "{name}": {why}'
    return ApiError(409, message, details={"name": name, "kind": resource.kind})


def _cause(field: str, why: str) -> JsonObject:
    """One reason for which something is invalid; its kind is the beginning of its words."""
    reason = _CAUSES.get(why.partition(":")[0], "FieldValueInvalid")
    return {"reason": reason, "message": why, "field": field}


def invalid_options(kind: str, *problems: tuple[str, str]) -> ApiError:
    """Query parameters that are refused: fields and why."""
    details: JsonObject = {"group": "meta.k8s.io", "kind": kind}
    details["causes"] = [_cause(field, why) for field, why in problems]
    told = ", ".join(f"{field}: {why}" for field, why in problems)
    told = f"[{told}]" if len(problems) > 1 else told
    return ApiError(422, f'{kind}.meta.k8s.io "" is invalid: {told}', details=details)


def invalid(resource: Resource, name: str, field: str, why: str) -> ApiError:
    details = _about(resource, name)
    if not name:
        del details["name"]
    details["kind"] = resource.kind
    details["causes"] = [_cause(field, why)]
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    return ApiError(422, f'{kind} "{name}" is invalid: {field}: {why}', details=details)


def needs_version(resource: Resource, name: str) -> ApiError:
    """An update without a version, of a kind that insists on one; it speaks of the plural."""
    field, why = "metadata.resourceVersion", "Invalid value: 0: must be specified for an update"
    details = _about(resource, name) | {"causes": [_cause(field, why)]}
    return ApiError(
        422, f'{resource.qualified} "{name}" is invalid: {field}: {why}', details=details
    )


def expired(message: str, *, metadata: JsonObject | None = None) -> ApiError:
    return ApiError(410, message, reason="Expired", metadata=metadata)


def too_large_version(wanted: int, current: int) -> ApiError:
    details: JsonObject = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    message = f"Timeout: Too large resource version: {wanted}, current: {current}"
    return ApiError(504, message, details=details)
