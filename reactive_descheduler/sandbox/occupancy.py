"""What the Pods on each node take up, kept by each change of a Pod."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from reactive_descheduler.sandbox import fitting
from reactive_descheduler.sandbox.apiserver.pods import FINISHED
from reactive_descheduler.sandbox.documents import JsonObject, controller_of, text
from reactive_descheduler.sandbox.mirror import key_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reactive_descheduler.sandbox.mirror import ObjectKey


@dataclass
class Occupied:
    """One node: its Pods, what they ask for in all, and how many there are of each owner."""

    pods: dict[ObjectKey, JsonObject] = field(default_factory=dict)
    requests: defaultdict[str, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    owners: Counter[str] = field(default_factory=Counter)


class Occupancy:
    """All nodes. A terminating Pod still takes up its place; a finished one does not."""

    def __init__(self) -> None:
        self._nodes: defaultdict[str, Occupied] = defaultdict(Occupied)
        self._apart: dict[ObjectKey, JsonObject] = {}

    def on(self, node: str) -> Occupied:
        return self._nodes[node]

    def that_matter_to(self, pod: JsonObject) -> Iterable[JsonObject]:
        """The placed Pods that affinity to Pods, or the lack of it, is about: all of them, if this
        Pod has such terms."""
        if not fitting.has_anti_affinity(pod) and not fitting.has_affinity(pod):
            return self._apart.values()
        return [other for node in self._nodes.values() for other in node.pods.values()]

    def on_change(self, old: JsonObject | None, new: JsonObject | None) -> None:
        """Take note of a Pod's change; to be called for every one."""
        was = _place(old)
        if was and old is not None:
            self._count(was, old, -1)
        now = _place(new)
        if now and new is not None:
            self._count(now, new, 1)

    def _count(self, name: str, pod: JsonObject, step: int) -> None:
        node, key = self._nodes[name], key_of(pod)
        if step > 0:
            node.pods[key] = pod
            if fitting.has_anti_affinity(pod):
                self._apart[key] = pod
        else:
            node.pods.pop(key, None)
            self._apart.pop(key, None)
        for resource, amount in fitting.requests_of(pod).items():
            node.requests[resource] += step * amount
        node.owners[text(controller_of(pod), "uid")] += step


def _place(pod: JsonObject | None) -> str:
    """The node that a Pod takes up room on, if any."""
    return "" if text(pod, "status", "phase") in FINISHED else text(pod, "spec", "nodeName")
