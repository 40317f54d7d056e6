"""Reading refusals."""

from __future__ import annotations

import orjson
import pytest

from reactive_descheduler.api.errors import ApiStatusError, ExpiredError
from reactive_descheduler.client.statuses import plain_status, read_status

FORBIDDEN = {
    "kind": "Status",
    "reason": "Forbidden",
    "message": 'nodes is forbidden: User "u" cannot watch resource "nodes" in API group ""',
    "code": 403,
}


@pytest.mark.parametrize(
    ("code", "body", "reason", "message"),
    [
        pytest.param(403, orjson.dumps(FORBIDDEN), "Forbidden", FORBIDDEN["message"], id="status"),
        pytest.param(502, b"<html>\n", "Bad Gateway", "<html>", id="page"),
        pytest.param(503, b"", "Service Unavailable", "Service Unavailable", id="empty"),
        pytest.param(500, b"[1]", "Internal Server Error", "[1]", id="no-mapping"),
        pytest.param(500, b'{"details":3,"message":null}', "Internal Server Error", None, id="odd"),
        pytest.param(599, b"\xff", "Unknown", "\ufffd", id="unknown-code-and-bytes"),
    ],
)
def test_any_body_is_read(code: int, body: bytes, reason: str, message: str | None) -> None:
    status = read_status(code, {}, body)
    assert (status.code, status.reason) == (code, reason)
    assert message is None or status.message == message


@pytest.mark.parametrize(
    ("header", "detail", "seconds"),
    [
        pytest.param("7", None, 7.0, id="header"),
        pytest.param(None, 9, 9.0, id="details"),
        pytest.param("7", 9, 7.0, id="header-first"),
        pytest.param(None, 0, None, id="zero-is-not-given"),
        pytest.param("Wed, 21 Oct 2026 07:28:00 GMT", None, None, id="date"),
        pytest.param(None, None, None, id="neither"),
    ],
)
def test_retry_after(header: str | None, detail: int | None, seconds: float | None) -> None:
    headers = {} if header is None else {"Retry-After": header}
    body = orjson.dumps({"details": {"retryAfterSeconds": detail}})
    assert read_status(429, headers, body).retry_after == seconds


def test_gone_is_an_expired_version() -> None:
    assert isinstance(read_status(410, {}, b"too old").error(), ExpiredError)


@pytest.mark.parametrize(
    ("code", "body", "hint"),
    [
        pytest.param(403, orjson.dumps(FORBIDDEN), "verb watch on nodes", id="rbac"),
        pytest.param(401, b"", "credentials", id="unauthorized"),
        pytest.param(500, b"", "", id="none"),
    ],
)
def test_hint_says_what_would_mend_it(code: int, body: bytes, hint: str) -> None:
    error = read_status(code, {}, body).error()
    assert isinstance(error, ApiStatusError)
    assert hint in error.hint
    assert bool(error.hint) == bool(hint)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param(orjson.dumps(FORBIDDEN), 403, id="status"),
        pytest.param(b'{"kind":"Status","status":"Success"}', None, id="no-code"),
        pytest.param(b'{"kind":"PodList","items":[]}', None, id="a-list"),
        pytest.param(b'{"type":"ADDED"', None, id="half-a-line"),
        pytest.param(b"", None, id="nothing"),
    ],
)
def test_status_in_a_body_that_said_success(body: bytes, code: int | None) -> None:
    status = plain_status(body)
    assert (status.code if status else None) == code
