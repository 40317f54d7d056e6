"""Ask for measured usage, over and over: a metrics-server by its lists, a Prometheus by queries.

What cannot be had keeps the sample that is there, which grows old and then decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from random import Random
from typing import NamedTuple, Protocol, TypeVar

import anyio
import anyio.lowlevel
import msgspec
import structlog

from reactive_descheduler.api.errors import AnswerError, ApiStatusError, ClientError
from reactive_descheduler.cache.measured import (
    NODE_METRICS,
    POD_METRICS,
    Document,
    read_node_metrics,
    read_pod_metrics,
)
from reactive_descheduler.cache.usage import METRICS_SERVER, PROMETHEUS, Sample, Usage, Vector
from reactive_descheduler.client.kube import KubeConnection
from reactive_descheduler.client.prometheus import NoVectorError, PrometheusClient
from reactive_descheduler.client.resources import METRICS_GROUP
from reactive_descheduler.kit.backoff import Backoff
from reactive_descheduler.kit.clock import Clock

log = structlog.get_logger()

LIST_WITHIN = 30.0
"""Seconds for a list. A metrics-server knows no pages: 100,000 Pods come as one answer of 50 MB."""
SLICE = 0.005
"""Seconds of reading a list after which the event loop gets its turn."""
_ROOT = f"/apis/{METRICS_GROUP}/v1beta1"
_HINTS: dict[int, str] = {
    HTTPStatus.NOT_FOUND: "the cluster has no metrics API: is a metrics-server installed?",
    HTTPStatus.SERVICE_UNAVAILABLE: "is the metrics-server running?",
}
_PASSING = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})

_Name = TypeVar("_Name")


class Measured(NamedTuple):
    """What one answer held."""

    samples: int
    oldest: datetime | None
    """When the oldest of its samples was taken; None if there is none."""
    unreadable: int = 0
    error: str = ""
    """Why it is an answer, and yet tells nothing."""


class Question(Protocol):
    """Asks one source, and puts the answer where it is kept."""

    @property
    def source(self) -> str:
        """The source's name, as in policies."""

    @property
    def query(self) -> str:
        """What is asked of it; empty where there is one thing only to ask."""

    async def ask(self, usage: Usage) -> Measured:
        """Raises ClientError; what was known stays."""


