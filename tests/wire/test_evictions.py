"""Every answer to an eviction, as a real API server words it, told apart over real HTTP."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from reactive_descheduler.api.decoding import Decoder
from reactive_descheduler.api.errors import ApiStatusError, Unreachable
from reactive_descheduler.api.eviction import Answer as Told
from reactive_descheduler.client.evictions import EvictionClient
from tests.builders import make_pod
from tests.wire.server import Answer, ApiServer, Drop, Script, Stream, Then, failure, json_of
from tests.wire.world import Tokens, connected

pytestmark = pytest.mark.real_time


def refused(
    code: int, reason: str, message: str, *, after: int | None = None, cause: str = ""
) -> Answer:
    details: dict[str, Any] = {}
    if cause:
        details["causes"] = [{"reason": cause, "message": "The disruption budget web needs 1"}]
    if after is not None:
        details["retryAfterSeconds"] = after
    body = {
        "kind": "Status",
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": details,
        "code": code,
    }
    headers = {} if after is None else {"Retry-After": str(after)}
    return Answer(code, json_of(body), headers)


BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."
WEBHOOK = 'admission webhook "guard.example.com" denied the request: not today'
RBAC = (
    'pods "a" is forbidden: User "me" cannot create resource "pods/eviction" in API group "" '
    'in the namespace "default"'
)
UIDS = (
    'Operation cannot be fulfilled on Pod "a": the UID in the precondition (old) does not match '
    "the UID in record (new). The object might have been deleted and then recreated"
)
OTHER_UIDS = (
    'Operation cannot be fulfilled on Pod "a": Precondition failed: '
    "UID in precondition: old, UID in object meta: new"
)
MODIFIED = (
    'Operation cannot be fulfilled on pods "guid-1": the object has been modified; please apply '
    "your changes to the latest version and try again"
)
SEVERAL = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
    "support."
)


@pytest.mark.parametrize(
    ("script", "answer", "status", "retry_after"),
    [
        pytest.param(Answer(201, b'{"status":"Success"}'), Told.EVICTED, 201, None, id="evicted"),
        pytest.param(
            failure(404, "NotFound", 'pods "a" not found'), Told.NOT_FOUND, 404, None, id="404"
        ),
        pytest.param(refused(409, "Conflict", UIDS), Told.UID_CONFLICT, 409, None, id="uid"),
        pytest.param(
            refused(409, "Conflict", OTHER_UIDS), Told.UID_CONFLICT, 409, None, id="uid-of-meta"
        ),
        pytest.param(
            refused(409, "Conflict", MODIFIED),
            Told.SERVER_ERROR,
            409,
            None,
            id="other-conflict",
        ),
        pytest.param(
            refused(429, "TooManyRequests", BUDGET, cause="DisruptionBudget"),
            Told.BUDGET,
            429,
            None,
            id="budget",
        ),
        pytest.param(
            refused(429, "TooManyRequests", BUDGET, after=10, cause="DisruptionBudget"),
            Told.BUDGET_UNOBSERVED,
            429,
            10,
            id="budget-unobserved",
        ),
        pytest.param(
            refused(429, "TooManyRequests", "too many requests, please try again", after=1),
            Told.THROTTLED,
            429,
            1,
            id="throttled",
        ),
        pytest.param(
            Answer(429, b"Too many requests, please try again later.\n", {"Retry-After": "1"}),
            Told.THROTTLED,
            429,
            1,
            id="throttled-plain-text",
        ),
        pytest.param(
            refused(403, "Forbidden", WEBHOOK), Told.WEBHOOK_DENIED, 403, None, id="webhook-403"
        ),
        pytest.param(
            refused(429, "TooManyRequests", WEBHOOK),
            Told.WEBHOOK_DENIED,
            429,
            None,
            id="webhook-429",
        ),
        pytest.param(
            refused(500, "InternalError", WEBHOOK), Told.WEBHOOK_DENIED, 500, None, id="webhook-500"
        ),
        pytest.param(
            refused(403, "Forbidden", 'pods "a" is forbidden: policy says no'),
            Told.WEBHOOK_DENIED,
            403,
            None,
            id="admission-policy",
        ),
        pytest.param(refused(403, "Forbidden", RBAC), Told.FORBIDDEN, 403, None, id="rbac"),
        pytest.param(
            failure(401, "Unauthorized", "Unauthorized"), Told.FORBIDDEN, 401, None, id="401"
        ),
        pytest.param(
            refused(500, "InternalError", SEVERAL), Told.SEVERAL_BUDGETS, 500, None, id="several"
        ),
        pytest.param(
            refused(500, "InternalError", "etcdserver: leader changed"),
            Told.SERVER_ERROR,
            500,
            None,
            id="500",
        ),
        pytest.param(
            refused(503, "ServiceUnavailable", "shutting down", after=5),
            Told.SERVER_ERROR,
            503,
            5,
            id="503",
        ),
        pytest.param(
            refused(504, "Timeout", "request did not complete within requested timeout"),
            Told.UNKNOWN,
            504,
            None,
            id="server-side-time-out",
        ),
        pytest.param(Answer(502, b"<html>"), Told.UNKNOWN, 502, None, id="bad-gateway"),
        pytest.param(
            refused(400, "BadRequest", "name in URL does not match"),
            Told.INVALID,
            400,
            None,
            id="400",
        ),
        pytest.param(
            refused(422, "Invalid", "gracePeriodSeconds"), Told.INVALID, 422, None, id="422"
        ),
        pytest.param(Answer(302, b"", {"Location": "/x"}), Told.INVALID, 302, None, id="redirect"),
        pytest.param(Drop(), Told.UNKNOWN, None, None, id="lost-after-sending"),
        pytest.param(Drop(after=3600), Told.UNKNOWN, None, None, id="time-out"),
        pytest.param(
            Stream([b'{"status":"Succ'], Then.CUT), Told.UNKNOWN, None, None, id="half-an-answer"
        ),
        pytest.param(
            Stream([b'{"status":"Succ'], Then.HANG), Told.UNKNOWN, None, None, id="stuck-answer"
        ),
    ],
)
async def test_answer(
    server: ApiServer, script: Script, answer: Told, status: int | None, retry_after: float | None
) -> None:
    server.posts.append(script)
    async with connected(server) as connection:
        client = EvictionClient(connection, Decoder(), eviction_timeout=0.3)
        found = await client.evict("default", "a", uid="old", annotations={})
    assert (found.answer, found.status, found.retry_after) == (answer, status, retry_after)
    assert found.message or answer is Told.EVICTED
    assert len(server.requests) == 1, "nothing is ever sent twice"


async def test_refused_connection_is_known_to_have_done_nothing() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        async with connected(ApiServer(url)) as connection:
            found = await EvictionClient(connection, Decoder()).evict(
                "default", "a", uid="u", annotations={}
            )
            assert (found.answer, found.status) == (Told.SERVER_ERROR, None)
            with pytest.raises(Unreachable) as raised:
                await connection.get("/version")
            assert raised.value.hint


async def test_request_names_uid_grace_period_and_annotations(server: ApiServer) -> None:
    async with connected(server) as connection:
        await EvictionClient(connection, Decoder()).evict(
            "shop", "a", uid="u-1", grace_period_seconds=0, annotations={"reason": "taint"}
        )
    [sent] = server.requests
    assert (sent.method, sent.path, sent.query) == (
        "POST",
        "/api/v1/namespaces/shop/pods/a/eviction",
        {},
    )
    assert sent.body == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "a", "namespace": "shop", "annotations": {"reason": "taint"}},
        "deleteOptions": {"preconditions": {"uid": "u-1"}, "gracePeriodSeconds": 0},
    }


async def test_no_grace_period_leaves_it_to_the_pod(server: ApiServer) -> None:
    async with connected(server) as connection:
        await EvictionClient(connection, Decoder()).evict("shop", "a", uid="u", annotations={})
    assert "gracePeriodSeconds" not in server.requests[0].body["deleteOptions"]


async def test_dry_run_is_asked_of_the_server(server: ApiServer) -> None:
    async with connected(server) as connection:
        found = await EvictionClient(connection, Decoder()).evict(
            "shop", "a", uid="u", annotations={}, dry_run=True
        )
    assert found.answer is Told.DRY_RUN
    assert server.requests[0].query == {"dryRun": "All"}


async def test_refused_token_is_read_anew_and_the_eviction_sent_again(server: ApiServer) -> None:
    tokens = Tokens(server.url)
    async with connected(server, tokens) as connection:
        client = EvictionClient(connection, Decoder())
        assert (await client.evict("d", "a", uid="u", annotations={})).answer is Told.EVICTED
        server.token = tokens.token = "second"
        assert (await client.evict("d", "b", uid="u", annotations={})).answer is Told.EVICTED
    assert [each.token for each in server.requests] == ["first", "first", "second"]


async def test_look_at_a_pod(server: ApiServer) -> None:
    pod = make_pod("a", uid="u-1", deleted="2026-01-01T00:00:00Z")
    server.gets.extend(
        [
            Answer(200, json_of(pod)),
            failure(404, "NotFound", "not there"),
            failure(500, "InternalError", "no leader"),
            Answer(200, b"<html>log in</html>"),
        ]
    )
    async with connected(server) as connection:
        client = EvictionClient(connection, Decoder())
        found = await client.get_pod("default", "a")
        assert found is not None
        assert (found.uid, found.deleted is not None) == ("u-1", True)
        assert await client.get_pod("default", "a") is None
        with pytest.raises(ApiStatusError):
            await client.get_pod("default", "a")
        with pytest.raises(Unreachable):
            await client.get_pod("default", "a")
