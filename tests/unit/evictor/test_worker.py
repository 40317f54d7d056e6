"""The one place that asks for evictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from reactive_descheduler.api.eviction import Answer
from reactive_descheduler.client.evictions import EvictionAnswer
from reactive_descheduler.evictor.worker import EvictionWorker, WorkerSettings
from reactive_descheduler.kit.clock import ManualClock
from tests.unit.evictor.samples import NOW, candidate, later


@dataclass
class Client:
    """Takes note of requests and grants them after two seconds."""

    clock: ManualClock
    calls: list[tuple[str, str, str, int | None, Mapping[str, str]]] = field(default_factory=list)

    async def evict(
        self,
        namespace: str,
        name: str,
        *,
        uid: str,
        grace_period_seconds: int | None,
        annotations: Mapping[str, str],
    ) -> EvictionAnswer:
        self.calls.append((namespace, name, uid, grace_period_seconds, annotations))
        self.clock.advance(2)
        return EvictionAnswer(Answer.BUDGET, 429, "no", 3.0)


def worker(*, dry_run: bool = False, grace: int | None = None) -> tuple[EvictionWorker, Client]:
    client = Client(ManualClock(NOW))
    settings = WorkerSettings(dry_run, grace, ("profile",))
    return EvictionWorker(client, settings, clock=client.clock), client


@pytest.mark.parametrize("grace", [None, 0, 7])
async def test_a_request_names_the_pod_by_uid_and_says_who_wants_it_and_why(
    grace: int | None,
) -> None:
    evicting, client = worker(grace=grace)
    told = await evicting.evict(candidate())

    annotations = {
        "requested-by": "sigs.k8s.io/descheduler",
        "reason": "triggered by profile/Strategy: it is wrong there",
    }
    assert client.calls == [("default", "a", "uid-default-a", grace, annotations)]
    assert told == (candidate(), Answer.BUDGET, 429, "no", 3.0, NOW, later(2))


async def test_a_dry_run_is_decided_here_and_sends_nothing() -> None:
    evicting, client = worker(dry_run=True)
    told = await evicting.evict(candidate())

    assert client.calls == []
    assert (told.answer, told.status) == (Answer.DRY_RUN, None)
    assert evicting.dry_run
