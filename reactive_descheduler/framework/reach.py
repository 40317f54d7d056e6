"""Which nodes of the cycle Pods accept by taints and labels alone, remembered until a node differs.

A cluster has few answers: most Pods ask for nothing. Pods that come and go void none of them.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import NamedTuple

from reactive_descheduler.api.eviction import Pause
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import PodTemplate
from reactive_descheduler.api.scheduling.node_affinity import AffinityError, matches_node
from reactive_descheduler.api.scheduling.tolerations import HARD_EFFECTS, untolerated
from reactive_descheduler.api.terms import NodeSelector, Toleration

from .strategy import View

_NODES_AT_ONCE = 500
"""After how many a search gives way."""


class Wishes(NamedTuple):
    """What in a template decides which nodes it accepts."""

    tolerations: tuple[Toleration, ...]
    node_selector: tuple[tuple[str, str], ...]
    required_node_affinity: NodeSelector | None


def wishes(template: PodTemplate) -> Wishes:
    return Wishes(
        template.tolerations,
        tuple(sorted(template.node_selector.items())),
        template.required_node_affinity,
    )


class Reach:
    """Finds the nodes that accept and are accepted, as upstream's RemoveDuplicates does: an
    affinity that cannot be read accepts.

    `cordoned`: whether cordoned nodes are among them.
    """

    def __init__(self, *, cordoned: bool) -> None:
        self._cordoned = cordoned
        self._found: dict[Wishes, tuple[Node, ...]] = {}
        self._at: tuple[Mapping[str, Node] | None, int] = (None, -1)

    def nodes(self, view: View, template: PodTemplate) -> Generator[Pause, None, tuple[Node, ...]]:
        """Return the nodes for Pods of a template, by name."""
        at = view.nodes, view.lister.nodes_version
        if self._at[0] is not at[0] or self._at[1] != at[1]:
            self._at = at
            self._found.clear()
        key = wishes(template)
        known = self._found.get(key)
        if known is None:
            found = []
            for place, node in enumerate(view.nodes.values(), 1):
                if place % _NODES_AT_ONCE == 0:
                    yield Pause()
                if self._accepts(template, node):
                    found.append(node)
            known = tuple(found)
            # It may have given way meanwhile.
            if self._at[0] is at[0] and self._at[1] == view.lister.nodes_version == at[1]:
                self._found[key] = known
        return known

    def _accepts(self, template: PodTemplate, node: Node) -> bool:
        if node.opaque or (node.unschedulable and not self._cordoned):
            return False
        if untolerated(template.tolerations, node.taints, HARD_EFFECTS):
            return False
        try:
            return matches_node(template, node)
        except AffinityError:
            return True
