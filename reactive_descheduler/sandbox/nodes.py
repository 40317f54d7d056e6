"""The node controllers: taints that follow a cordon and conditions, and Pods of lost nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactive_descheduler.sandbox.client import ApiClient, ApiRefused
from reactive_descheduler.sandbox.controller import Controller
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    condition,
    lookup,
    objects,
    text,
    timestamp,
)
from reactive_descheduler.sandbox.mirror import Mirrors, key_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactive_descheduler.sandbox.mirror import ObjectKey

_PREFIX = "node.kubernetes.io/"
_PRESSURES = {
    "MemoryPressure": "memory-pressure",
    "DiskPressure": "disk-pressure",
    "PIDPressure": "pid-pressure",
    "NetworkUnavailable": "network-unavailable",
}
_OURS = frozenset(
    _PREFIX + name for name in ("unschedulable", "not-ready", "unreachable", *_PRESSURES.values())
)


class NodeController(Controller):
    """Keeps the taints of `node.kubernetes.io/` as the node's state has them.

    Pods of a deleted node are deleted without grace after `lost_after` seconds.
    """

    def __init__(
        self,
        client: ApiClient,
        mirrors: Mirrors,
        *,
        now: Callable[[], float],
        lost_after: float = 40.0,
    ) -> None:
        super().__init__(client)
        self._nodes = mirrors.nodes
        self._now = now
        self._lost_after = lost_after
        self._by_node = mirrors.pods.index(lambda pod: text(pod, "spec", "nodeName"))
        mirrors.nodes.listeners.append(self._on_node)

    async def reconcile(self, key: ObjectKey) -> None:
        node = self._nodes.objects.get(key)
        if node is None:
            await self._delete_pods(key[1])
            return
        taints = objects(node, "spec", "taints")
        present = {(text(t, "key"), text(t, "effect")) for t in taints if text(t, "key") in _OURS}
        wanted = wanted_taints(node)
        if present == wanted:
            return
        kept = [t for t in taints if text(t, "key") not in _OURS or _identity(t) in wanted]
        added: list[JsonObject] = [
            {"key": name, "effect": effect, "timeAdded": timestamp(self._now())}
            for name, effect in sorted(wanted - present)
        ]
        # The version guards the list: taints are replaced whole.
        version = text(node, "metadata", "resourceVersion")
        patch = {"metadata": {"resourceVersion": version}, "spec": {"taints": [*kept, *added]}}
        await self.client.patch("nodes", key[1], patch, kind="strategic")

    def _on_node(self, _old: JsonObject | None, node: JsonObject | None) -> None:
        if node is not None:
            self.add(key_of(node))
        elif _old is not None:
            self.add_later(key_of(_old), self._lost_after)

    async def _delete_pods(self, node: str) -> None:
        for namespace, name in list(self._by_node.get(node)):
            try:
                await self.client.delete("pods", name, namespace=namespace, grace=0)
            except ApiRefused as error:
                if error.code != 404:
                    raise


def wanted_taints(node: JsonObject) -> set[tuple[str, str]]:
    """Keys and effects of the taints that follow from the node's cordon and conditions."""
    wanted = set()
    if lookup(node, "spec", "unschedulable") is True:
        wanted.add((_PREFIX + "unschedulable", "NoSchedule"))
    ready = condition(node, "Ready").get("status")
    lost = {"False": "not-ready", "Unknown": "unreachable"}.get(str(ready))
    if lost is not None:
        wanted |= {(_PREFIX + lost, "NoSchedule"), (_PREFIX + lost, "NoExecute")}
    for kind, name in _PRESSURES.items():
        if condition(node, kind).get("status") == "True":
            wanted.add((_PREFIX + name, "NoSchedule"))
    return wanted


def _identity(taint: JsonObject) -> tuple[str, str]:
    return text(taint, "key"), text(taint, "effect")
