"""Binds Pods that have no node: filters as kube-scheduler does, prefers what is least loaded."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from reactive_descheduler.sandbox import fitting
from reactive_descheduler.sandbox.apiserver.pods import FINISHED
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

if TYPE_CHECKING:
    from reactive_descheduler.sandbox.client import ApiClient
    from reactive_descheduler.sandbox.mirror import ObjectKey


class Scheduler(Controller):
    """One Pod at a time; what fits nowhere waits until a node or another Pod changes."""

    def __init__(self, client: ApiClient, mirrors: Mirrors) -> None:
        super().__init__(client)
        self._nodes = mirrors.nodes
        self._pods = mirrors.pods
        self._by_node = mirrors.pods.index(lambda pod: text(pod, "spec", "nodeName"))
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
        choosy = fitting.has_anti_affinity(pod)
        others = [
            (other, node)
            for node in self._nodes.objects.values()
            for other in self._running(node)
            if choosy or fitting.has_anti_affinity(other)
        ]
        fitting_nodes = [
            node
            for node in self._nodes.objects.values()
            if fitting.fits(pod, node, self._running(node), others)
        ]
        return min(fitting_nodes, key=lambda node: self._load(pod, node), default=None)

    def _running(self, node: JsonObject) -> list[JsonObject]:
        there = self._by_node.get(name_of(node)).values()
        return [pod for pod in there if text(pod, "status", "phase") not in FINISHED]

    def _load(self, pod: JsonObject, node: JsonObject) -> tuple[int, int, Decimal, int, str]:
        """Smaller is better: soft taints, siblings, share of the cpu asked for, Pods, name."""
        running = self._running(node)
        owner = controller_of(pod).get("uid")
        siblings = (
            sum(controller_of(other).get("uid") == owner for other in running) if owner else 0
        )
        asked = sum(
            (fitting.requests_of(other).get("cpu", Decimal(0)) for other in running), Decimal(0)
        )
        cpu = fitting.quantity(mapping(node, "status", "allocatable").get("cpu", 1)) or Decimal(1)
        soft = len(fitting.repelling_taints(pod, node, "PreferNoSchedule"))
        return soft, siblings, asked / cpu, len(running), name_of(node)

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

    def _retry_all(self) -> None:
        for key in self._unschedulable:
            self.add(key)


def _waits(pod: JsonObject) -> bool:
    return (
        not text(pod, "spec", "nodeName")
        and not is_terminating(pod)
        and text(pod, "spec", "schedulerName") in ("", "default-scheduler")
    )
