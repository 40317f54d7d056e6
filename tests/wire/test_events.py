"""Kubernetes Events: what is sent, what is merged, and that recording never waits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from reactive_descheduler.client.events import EventRecorder, Regarding, regarding_pod
from reactive_descheduler.kit.clock import ManualClock
from tests.builders import make_pod, pod_view
from tests.wire.server import Answer, ApiServer, Drop, Script, failure
from tests.wire.world import connected, eventually

pytestmark = pytest.mark.real_time

START = datetime(2026, 3, 1, 12, 0, 0, 250, tzinfo=UTC)
POD = Regarding("v1", "Pod", "shop", "web-1", "uid-1")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@asynccontextmanager
async def recording(
    server: ApiServer, clock: ManualClock, *, capacity: int = 100
) -> AsyncIterator[EventRecorder]:
    async with connected(server) as connection:
        recorder = EventRecorder(connection, clock=clock, instance="host-1", capacity=capacity)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(recorder.run)
            yield recorder
            tasks.cancel_scope.cancel()


async def test_event_says_what_was_done_to_which_pod(server: ApiServer, clock: ManualClock) -> None:
    pod = pod_view(make_pod("web-1", namespace="shop", uid="uid-1"))
    async with recording(server, clock) as recorder:
        recorder.record(regarding_pod(pod), reason="PodLifeTime", note="pod evicted from n1")
        await eventually(lambda: recorder.statistics().sent == 1)
    [sent] = server.requests
    assert (sent.method, sent.path) == ("POST", "/apis/events.k8s.io/v1/namespaces/shop/events")
    name = sent.body["metadata"].pop("name")
    assert name.startswith("web-1.")
    assert sent.body == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "shop"},
        "eventTime": "2026-03-01T12:00:00.000250Z",
        "reportingController": "sigs.k8s.io.descheduler",
        "reportingInstance": "reactive-descheduler-host-1",
        "action": "Descheduled",
        "type": "Normal",
        "reason": "PodLifeTime",
        "note": "pod evicted from n1",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "shop",
            "name": "web-1",
            "uid": "uid-1",
        },
    }


async def test_event_about_what_has_no_namespace_goes_to_default(
    server: ApiServer, clock: ManualClock
) -> None:
    async with recording(server, clock) as recorder:
        recorder.record(Regarding("v1", "Node", "", "n1", ""), reason="R", note="n", warning=True)
        await eventually(lambda: recorder.statistics().sent == 1)
    assert server.requests[0].path == "/apis/events.k8s.io/v1/namespaces/default/events"
    assert server.requests[0].body["type"] == "Warning"


async def test_repeats_become_a_series_updated_once_a_minute(
    server: ApiServer, clock: ManualClock
) -> None:
    async with recording(server, clock) as recorder:
        for _ in range(3):
            recorder.record(POD, reason="EvictionFailed", note="no budget", warning=True)
        await eventually(lambda: recorder.statistics().sent == 1)
        clock.advance(10)
        recorder.record(POD, reason="EvictionFailed", note="no budget", warning=True)
        await anyio.sleep(0.05)
        assert len(server.requests) == 1, "too soon to tell"
        clock.advance(60)
        recorder.record(POD, reason="EvictionFailed", note="no budget", warning=True)
        await eventually(lambda: recorder.statistics().sent == 2)
    first, second = server.requests
    assert first.body["series"]["count"] == 3
    assert second.method == "PATCH"
    assert second.path.endswith(f"/events/{first.body['metadata']['name']}")
    assert second.body == {
        "series": {
            "count": 5,
            "lastObservedTime": (START + timedelta(seconds=70)).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }
    }


async def test_series_that_the_server_forgot_is_created_anew(
    server: ApiServer, clock: ManualClock
) -> None:
    async with recording(server, clock) as recorder:
        recorder.record(POD, reason="R", note="n")
        await eventually(lambda: recorder.statistics().sent == 1)
        server.posts.append(failure(404, "NotFound", "expired"))
        clock.advance(3600)
        recorder.record(POD, reason="R", note="n")
        await eventually(lambda: recorder.statistics().sent == 2)
    assert [each.method for each in server.requests] == ["POST", "PATCH", "POST"]


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(failure(403, "Forbidden", "namespace is terminating"), id="refused"),
        pytest.param(Answer(500, b"broken"), id="broken"),
        pytest.param(Drop(), id="lost"),
    ],
)
async def test_failure_is_counted_and_hurts_no_other(
    server: ApiServer, clock: ManualClock, fault: Script
) -> None:
    server.posts.append(fault)
    async with recording(server, clock) as recorder:
        recorder.record(POD, reason="R", note="first")
        recorder.record(POD, reason="R", note="second")
        await eventually(lambda: recorder.statistics().sent == 1)
        assert recorder.statistics().failed == 1


async def test_recording_never_waits_and_is_bounded(server: ApiServer, clock: ManualClock) -> None:
    server.posts.append(Drop(after=3600))
    async with recording(server, clock, capacity=5) as recorder:
        for n in range(50):
            recorder.record(POD, reason="R", note=str(n))
        assert recorder.statistics()[:4] == (5, 0, 0, 45)


async def test_what_waits_is_flushed_at_the_end(server: ApiServer, clock: ManualClock) -> None:
    async with connected(server) as connection:
        recorder = EventRecorder(connection, clock=clock, instance="h")
        for n in range(3):
            recorder.record(POD, reason="R", note=str(n))
        recorder.record(POD, reason="R", note="0")
        await recorder.flush(5)
        assert recorder.statistics().waiting == 0
    assert [each.body["note"] for each in server.requests] == ["0", "1", "2"]


async def test_flush_ends_in_time(server: ApiServer, clock: ManualClock) -> None:
    server.posts.append(Drop(after=3600))
    async with connected(server) as connection:
        recorder = EventRecorder(connection, clock=clock, instance="h")
        recorder.record(POD, reason="R", note="n")
        with anyio.fail_after(2):
            await recorder.flush(0.1)
        assert recorder.statistics().waiting == 1


async def test_long_note_is_cut_within_a_character(server: ApiServer, clock: ManualClock) -> None:
    async with recording(server, clock) as recorder:
        recorder.record(POD, reason="R", note="ä" * 1000)
        await eventually(lambda: recorder.statistics().sent == 1)
    assert server.requests[0].body["note"] == "ä" * 512
