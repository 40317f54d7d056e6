"""Binds Pods that have no node: filters as kube-scheduler does, prefers what is least loaded."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from reactive_descheduler.sandbox import fitting
from reactive_descheduler.sandbox.controller import Controller
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    condition,
    controller_of,
    is_terminating,
    mapping,
    name_of,
    text,
)
from reactive_descheduler.sandbox.mirror import Mirrors, key_of
from reactive_descheduler.sandbox.occupancy import Occupancy

if TYPE_CHECKING:
    from reactive_descheduler.sandbox.client import ApiClient
    from reactive_descheduler.sandbox.mirror import ObjectKey


class Scheduler(Controller):
    """One Pod at a time; what fits nowhere waits until a node or another Pod changes."""

    def __init__(self, client: ApiClient, mirrors: Mirrors) -> None:
        super().__init__(client)
        self._nodes = mirrors.nodes
        self._pods = mirrors.pods
        self._occupancy = Occupancy()
        mirrors.pods.listeners.append(self._occupancy.on_change)
        self._unschedulable: set[ObjectKey] = set()
        mirrors.pods.listeners.append(self._on_pod)
        mirrors.nodes.listeners.append(lambda _old, _new: self._retry_all())

    async def reconcile(self, key: ObjectKey) -> None:
        pod = self._pods.objects.get(key)
        self._unschedulable.discard(key)
        if pod is None or not _waits(pod):
            return
        node = self._choose(pod)
        if node is None:
            self._unschedulable.add(key)
            await self._report(pod)
            return
        await self.client.bind(pod, name_of(node))
        # The next Pod must find this one on its node.
        while (seen := self._pods.objects.get(key)) is not None and _waits(seen):
            await self._pods.next_change()

    def _choose(self, pod: JsonObject) -> JsonObject | None:
        wanted = fitting.requests_of(pod)
        others = [
            (other, node)
            for other in self._occupancy.that_matter_to(pod)
            if (node := self._nodes.objects.get(("", text(other, "spec", "nodeName")))) is not None
        ]
        suitable = [
            node
            for node in self._nodes.objects.values()
            if fitting.has_room(wanted, node, self._occupancy.on(name_of(node)).requests)
            and fitting.admits(node, pod)
            and fitting.is_apart(pod, node, others)
            and fitting.is_near(pod, node, others)
        ]
        return min(suitable, key=lambda node: self._load(pod, node), default=None)

    def _load(self, pod: JsonObject, node: JsonObject) -> tuple[int, int, Decimal, int, str]:
        """Smaller is better: soft taints, siblings, share of the cpu asked for, Pods, name."""
        occupied = self._occupancy.on(name_of(node))
        owner = text(controller_of(pod), "uid")
        siblings = occupied.owners[owner] if owner else 0
        cpu = fitting.quantity(mapping(node, "status", "allocatable").get("cpu", 1)) or Decimal(1)
        soft = len(fitting.repelling_taints(pod, node, "PreferNoSchedule"))
        taken = occupied.requests["cpu"] / cpu
        return soft, siblings, taken, len(occupied.pods), name_of(node)

    async def _report(self, pod: JsonObject) -> None:
        message = f"0/{len(self._nodes.objects)} nodes are available."
        before = condition(pod, "PodScheduled")
        if before.get("status") == "False" and before.get("message") == message:
            return
        unschedulable = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
        }
        await self.client.patch(
            "pods",
            name_of(pod),
            {"status": {"conditions": [unschedulable]}},
            namespace=text(pod, "metadata", "namespace"),
            subresource="status",
            kind="strategic",
        )

    def _on_pod(self, old: JsonObject | None, new: JsonObject | None) -> None:
        if new is not None and _waits(new) and key_of(new) not in self._unschedulable:
            self.add(key_of(new))
        if new is None or (old is not None and is_terminating(new) > is_terminating(old)):
            self._retry_all()
        elif text(new, "spec", "nodeName") and not text(old, "spec", "nodeName"):
            self._retry_those_who_want_company()

    def _retry_those_who_want_company(self) -> None:
        for key in self._unschedulable:
            pod = self._pods.objects.get(key)
            if pod is not None and fitting.has_affinity(pod):
                self.add(key)

    def _retry_all(self) -> None:
        for key in self._unschedulable:
            self.add(key)


def _waits(pod: JsonObject) -> bool:
    return (
        not text(pod, "spec", "nodeName")
        and not is_terminating(pod)
        and text(pod, "spec", "schedulerName") in ("", "default-scheduler")
    )
