"""Domains as upstream draws them: of the cycle's nodes, and of others that hold such Pods."""

from __future__ import annotations

from collections.abc import Iterable

from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.scheduling.spread import (
    DomainCounts,
    Domains,
    DomainShape,
    Spread,
    least_of,
    recounted_domains,
)
from reactive_descheduler.framework.strategy import View


class CycleDomains:
    """Counts by domain, with a memory of the domains until some node differs."""

    def __init__(self) -> None:
        self._at: tuple[object, int] = (None, -1)
        self._known: dict[DomainShape, Domains] = {}

    def counted(self, spread: Spread, pods: Iterable[Pod], view: View) -> DomainCounts:
        """Count these Pods of the cycle's nodes.

        A node that the inclusion policies refuse is in no domain, until it holds such a Pod.
        """
        domains = self._of(spread, view)
        of_node, nodes = domains.of_node, domains.nodes
        counts: dict[str, int] = {}
        outside: dict[str, str] = {}
        for pod in pods:
            value = of_node.get(pod.node_name) or outside.get(pod.node_name)
            if value is None:
                value = view.nodes[pod.node_name].labels.get(spread.topology_key)
                if value is None:
                    continue
                outside[pod.node_name] = value
            counts[value] = counts.get(value, 0) + 1
        if outside:
            alone = {value: () for value in outside.values() if value not in nodes}
            domains = Domains({**of_node, **outside}, {**nodes, **alone})
        return DomainCounts(domains, counts, least_of(domains, counts, spread.min_domains))

    def _of(self, spread: Spread, view: View) -> Domains:
        if self._at[0] is not view.nodes or self._at[1] != view.lister.nodes_version:
            self._at = view.nodes, view.lister.nodes_version
            self._known.clear()
        key = spread.topology_key
        shape = DomainShape(key, (key,), spread.shape.inclusion)
        if shape not in self._known:
            self._known[shape] = recounted_domains(shape, view.nodes.values())
        return self._known[shape]
