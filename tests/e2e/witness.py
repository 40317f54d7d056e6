"""Sees every eviction in the cluster, and whether one breaks a disruption budget.

It counts for itself, from what the API server tells of Pods and budgets while a test runs: a budget
is broken when an eviction takes a healthy Pod and leaves fewer healthy ones than the budget asks
for. What Pods lose otherwise (deleted, scaled down, no longer Ready) is nobody's fault here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Generic, TypeVar

import aiohttp
import msgspec

from tests.e2e.api import Api, ApiError, Meta, Pod

PODS = "/api/v1/pods"
BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
NAMESPACES = "e2e-"
"""What the names of the tests' namespaces begin with."""
AGAIN = 0.2
"""Seconds until a lost watch is opened anew."""
LAST_LINES = 0.2
"""Seconds at the end for what is on its way to us."""


class Selector(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A label selector, as far as the tests' budgets go."""

    match_labels: dict[str, str] = {}
    match_expressions: list[dict[str, object]] = []
    """Of others' budgets, which are not watched."""


class BudgetSpec(msgspec.Struct, rename="camel"):
    """Whose Pods, and how many of them must stay."""

    selector: Selector | None = None
    min_available: int | str | None = None


class BudgetStatus(msgspec.Struct, rename="camel"):
    """What the disruption controller made of it."""

    desired_healthy: int = 0


class Budget(msgspec.Struct):
    """A PodDisruptionBudget."""

    metadata: Meta
    spec: BudgetSpec
    status: BudgetStatus

    @property
    def needed(self) -> int:
        """How many healthy Pods it asks for."""
        least = self.spec.min_available
        return least if isinstance(least, int) else self.status.desired_healthy

    def selects(self, pod: Pod) -> bool:
        """Say whether it protects a Pod."""
        selector = self.spec.selector
        return (
            selector is not None
            and self.metadata.namespace == pod.metadata.namespace
            and selector.match_labels.items() <= pod.metadata.labels.items()
        )

    @property
    def of_a_test(self) -> bool:
        """Not of whoever else uses the cluster."""
        return self.metadata.namespace.startswith(NAMESPACES)


Kind = TypeVar("Kind", Pod, Budget)


class Event(msgspec.Struct, Generic[Kind]):
    """One line of a watch."""

    type: str
    object: Kind


class Found(msgspec.Struct, Generic[Kind]):
    """What a LIST answers."""

    metadata: Meta
    items: list[Kind]


@dataclass(frozen=True, slots=True)
class Eviction:
    """A Pod that was evicted, and when that was seen."""

    pod: Pod
    seen: datetime


@dataclass(slots=True)
class Witness:
    """What has been seen so far."""

    pods: dict[str, Pod] = field(default_factory=dict)
    budgets: dict[str, Budget] = field(default_factory=dict)
    evictions: dict[str, Eviction] = field(default_factory=dict)
    """By UID, in their order."""
    broken: list[str] = field(default_factory=list)
    """The budgets that were broken, each with how."""
    fewest: dict[str, int] = field(default_factory=dict)
    """Of each budget, by its name: how many healthy Pods an eviction left at worst."""

    def evicted(self, namespace: str, app: str = "") -> list[Eviction]:
        """The evictions in a namespace, of one app or of all."""
        return [
            each
            for each in self.evictions.values()
            if each.pod.metadata.namespace == namespace
            and app in ("", each.pod.metadata.labels.get("app"))
        ]

    def see_pod(self, pod: Pod, *, deleted: bool = False) -> None:
        """Take in how a Pod is now, or was at its end."""
        uid = pod.metadata.uid
        before = self.pods.pop(uid, None)
        if not deleted:
            self.pods[uid] = pod
        if pod.evicted and uid not in self.evictions:
            self.evictions[uid] = Eviction(pod, datetime.now(UTC))
        healthy = pod.available and not deleted
        if pod.evicted and before is not None and before.available and not healthy:
            self._judge(pod)

    def see_all_pods(self, pods: Iterable[Pod]) -> None:
        """Take in a whole list; who is not in it is gone."""
        found = {pod.metadata.uid: pod for pod in pods}
        for uid in self.pods.keys() - found.keys():
            del self.pods[uid]
        for pod in found.values():
            self.see_pod(pod)

    def see_budget(self, budget: Budget, *, deleted: bool = False) -> None:
        """Take in how a budget is now."""
        if deleted:
            self.budgets.pop(budget.metadata.uid, None)
        else:
            self.budgets[budget.metadata.uid] = budget

    def _judge(self, evicted: Pod) -> None:
        for budget in self.budgets.values():
            if not budget.selects(evicted):
                continue
            left = sum(budget.selects(pod) and pod.available for pod in self.pods.values())
            name = budget.metadata.name
            self.fewest[name] = min(left, self.fewest.get(name, left))
            if left < budget.needed:
                self.broken.append(
                    f"{name}: the eviction of {evicted.metadata.name} left {left} healthy, "
                    f"{budget.needed} needed"
                )


@asynccontextmanager
async def watching(api: Api) -> AsyncIterator[Witness]:
    """A witness that has seen everything that there is, and goes on seeing."""
    witness = Witness()
    ready = [asyncio.Event(), asyncio.Event()]
    async with asyncio.TaskGroup() as tasks:
        watches = [
            tasks.create_task(_follow_budgets(api, witness, ready[0])),
            tasks.create_task(_follow_pods(api, witness, ready[1])),
        ]
        async with asyncio.timeout(30):
            for each in ready:
                await each.wait()
        yield witness
        await asyncio.sleep(LAST_LINES)
        for watch in watches:
            watch.cancel()


async def _follow_pods(api: Api, witness: Witness, ready: asyncio.Event) -> None:
    async for listed, event in _follow(api, PODS, Found[Pod], Event[Pod]):
        if event is None:
            witness.see_all_pods(listed)
            ready.set()
        else:
            witness.see_pod(event.object, deleted=event.type == "DELETED")


async def _follow_budgets(api: Api, witness: Witness, ready: asyncio.Event) -> None:
    async for listed, event in _follow(api, BUDGETS, Found[Budget], Event[Budget]):
        if event is None:
            witness.budgets = {each.metadata.uid: each for each in listed if each.of_a_test}
            ready.set()
        elif event.object.of_a_test:
            witness.see_budget(event.object, deleted=event.type == "DELETED")


async def _follow(
    api: Api, path: str, found: type[Found[Kind]], events: type[Event[Kind]]
) -> AsyncIterator[tuple[list[Kind], Event[Kind] | None]]:
    """A list, then each change to it; anew after a loss, as the API server may be killed."""
    while True:
        try:
            state = msgspec.json.decode(await api.request("GET", path), type=found)
            yield state.items, None
            version = state.metadata.resource_version
            async with aclosing(api.lines(f"{path}?watch=true&resourceVersion={version}")) as lines:
                async for line in lines:
                    event = msgspec.json.decode(line, type=events)
                    if event.type == "ERROR":
                        break
                    yield [], event
        except (aiohttp.ClientError, ApiError, TimeoutError):
            pass
        await asyncio.sleep(AGAIN)