class MetricsServer:
    """Asks for all nodes and all Pods, a list each."""

    source = METRICS_SERVER
    query = ""

    def __init__(self, connection: KubeConnection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    async def ask(self, usage: Usage) -> Measured:
        """Take in both lists, or neither: an eviction is reckoned with both."""
        nodes, lost_nodes = await self._list("nodes", NODE_METRICS, read_node_metrics)
        pods, lost_pods = await self._list("pods", POD_METRICS, read_pod_metrics)
        usage.put_pods(pods)
        usage.put_nodes(nodes, self._clock.now())
        oldest = min((sample.sampled for sample in nodes.values()), default=None)
        return Measured(len(nodes) + len(pods), oldest, lost_nodes + lost_pods)

    async def _list(
        self, plural: str, kind: str, read: Callable[[Document, datetime], tuple[_Name, Sample]]
    ) -> tuple[dict[_Name, Sample], int]:
        """Return the samples by name, and how many could not be read: those are not measured."""
        answer = await self._connection.get(f"{_ROOT}/{plural}", within=LIST_WITHIN)
        received = self._clock.now()
        try:
            answer.raise_for_status()
        except ApiStatusError as error:
            error.hint = _HINTS.get(error.status, error.hint)
            if error.status == HTTPStatus.FORBIDDEN:
                error.hint = f"the account lacks the verb list on {plural}.{METRICS_GROUP}"
            raise
        samples, lost, began = {}, 0, self._clock.monotonic()
        for document in _items(answer.body, kind):
            try:
                name, sample = read(document, received)
            except ValueError:
                lost += 1
            else:
                samples[name] = sample
            if self._clock.monotonic() - began > SLICE:
                await anyio.lowlevel.checkpoint()
                began = self._clock.monotonic()
        return samples, lost


class PrometheusQuery:
    """Asks one query."""

    source = PROMETHEUS

    def __init__(self, client: PrometheusClient, query: str, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self.query = query

    async def ask(self, usage: Usage) -> Measured:
        """Take in the answer, by the label `instance`; the last sample of an instance counts.

        It counts as of when it was asked for: how old what it rests on is, it does not tell. One
        that is no such vector counts too, as in upstream: the query has to be mended.
        """
        asked = self._clock.now()
        try:
            values, error = _by_instance(await self._client.query(self.query)), ""
        except NoVectorError as why:
            values, error = {}, str(why)
        received = self._clock.now()
        usage.put_vector(self.query, Vector(values, asked, received, error), received)
        return Measured(len(values), asked, error=error)


def _by_instance(samples: list[tuple[dict[str, str], float]]) -> dict[str, float]:
    if any("instance" not in labels for labels, _ in samples):
        raise NoVectorError("a sample has no label `instance`, which has to be the node's name")
    return {labels["instance"]: value for labels, value in samples}


class PollStatistics(NamedTuple):
    source: str
    query: str
    samples: int
    """In the last answer that could be used."""
    oldest: datetime | None
    """When the oldest of them was taken; None before the first."""
    unreadable: int
    polls: int
    errors: int
    error: str
    """What stands in the way now; empty if the last poll was answered."""
    hint: str


class Poller:
    """Asks one question for ever; at once to begin with."""

    def __init__(
        self,
        question: Question,
        usage: Usage,
        *,
        interval: float,
        clock: Clock,
        random: Random,
        on_sample: Callable[[str], None],
    ) -> None:
        """`interval`: seconds from one poll to the next. `on_sample` is given the source."""
        self._question = question
        self._usage = usage
        self._interval = interval
        self._clock = clock
        self._backoff = Backoff(random, ceiling=max(1.6, 2 * interval))
        self._on_sample = on_sample
        self._last = Measured(0, None)
        self._polls = 0
        self._errors = 0
        self._error: ClientError | None = None

    def statistics(self) -> PollStatistics:
        error = self._error
        return PollStatistics(
            source=self._question.source,
            query=self._question.query,
            samples=self._last.samples,
            oldest=self._last.oldest,
            unreadable=self._last.unreadable,
            polls=self._polls,
            errors=self._errors,
            error=str(error) if error is not None else "",
            hint=error.hint if error is not None else "",
        )

    async def run(self) -> None:
        """Poll until cancelled; after a failure sooner than usual at first, then more seldom."""
        while True:
            began = self._clock.monotonic()
            wait = await self.poll()
            if self._error is None:
                wait -= self._clock.monotonic() - began
            await anyio.sleep(max(0.0, wait))

    async def poll(self) -> float:
        """Ask once, and return in how many seconds to ask again. Never raises a ClientError."""
        self._polls += 1
        try:
            measured = await self._question.ask(self._usage)
        except ClientError as error:
            return self._failed(error)
        if self._error is not None and not measured.error:
            log.info("Usage is measured again", **self._about())
        if measured.unreadable and measured.unreadable != self._last.unreadable:
            log.warning(
                "Measurements that cannot be read", count=measured.unreadable, **self._about()
            )
        self._last = measured
        self._backoff.reset()
        if measured.error:
            self._failed(AnswerError(measured.error))
        else:
            self._error = None
        self._on_sample(self._question.source)
        return self._interval

    def _failed(self, error: ClientError) -> float:
        self._errors += 1
        if str(error) != str(self._error or ""):
            log.warning(
                "Usage cannot be measured; it is tried again",
                error=str(error),
                hint=error.hint or None,
                **self._about(),
            )
        self._error = error
        if not isinstance(error, ApiStatusError) or _may_pass(error.status):
            retry_after = error.retry_after if isinstance(error, ApiStatusError) else None
            return self._backoff.next(at_least=retry_after or 0.0)
        return self._backoff.longest()

    def _about(self) -> dict[str, str]:
        question = self._question
        return {"source": question.source, **({"query": question.query} if question.query else {})}


def _may_pass(status: int) -> bool:
    """Say whether a refusal may pass by itself, and not only by what people do."""
    return status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _PASSING


class _List(msgspec.Struct):
    kind: str = ""
    items: list[msgspec.Raw] | None = None


def _items(body: bytes, kind: str) -> list[msgspec.Raw]:
    """Return the items of a list, each unread: to find their ends takes little of the time."""
    try:
        found = msgspec.json.decode(body, type=_List)
    except msgspec.DecodeError as error:
        raise AnswerError(f"the metrics API answers with what is no list: {error}") from error
    if found.kind != f"{kind}List":
        raise AnswerError(
            f"the metrics API answers with a {found.kind or 'nothing'}, no {kind}List"
        )
    return found.items or []
