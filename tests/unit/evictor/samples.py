"""Candidates, outcomes and a few Pods for tests of the queue, the gates and the dispatcher."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from reactive_descheduler.api.changes import At, Key, On
from reactive_descheduler.api.eviction import (
    Answer,
    Candidate,
    Cause,
    EvictionOutcome,
    Held,
    Rejection,
)
from reactive_descheduler.api.pod import Pod
from tests.builders import make_pod, pod_view

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def pod(name: str = "a", *, namespace: str = "default", **fields: object) -> Pod:
    return pod_view(make_pod(name, namespace=namespace, **{"node": "node-1", **fields}))  # type: ignore[arg-type]


def key_of(of: Pod, strategy: str = "Strategy") -> Key:
    return Key(0, strategy, (of.uid,))


def taint_cause(node: str = "node-1", taint: str = "dedicated") -> Cause:
    return Cause("taint", (node, taint, "", "NoSchedule"), (("Node", "", node),))


def candidate(
    of: Pod | None = None, *, cause: Cause | None = None, key: Key | None = None
) -> Candidate:
    """Return a candidate; by default Pod `a`, for a taint of its node."""
    chosen = of if of is not None else pod()
    return Candidate(key or key_of(chosen), chosen, cause or taint_cause(), "it is wrong there")


def outcome(
    answer: Answer,
    of: Candidate | None = None,
    *,
    status: int | None = 500,
    retry_after: float | None = None,
    at: datetime = NOW,
) -> EvictionOutcome:
    return EvictionOutcome(of or candidate(), answer, status, "told so", retry_after, at, at)


def times(held: Held | Rejection | None) -> list[datetime]:
    """Return the times that a candidate waits for."""
    assert held is not None
    return [wake.time for wake in held.wakes if isinstance(wake, At)]


def waits_for(held: object) -> set[object]:
    """Return the objects that a held candidate waits for."""
    assert isinstance(held, Held)
    return {wake.ref for wake in held.wakes if isinstance(wake, On)}
