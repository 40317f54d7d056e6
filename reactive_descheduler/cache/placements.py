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
    selects,
)
from reactive_descheduler.cache.counts import takes_room

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
        self._templates: dict[str, int] = {}
        self._counts: dict[tuple[str, Spread], _Count] = {}

    def update(self, old: Pod | None, new: Pod | None) -> None:
        """Follow one change of one Pod."""
        if old is not None and takes_room(old):
            self._leave(old)
        if new is not None and takes_room(new):
            self._enter(new)

    def namespaces(self) -> Collection[str]:
        return self._placed.keys()

    def templates(self, namespace: str) -> Collection[PodTemplate]:
        """Return the templates of which a namespace has Pods on nodes. A live view."""
        return self._placed.get(namespace, {}).keys()

    def templates_version(self, namespace: str) -> int:
        """Return a number that is another one after `templates` has changed."""
        return self._templates.get(namespace, 0)

    def uids(self, namespace: str, template: PodTemplate) -> Collection[str]:
        """Return the Pods of a template that take room on nodes, in no particular order."""
        placed = self._placed.get(namespace, {}).get(template)
        return placed.pods.keys() if placed is not None else ()

    def counts(
        self, namespace: str, spread: Spread, domains: Domains, templates: Iterable[PodTemplate]
    ) -> DomainCounts:
        """Return what a constraint counts in a namespace.

        Args:
            domains: those of the constraint's shape.
            templates: at least those of the namespace that the constraint selects.
        """
        version = self._versions.get(namespace, 0)
        known = self._counts.get((namespace, spread))
        if known is not None and known.placements == version and known.domains is domains:
            return known.counts
        counts: dict[str, int] = {}
        placed = self._placed.get(namespace, {})
        for template in templates:
            if selects(spread, template):
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
            self._templates[pod.namespace] = next(self._moves)
        placed.pods[pod.uid] = None
        self._count(pod, placed, 1)

    def _leave(self, pod: Pod) -> None:
        templates = self._placed[pod.namespace]
        placed = templates[pod.template]
        del placed.pods[pod.uid]
        self._count(pod, placed, -1)
        if not placed.pods:
            del templates[pod.template]
            self._templates[pod.namespace] = next(self._moves)
        if not templates:
            for known in (self._placed, self._versions, self._templates):
                del known[pod.namespace]

    def _count(self, pod: Pod, placed: Placed, step: int) -> None:
        self._versions[pod.namespace] = next(self._moves)
        if not is_counted(pod):
            return
        left = placed.counted.get(pod.node_name, 0) + step
        if left:
            placed.counted[pod.node_name] = left
        else:
            del placed.counted[pod.node_name]
