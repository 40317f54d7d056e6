"""The nodes of a cycle: ready, and selected by the policy; none at all when there are fewer than
two.

Upstream skips the whole cycle then (spec/strategies 1.2), so a cluster of one ready node is left
alone.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping

from reactive_descheduler.api.changes import Change
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.selectors import Requirements, parse_selector

LEAST_NODES = 2


class CycleNodes(Mapping[str, Node]):
    """Nodes by name, iterated in order of names; kept by the changes of nodes, so no event walks
    all."""

    def __init__(self, node_selector: str | None, nodes: Mapping[str, Node] | None = None) -> None:
        self._selector: Requirements | None = (
            parse_selector(node_selector) if node_selector else None
        )
        self._nodes: dict[str, Node] = {}
        self._names: list[str] = []
        for node in (nodes or {}).values():
            self._put(node)

    def on_change(self, change: Change) -> bool:
        """Take a node's change; say whether the cycle came to life or went to rest by it."""
        if change.kind != "Node":
            return False
        before = self.alive
        if isinstance(change.old, Node) and not isinstance(change.new, Node):
            self._remove(change.old.name)
        elif isinstance(change.new, Node):
            self._put(change.new)
        return self.alive != before

    @property
    def alive(self) -> bool:
        return len(self._nodes) >= LEAST_NODES

    def __getitem__(self, name: str) -> Node:
        if not self.alive:
            raise KeyError(name)
        return self._nodes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names if self.alive else ())

    def __len__(self) -> int:
        return len(self._nodes) if self.alive else 0

    def _put(self, node: Node) -> None:
        selected = node.ready and (self._selector is None or self._selector.matches(node.labels))
        if not selected:
            self._remove(node.name)
            return
        if node.name not in self._nodes:
            insort(self._names, node.name)
        self._nodes[node.name] = node

    def _remove(self, name: str) -> None:
        if self._nodes.pop(name, None) is not None:
            del self._names[bisect_left(self._names, name)]
