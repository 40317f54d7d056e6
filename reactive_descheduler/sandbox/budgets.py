"""The disruption controller: keeps the status of PodDisruptionBudgets."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from reactive_descheduler.sandbox.apiserver.pods import set_condition
from reactive_descheduler.sandbox.apiserver.selectors import matches_labels
from reactive_descheduler.sandbox.controller import Controller
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    attach,
    clone,
    controller_of,
    integer,
    is_ready,
    is_terminating,
    labels,
    lookup,
    mapping,
    name_of,
    namespace_of,
    seconds_of,
    string_map,
    text,
    uid_of,
)
from reactive_descheduler.sandbox.mirror import Mirror, Mirrors, key_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactive_descheduler.sandbox.client import ApiClient
    from reactive_descheduler.sandbox.mirror import ObjectKey

# Seconds that an evicted Pod counts as going before it is taken to have stayed.
_DELETION_TIMEOUT = 120.0


class BudgetController(Controller):
    """Counts healthy Pods; the API server spends what this allows."""

    def __init__(self, client: ApiClient, mirrors: Mirrors, *, now: Callable[[], float]) -> None:
        super().__init__(client)
        self._budgets = mirrors.budgets
        self._pods = mirrors.pods
        self._owners: dict[str, Mirror] = {
            "ReplicaSet": mirrors.replica_sets,
            "Deployment": mirrors.deployments,
            "StatefulSet": mirrors.stateful_sets,
        }
        self._now = now
        self._by_namespace = mirrors.pods.index(namespace_of)
        self.follow(mirrors.budgets, lambda budget: [key_of(budget)])
        self.follow(mirrors.pods, self._budgets_of)
        for owners in self._owners.values():
            self.follow(owners, self._budgets_in)

    async def reconcile(self, key: ObjectKey) -> None:
        stored = self._budgets.objects.get(key)
        if stored is None:
            return
        budget = clone(stored)
        pods = [pod for pod in self._by_namespace.get(key[0]).values() if _selects(budget, pod)]
        expected, desired = self._bounds(budget, pods)
        disrupted = self._disrupted(budget, pods)
        healthy = sum(
            is_ready(pod) and not is_terminating(pod) and name_of(pod) not in disrupted
            for pod in pods
        )
        allowed = max(0, healthy - desired) if expected > 0 else 0
        generation = integer(budget, "metadata", "generation")
        status = attach(budget, "status")
        status |= {
            "observedGeneration": generation,
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
        }
        status.pop("disruptedPods", None)
        if disrupted:
            status["disruptedPods"] = disrupted
        verdict: JsonObject = {
            "type": "DisruptionAllowed",
            "status": "True" if allowed else "False",
            "reason": "SufficientPods" if allowed else "InsufficientPods",
            "message": "",
            "observedGeneration": generation,
        }
        set_condition(budget, verdict, self._now())
        if disrupted:
            oldest = min(map(seconds_of, disrupted.values()))
            self.add_later(key, max(1.0, oldest + _DELETION_TIMEOUT - self._now()))
        if status != stored.get("status"):
            await self.client.replace(budget, subresource="status")

    def _bounds(self, budget: JsonObject, pods: list[JsonObject]) -> tuple[int, int]:
        """How many Pods there should be, and how many of them must be healthy."""
        least, most = (
            lookup(budget, "spec", "minAvailable"),
            lookup(budget, "spec", "maxUnavailable"),
        )
        if isinstance(least, int):
            return len(pods), least
        if least is None and most is None:
            return 0, 0  # nothing is expected, and nothing allowed
        expected = self._scale(pods)
        if least is not None:
            return expected, _share(least, expected)
        return expected, max(0, expected - _share(most, expected))

    def _scale(self, pods: list[JsonObject]) -> int:
        """What the Pods' controllers ask for in all, each controller once."""
        wanted: dict[str, int] = {}
        for pod in pods:
            owner = self._top(pod)
            if owner:
                wanted[uid_of(owner)] = integer(owner, "spec", "replicas", default=1)
        return sum(wanted.values())

    def _top(self, document: JsonObject) -> JsonObject:
        """The topmost controller that a Pod comes from: a Deployment rather than its ReplicaSet."""
        found: JsonObject = {}
        while True:
            reference = controller_of(document)
            owners = self._owners.get(text(reference, "kind"))
            key = (namespace_of(document), text(reference, "name"))
            owner = owners.objects.get(key) if owners is not None else None
            if owner is None or uid_of(owner) != reference.get("uid"):
                return found
            found = document = owner

    def _disrupted(self, budget: JsonObject, pods: list[JsonObject]) -> dict[str, str]:
        """The evicted Pods that still wait for their deletion to show."""
        present = {name_of(pod): pod for pod in pods}
        recorded = string_map(budget, "status", "disruptedPods")
        return {
            name: since
            for name, since in recorded.items()
            if name in present
            and not is_terminating(present[name])
            and seconds_of(since) + _DELETION_TIMEOUT > self._now()
        }

    def _budgets_of(self, pod: JsonObject) -> list[ObjectKey]:
        namespace = namespace_of(pod)
        return [
            key
            for key, budget in self._budgets.objects.items()
            if key[0] == namespace and _selects(budget, pod)
        ]

    def _budgets_in(self, owner: JsonObject) -> list[ObjectKey]:
        namespace = namespace_of(owner)
        return [key for key in self._budgets.objects if key[0] == namespace]


def _selects(budget: JsonObject, pod: JsonObject) -> bool:
    return matches_labels(mapping(budget, "spec").get("selector"), labels(pod))


def _share(value: object, total: int) -> int:
    """A count, or a percentage of the total, rounded up."""
    if isinstance(value, int):
        return value
    return math.ceil(int(str(value).removesuffix("%")) * total / 100)
