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


class ApiError(Exception):
    """The request fails with this Status; raised anywhere below the HTTP layer."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        reason: str | None = None,
        details: JsonObject | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = _REASONS.get(code, "") if reason is None else reason
        self.details = details

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
            "metadata": {},
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


def conflict(resource: Resource, name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}'
    return ApiError(409, message, details=_about(resource, name))


def precondition_failed(resource: Resource, name: str, why: str) -> ApiError:
    """What deletions and evictions answer; unlike other conflicts it speaks of the kind."""
    message = f'Operation cannot be fulfilled on {resource.kind} "{name}": {why}'
    return ApiError(409, message, details={"name": name, "kind": resource.kind})


def invalid(resource: Resource, name: str, field: str, why: str) -> ApiError:
    details = _about(resource, name)
    details["kind"] = resource.kind
    details["causes"] = [{"reason": "FieldValueInvalid", "message": why, "field": field}]
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    return ApiError(422, f'{kind} "{name}" is invalid: {field}: {why}', details=details)


def expired(message: str) -> ApiError:
    return ApiError(410, message, reason="Expired")


def too_large_version(wanted: int, current: int) -> ApiError:
    details: JsonObject = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    message = f"Timeout: Too large resource version: {wanted}, current: {current}"
    return ApiError(504, message, details=details)
