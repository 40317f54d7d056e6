"""Which node lies in which topology domain, remembered for as long as no label or taint moves."""

from __future__ import annotations

from collections.abc import Iterable

from reactive_descheduler.api.node import Node
from reactive_descheduler.api.scheduling.spread import Domains, DomainShape, recounted_domains

_SHAPES = 256
"""How many are remembered: each holds an entry for every node."""


class Topology:
    """Follows the nodes. All of them count, as for the scheduler, ready or not."""

    def __init__(self) -> None:
        self.version = 0
        """Moves when some answer may: a heartbeat of a node changes none."""
        self._domains: dict[DomainShape, Domains] = {}

    def update(self, old: Node | None, new: Node | None) -> None:
        """Follow one change of one node."""
        if (
            old is None
            or new is None
            or old.labels != new.labels
            or old.taints != new.taints
            or old.name != new.name
        ):
            self.version += 1
            self._domains.clear()

    def domains(self, shape: DomainShape, nodes: Iterable[Node]) -> Domains:
        """Return the domains of a shape; `nodes` are all that there are, by name."""
        found = self._domains.get(shape)
        if found is None:
            if len(self._domains) >= _SHAPES:
                self._domains.clear()
            found = self._domains[shape] = recounted_domains(shape, nodes)
        return found
