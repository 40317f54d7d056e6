"""Where the Pods of each namespace and template stand, for what is counted by template: topology
spread."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import count
from typing import NamedTuple

from reactive_descheduler.api.pod import Pod, PodTemplate
from reactive_descheduler.api.scheduling.spread import (
    DomainCounts,
    Domains,
    Spread,
    is_counted,
    least_of,
)
from reactive_descheduler.cache.counts import takes_room
from reactive_descheduler.cache.spread_groups import SpreadGroups

_COUNTS = 4096
"""How many counts are remembered."""


class Placed(NamedTuple):
    """The Pods of one namespace and template that take room on nodes."""

    pods: dict[str, None]
    """UIDs."""
    counted: dict[str, int]
    """By node, those that do not terminate."""


class _Count(NamedTuple):
    placements: int
    domains: Domains
    counts: DomainCounts


class Placements:
    """Follows the Pods."""

    def __init__(self) -> None:
        self._placed: dict[str, dict[PodTemplate, Placed]] = {}
        self._moves = count(1)
        self._versions: dict[str, int] = {}
        self.groups = SpreadGroups()
        self._counts: dict[tuple[str, Spread], _Count] = {}

    def update(self, old: Pod | None, new: Pod | None) -> None:
        """Follow one change of one Pod."""
        before = old if old is not None and takes_room(old) else None
        after = new if new is not None and takes_room(new) else None
        if before is not None and after is not None and before.template is after.template:
            placed = self._placed[after.namespace][after.template]
            self._count(before, placed, -1)
            self._count(after, placed, 1)
            return
        if before is not None:
            self._leave(before)
        if after is not None:
            self._enter(after)

    def templates(self, namespace: str) -> Collection[PodTemplate]:
        """Return the templates of which a namespace has Pods on nodes. A live view."""
        return self._placed.get(namespace, {}).keys()

    def uids(self, namespace: str, template: PodTemplate) -> Collection[str]:
        """Return the Pods of a template that take room on nodes, in no particular order."""
        placed = self._placed.get(namespace, {}).get(template)
        return placed.pods.keys() if placed is not None else ()

    def standing(self, namespace: str, template: PodTemplate) -> Mapping[str, int]:
        """Return how many Pods of a template that do not terminate each node has. A live view."""
        placed = self._placed.get(namespace, {}).get(template)
        return placed.counted if placed is not None else {}

    def counts(self, namespace: str, spread: Spread, domains: Domains) -> DomainCounts:
        """Return what a constraint counts in a namespace; `domains` are those of its shape."""
        version = self._versions.get(namespace, 0)
        known = self._counts.get((namespace, spread))
        if known is not None and known.placements == version and known.domains is domains:
            return known.counts
        counts: dict[str, int] = {}
        placed = self._placed.get(namespace, {})
        for template in self.groups.selected(namespace, spread):
            for node, pods in placed[template].counted.items():
                value = domains.of_node.get(node)
                if value is not None:
                    counts[value] = counts.get(value, 0) + pods
        found = DomainCounts(domains, counts, least_of(domains, counts, spread.min_domains))
        if len(self._counts) >= _COUNTS:
            self._counts.clear()
        self._counts[namespace, spread] = _Count(version, domains, found)
        return found

    def snapshot(self) -> Mapping[str, Mapping[PodTemplate, Placed]]:
        """Return what is known of all, for comparison with a recount."""
        return {
            namespace: {
                template: Placed(dict(each.pods), dict(each.counted))
                for template, each in templates.items()
            }
            for namespace, templates in self._placed.items()
        }

    @staticmethod
    def recount(pods: Iterable[Pod]) -> Mapping[str, Mapping[PodTemplate, Placed]]:
        """Return what `snapshot` must be for these Pods, worked out from scratch."""
        recounted = Placements()
        for pod in pods:
            recounted.update(None, pod)
        return recounted.snapshot()

    def _enter(self, pod: Pod) -> None:
        templates = self._placed.setdefault(pod.namespace, {})
        placed = templates.get(pod.template)
        if placed is None:
            placed = templates[pod.template] = Placed({}, {})
            self.groups.add(pod.namespace, pod.template)
        placed.pods[pod.uid] = None
        self._count(pod, placed, 1)

    def _leave(self, pod: Pod) -> None:
        templates = self._placed[pod.namespace]
        placed = templates[pod.template]
        del placed.pods[pod.uid]
        self._count(pod, placed, -1)
        if not placed.pods:
            del templates[pod.template]
            self.groups.remove(pod.namespace, pod.template)
        if not templates:
            del self._placed[pod.namespace], self._versions[pod.namespace]

    def _count(self, pod: Pod, placed: Placed, step: int) -> None:
        self._versions[pod.namespace] = next(self._moves)
        if not is_counted(pod):
            return
        left = placed.counted.get(pod.node_name, 0) + step
        if left:
            placed.counted[pod.node_name] = left
        else:
            del placed.counted[pod.node_name]
