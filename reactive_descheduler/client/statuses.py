"""Read the Status documents in which the API server refuses, and turn them into our errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import NamedTuple

import orjson

from reactive_descheduler.api.errors import ApiStatusError, ClientError, ExpiredError

_FORBIDDEN = re.compile(r'cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)"')


class Status(NamedTuple):
    """What matters of a `v1.Status`, or of an answer from something else on the way (a proxy)."""

    code: int
    reason: str
    message: str
    retry_after: float | None
    causes: tuple[str, ...]
    """The reasons of `details.causes`."""

    def error(self) -> ClientError:
        """Return the exception for it, its hint set where one is known."""
        if self.code == HTTPStatus.GONE:
            return ExpiredError(self.message)
        error = ApiStatusError(self.code, self.reason, self.message, retry_after=self.retry_after)
        error.hint = _hint(self)
        return error


def read_status(code: int, headers: Mapping[str, str], body: bytes) -> Status:
    """Read an answer that is no success; a body that is no Status becomes the message."""
    document = _mapping(body)
    details = document.get("details")
    details = details if isinstance(details, dict) else {}
    text = document.get("message") or body[:500].decode(errors="replace").strip() or _phrase(code)
    return Status(
        code=code,
        reason=str(document.get("reason") or _phrase(code)),
        message=str(text),
        retry_after=_seconds(headers.get("Retry-After"), details.get("retryAfterSeconds")),
        causes=tuple(
            str(cause.get("reason"))
            for cause in details.get("causes") or ()
            if isinstance(cause, dict)
        ),
    )


def plain_status(body: bytes) -> Status | None:
    """Return the Status that a body is although its HTTP status said success; None if it is
    none."""
    document = _mapping(body)
    code = document.get("code")
    if document.get("kind") != "Status" or not isinstance(code, int):
        return None
    return read_status(code, {}, body)


def _mapping(body: bytes) -> dict[str, object]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}


def _phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return "Unknown"


def _seconds(header: str | None, detail: object) -> float | None:
    """Prefer the header; of its two forms the API server only sends seconds. 0 means not given."""
    if header is not None and header.isdigit():
        return float(header)
    return float(detail) if isinstance(detail, int) and detail > 0 else None


def _hint(status: Status) -> str:
    if status.code == HTTPStatus.UNAUTHORIZED:
        return "the credentials are not accepted: is the token or certificate expired?"
    denied = _FORBIDDEN.search(status.message)
    if status.code == HTTPStatus.FORBIDDEN and denied:
        return (
            f"the account lacks the verb {denied['verb']} on {denied['resource']}: "
            "add it to its ClusterRole"
        )
    return ""
