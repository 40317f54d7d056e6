"""Ask the API server to evict one Pod, and tell its answers apart.

Nothing is retried here but a 401, which was not carried out: whether to ask again, and when, is for
the gates to decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import NamedTuple

from reactive_descheduler.api.decoding import Decoder, UnreadableError
from reactive_descheduler.api.errors import AmbiguousError, ClientError, Unreachable
from reactive_descheduler.api.eviction import Answer
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.client.kube import KubeConnection, Response
from reactive_descheduler.client.resources import pod_path
from reactive_descheduler.client.statuses import Status, read_status

EVICTION_TIMEOUT = 30.0
"""Seconds for one eviction: the API server may try a contended budget for several, and webhooks
take up to ten each."""
LOOK_TIMEOUT = 10.0

MAYBE_DONE = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT})
"""Sent by what stands before the handler, or by the server's own time limit, while the eviction
may be going on behind it."""


class EvictionAnswer(NamedTuple):
    answer: Answer
    status: int | None
    """The HTTP status; None where no answer came."""
    message: str
    retry_after: float | None = None
    """Seconds, where the server named them."""


class EvictionClient:
    """Evictions and the look at what became of them, over one connection."""

    def __init__(
        self,
        connection: KubeConnection,
        decoder: Decoder,
        *,
        eviction_timeout: float = EVICTION_TIMEOUT,
    ) -> None:
        self._connection = connection
        self._decoder = decoder
        self._eviction_timeout = eviction_timeout

    async def evict(
        self,
        namespace: str,
        name: str,
        *,
        uid: str,
        grace_period_seconds: int | None = None,
        annotations: Mapping[str, str],
        dry_run: bool = False,
    ) -> EvictionAnswer:
        """Send one eviction. Never raises for what server or network do.

        `grace_period_seconds` None: the Pod's own. `annotations` go on the Eviction, for the audit
        log and for webhooks. `dry_run` lets the API server go through all of it but the deletion.
        """
        options: dict[str, object] = {"preconditions": {"uid": uid}}
        if grace_period_seconds is not None:
            options["gracePeriodSeconds"] = grace_period_seconds
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "annotations": dict(annotations),
            },
            "deleteOptions": options,
        }
        try:
            response = await self._connection.post(
                pod_path(namespace, name) + "/eviction",
                body,
                {"dryRun": "All"} if dry_run else None,
                within=self._eviction_timeout,
            )
        except AmbiguousError as error:
            return EvictionAnswer(Answer.UNKNOWN, None, str(error))
        except ClientError as error:
            # Nothing was sent: as with a 503, the Pod is as it was.
            return EvictionAnswer(Answer.SERVER_ERROR, None, str(error))
        return _read(response, dry_run=dry_run)

    async def get_pod(self, namespace: str, name: str) -> Pod | None:
        """Return the Pod as the API server has it now; None if there is none of that name.

        Raises ClientError if that cannot be found out.
        """
        response = await self._connection.get(pod_path(namespace, name), within=LOOK_TIMEOUT)
        if response.status == HTTPStatus.NOT_FOUND:
            return None
        response.raise_for_status()
        try:
            found = self._decoder.decode("Pod", response.body)
        except UnreadableError as error:
            raise Unreachable(f"not the API server's answer: {error}") from error
        assert isinstance(found, Pod)  # what the decoder makes of this kind
        return found


def _read(response: Response, *, dry_run: bool) -> EvictionAnswer:
    if response.ok:
        answer = Answer.DRY_RUN if dry_run else Answer.EVICTED
        return EvictionAnswer(answer, response.status, "")
    status = read_status(response.status, response.headers, response.body)
    return EvictionAnswer(_tell(status), status.code, status.message, status.retry_after)


def _tell(status: Status) -> Answer:
    """Name a refusal."""
    message = status.message.lower()
    # First, since a webhook chooses the HTTP status of its denial freely.
    if "admission webhook" in message:
        return Answer.WEBHOOK_DENIED
    match status.code:
        case HTTPStatus.NOT_FOUND:
            return Answer.NOT_FOUND
        case HTTPStatus.CONFLICT:
            # "the UID in the precondition (...)", "UID in precondition: ...". Any other conflict is
            # a race inside the server, which a later try does not meet.
            return Answer.UID_CONFLICT if "uid in " in message else Answer.SERVER_ERROR
        case HTTPStatus.TOO_MANY_REQUESTS:
            return _tell_429(status)
        case HTTPStatus.UNAUTHORIZED:
            return Answer.FORBIDDEN
        case HTTPStatus.FORBIDDEN:
            # RBAC says it in these words. Other denials (an admission policy, a namespace that is
            # going) are about this Pod only.
            rbac = "cannot create resource" in message
            return Answer.FORBIDDEN if rbac else Answer.WEBHOOK_DENIED
        case HTTPStatus.REQUEST_TIMEOUT:
            return Answer.SERVER_ERROR
    if status.code < HTTPStatus.INTERNAL_SERVER_ERROR:
        return Answer.INVALID
    if "more than one poddisruptionbudget" in message:
        return Answer.SEVERAL_BUDGETS
    return Answer.UNKNOWN if status.code in MAYBE_DONE else Answer.SERVER_ERROR


def _tell_429(status: Status) -> Answer:
    if "DisruptionBudget" not in status.causes:
        return Answer.THROTTLED
    return Answer.BUDGET if status.retry_after is None else Answer.BUDGET_UNOBSERVED
