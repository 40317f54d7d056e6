"""The metrics-server of a reported case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from reactive_descheduler.sandbox.apiserver.resources import PODS
from reactive_descheduler.sandbox.documents import JsonObject, mapping, name_of, objects, text
from reactive_descheduler.sandbox.fitting import quantity
from reactive_descheduler.sandbox.measurements import Measurements, Usage

MEMORY_SHARE = Decimal("0.1")
"""What nodes use of their memory."""


@dataclass
class CaseMeasurements(Measurements):
    """Usage of cpu as a case sets it, else as much as is asked for."""

    cpu_percent: dict[str, float | None] = field(default_factory=dict)
    """Of nodes; None: not measured."""

    def set(
        self,
        cpu_percent: Mapping[str, float | None],
        pod_cpu_m: Mapping[str, float | None],
        *,
        sampled_at: float,
    ) -> None:
        """Measure this from now on, and what is not named as before; `sampled_at` is Unix time."""
        self.sampled_at = sampled_at
        self.cpu_percent.update(cpu_percent)
        for pod, cpu in pod_cpu_m.items():
            namespace, _, name = pod.rpartition("/")
            usage = {"cpu": f"{cpu}m", "memory": "0"}
            container = self._first_container(namespace, name)
            self.pods[namespace, name] = None if cpu is None else {container: usage}

    def _nodes(self) -> Iterator[tuple[JsonObject, Usage]]:
        for node, usage in super()._nodes():
            allocatable = mapping(node, "status", "allocatable")
            percent = self.cpu_percent.get(name_of(node), -1)
            if percent is None:
                continue
            measured = {**usage, "memory": quantity(allocatable.get("memory", 0)) * MEMORY_SHARE}
            if percent >= 0:
                measured["cpu"] = quantity(allocatable.get("cpu", 0)) * Decimal(percent) / 100
            yield node, measured

    def _first_container(self, namespace: str, name: str) -> str:
        stored = self.registry.store.of(PODS).objects.get((namespace, name))
        containers = objects(stored.document, "spec", "containers") if stored is not None else []
        return text(containers[0], "name") if containers else "main"
