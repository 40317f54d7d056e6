"""What a metrics-server would measure: usage of nodes and Pods, from their requests unless a test
sets it."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import ROUND_UP, Decimal
from typing import TYPE_CHECKING

import orjson

from reactive_descheduler.sandbox.apiserver.resources import MEASURED, NODES, PODS
from reactive_descheduler.sandbox.apiserver.store import Stored
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    labels,
    mapping,
    name_of,
    namespace_of,
    objects,
    text,
    timestamp,
)
from reactive_descheduler.sandbox.fitting import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from reactive_descheduler.sandbox.apiserver.registry import Registry
    from reactive_descheduler.sandbox.apiserver.resources import Resource
    from reactive_descheduler.sandbox.apiserver.store import ObjectKey

_NODE_METRICS, _POD_METRICS = MEASURED
_UNITS = {"cpu": (Decimal("1e-9"), "n"), "memory": (Decimal(1024), "Ki")}
"""What a metrics-server counts in."""

Usage = dict[str, Decimal]


@dataclass
class Measurements:
    """Every running Pod uses `share` of what its containers ask for, a node what its Pods use.

    `nodes` and `pods` (by container) set usage by hand, in quantities; None measures nothing.
    """

    registry: Registry
    share: float = 1.0
    nodes: dict[str, Mapping[str, str] | None] = field(default_factory=dict)
    pods: dict[ObjectKey, Mapping[str, Mapping[str, str]] | None] = field(default_factory=dict)
    sampled_at: float | None = None
    """Unix time of the sample; None: each request is answered with a new one."""
    window: str = "15s"
    served: bool = True
    """False: as if no metrics-server were installed."""

    def documents(self, resource: Resource) -> list[Stored]:
        """Everything measured of one kind, in the order of names."""
        if resource is _NODE_METRICS:
            found = [
                self._document(resource, node, {"usage": self._quantities(usage)})
                for node, usage in self._nodes()
            ]
        else:
            found = [
                self._document(resource, pod, {"containers": containers})
                for pod in self._running()
                if (containers := self._containers(pod)) is not None
            ]
        return sorted(found, key=lambda each: each.key)

    def utilization(self) -> dict[str, dict[str, float]]:
        """Which part of its allocatable each node uses, by resource."""
        return {
            name_of(node): {
                name: float(usage.get(name, Decimal(0)) / allocatable)
                for name in _UNITS
                if (allocatable := quantity(mapping(node, "status", "allocatable").get(name, 0)))
            }
            for node, usage in self._nodes()
        }

    def _nodes(self) -> Iterator[tuple[JsonObject, Usage]]:
        by_node: dict[str, Usage] = {}
        for pod in self._running():
            usage = by_node.setdefault(text(pod, "spec", "nodeName"), {})
            for container in self._containers(pod) or ():
                for name, used in mapping(container, "usage").items():
                    usage[name] = usage.get(name, Decimal(0)) + quantity(used)
        for stored in self.registry.store.of(NODES).objects.values():
            name = name_of(stored.document)
            by_hand = self.nodes.get(name, {})
            if by_hand is not None:
                given = {resource: quantity(used) for resource, used in by_hand.items()}
                yield stored.document, given or by_node.get(name, {})

    def _running(self) -> Iterator[JsonObject]:
        for stored in self.registry.store.of(PODS).objects.values():
            if text(stored.document, "status", "phase") == "Running":
                yield stored.document

    def _containers(self, pod: JsonObject) -> list[JsonObject] | None:
        by_hand = self.pods.get((namespace_of(pod), name_of(pod)), {})
        if by_hand is None:
            return None
        if by_hand:
            return [{"name": name, "usage": {**usage}} for name, usage in by_hand.items()]
        return [
            {"name": text(container, "name"), "usage": self._quantities(self._asked(container))}
            for container in objects(pod, "spec", "containers")
        ]

    def _asked(self, container: JsonObject) -> Usage:
        requests = mapping(container, "resources", "requests")
        return {name: quantity(requests.get(name, 0)) * Decimal(self.share) for name in _UNITS}

    @staticmethod
    def _quantities(usage: Usage) -> dict[str, str]:
        return {
            name: f"{int((usage.get(name, Decimal(0)) / unit).to_integral_value(ROUND_UP))}{suffix}"
            for name, (unit, suffix) in _UNITS.items()
        }

    def _document(self, resource: Resource, of: JsonObject, measured: JsonObject) -> Stored:
        now = self.registry.now()
        metadata: JsonObject = {"name": name_of(of)}
        if resource.namespaced:
            metadata["namespace"] = namespace_of(of)
        metadata |= {"creationTimestamp": timestamp(now), "labels": labels(of)}
        document: JsonObject = {
            "kind": resource.kind,
            "apiVersion": resource.api_version,
            "metadata": metadata,
            "timestamp": timestamp(now if self.sampled_at is None else self.sampled_at),
            "window": self.window,
            **measured,
        }
        return Stored(document, orjson.dumps(document), 0)
