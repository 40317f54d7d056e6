"""Kubernetes Events: what was done to a Pod, for those who read `kubectl describe`.

Best effort by nature: recording never waits, and an Event that the server refuses is counted and
forgotten. Repeats become one Event with a series, as with the official recorders.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime
from typing import NamedTuple

import anyio
import structlog

from reactive_descheduler.api.errors import AmbiguousError, ClientError
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.client.kube import KubeConnection, Response
from reactive_descheduler.client.statuses import read_status
from reactive_descheduler.kit.clock import Clock

log = structlog.get_logger()

CONTROLLER = "sigs.k8s.io.descheduler"
"""Upstream's name, by which people's queries and alerts find these Events."""
INSTANCE = "reactive-descheduler"
"""What the reporting instance begins with: it tells ours from the established descheduler's."""
ACTION = "Descheduled"
CAPACITY = 1000
"""Events remembered at most, waiting or sent."""
SERIES_PAUSE = 60.0
"""Seconds between two updates of one series, however often it repeats."""
EVENT_TIMEOUT = 10.0
NAME_LIMIT = 220
"""Characters of the object's name in the Event's; with the suffix it stays under 253."""
NOTE_LIMIT = 1024
"""Bytes that the API server accepts as a note."""


class Regarding(NamedTuple):
    """The object that an Event is about."""

    api_version: str
    kind: str
    namespace: str
    """Empty for what is cluster-wide; its Events go to `default`."""
    name: str
    uid: str


def regarding_pod(pod: Pod) -> Regarding:
    return Regarding("v1", "Pod", pod.namespace, pod.name, pod.uid)


class EventStatistics(NamedTuple):
    waiting: int
    sent: int
    """Events created and series updated."""
    failed: int
    dropped: int
    """Not even tried: too many were waiting."""


class _Content(NamedTuple):
    """What makes two Events the same."""

    regarding: Regarding
    reason: str
    note: str
    warning: bool


class _Series:
    """One Event and its repeats."""

    def __init__(self, name: str, first: datetime) -> None:
        self.name = name
        self.first = self.last = first
        self.count = 1
        self.told = 0
        """How many of `count` the API server knows of."""
        self.told_at = float("-inf")


class EventRecorder:
    """Takes Events at once and sends them from its own task, one after the other."""

    def __init__(
        self,
        connection: KubeConnection,
        *,
        clock: Clock,
        instance: str,
        capacity: int = CAPACITY,
    ) -> None:
        """`instance`: the host's name, which tells several deschedulers apart."""
        self._connection = connection
        self._clock = clock
        self._instance = f"{INSTANCE}-{instance}"[:128]
        self._capacity = capacity
        self._known: OrderedDict[_Content, _Series] = OrderedDict()
        self._waiting: OrderedDict[_Content, None] = OrderedDict()
        self._more = anyio.Event()
        self._numbered = 0
        self._sent = self._failed = self._dropped = 0

    def record(
        self, regarding: Regarding, *, reason: str, note: str, warning: bool = False
    ) -> None:
        """Take in one Event. Returns at once; with too many waiting it is dropped and counted."""
        content = _Content(regarding, reason, note, warning)
        series = self._known.get(content)
        if series is None:
            if len(self._waiting) >= self._capacity:
                self._dropped += 1
                return
            series = self._known[content] = _Series(self._name(regarding), self._clock.now())
            self._forget_old()
        else:
            series.count += 1
            series.last = self._clock.now()
            self._known.move_to_end(content)
            if self._clock.monotonic() - series.told_at < SERIES_PAUSE:
                return
        self._waiting[content] = None
        self._more.set()

    async def run(self) -> None:
        """Send what comes until cancelled; `flush` takes care of the rest."""
        while True:
            await self._more.wait()
            await self._drain()
            self._more = anyio.Event()

    async def flush(self, within: float) -> None:
        """Send what is waiting, and the last counts of series, in so many seconds.

        To be called when `run` has ended.
        """
        for content, series in self._known.items():
            if series.told < series.count:
                self._waiting.setdefault(content)
        with anyio.move_on_after(within):
            await self._drain()

    def statistics(self) -> EventStatistics:
        return EventStatistics(len(self._waiting), self._sent, self._failed, self._dropped)

    def _name(self, regarding: Regarding) -> str:
        self._numbered += 1
        moment = int(self._clock.now().timestamp() * 1e6)
        return f"{regarding.name[:NAME_LIMIT]}.{moment:x}{self._numbered:x}"

    def _forget_old(self) -> None:
        """Keep as many as fit: the oldest goes, unless it is still waiting."""
        if len(self._known) > self._capacity:
            oldest = next((each for each in self._known if each not in self._waiting), None)
            if oldest is not None:
                del self._known[oldest]

    async def _drain(self) -> None:
        while self._waiting:
            content = next(iter(self._waiting))
            await self._send(content, self._known[content])
            # Only now: cancelled on the way, it is sent again, and is known by its name.
            self._waiting.pop(content, None)

    async def _send(self, content: _Content, series: _Series) -> None:
        count = series.count
        try:
            response = await self._put(content, series)
        except (ClientError, AmbiguousError) as error:
            self._fail(content, str(error))
            return
        if response.ok or response.status == 409:
            self._sent += 1
            series.told, series.told_at = count, self._clock.monotonic()
        else:
            status = read_status(response.status, response.headers, response.body)
            self._fail(content, status.message)

    async def _put(self, content: _Content, series: _Series) -> Response:
        namespace = content.regarding.namespace or "default"
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        if series.told:
            update = {"series": _series(series)}
            response = await self._connection.patch(
                f"{path}/{series.name}", update, within=EVENT_TIMEOUT
            )
            if response.status != 404:  # else it is too old, and its server forgot it
                return response
        body = self._body(content, series, namespace)
        return await self._connection.post(path, body, within=EVENT_TIMEOUT)

    def _body(self, content: _Content, series: _Series, namespace: str) -> dict[str, object]:
        regarding = content.regarding
        body: dict[str, object] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": series.name, "namespace": namespace},
            "eventTime": _time(series.first),
            "reportingController": CONTROLLER,
            "reportingInstance": self._instance,
            "action": ACTION,
            "type": "Warning" if content.warning else "Normal",
            "reason": content.reason,
            "note": content.note.encode()[:NOTE_LIMIT].decode(errors="ignore"),
            "regarding": {
                "apiVersion": regarding.api_version,
                "kind": regarding.kind,
                "namespace": regarding.namespace,
                "name": regarding.name,
                "uid": regarding.uid,
            },
        }
        if series.count > 1:
            body["series"] = _series(series)
        return body

    def _fail(self, content: _Content, error: str) -> None:
        self._failed += 1
        regarding = content.regarding
        log.info(
            "Kubernetes Event not recorded",
            kind=regarding.kind,
            namespace=regarding.namespace,
            name=regarding.name,
            reason=content.reason,
            error=error,
        )


def _series(series: _Series) -> dict[str, object]:
    return {"count": series.count, "lastObservedTime": _time(series.last)}


def _time(moment: datetime) -> str:
    """Return a MicroTime as the API writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
