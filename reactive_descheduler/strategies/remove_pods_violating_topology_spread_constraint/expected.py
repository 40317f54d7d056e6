"""What would be once the Pods that were offered stand where they would fit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import TypeVar, cast

from msgspec.structs import replace

from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Kin, Pod
from reactive_descheduler.api.scheduling.fit import FitRules, misfit
from reactive_descheduler.api.scheduling.pod_affinity import needed_by
from reactive_descheduler.api.scheduling.spread import (
    DomainCounts,
    Spread,
    shifted,
    spread_misfit,
)
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.promised import PromisedPods

T = TypeVar("T")


class Expected:
    """What some constraints of a namespace would count. A `SpreadOccupancy`.

    It rests on what was counted at first, so that a Pod that is taken on the way is not counted off
    twice.
    """

    def __init__(
        self, namespace: str, counts: Mapping[Spread, DomainCounts], lister: Lister
    ) -> None:
        self._namespace = namespace
        self._counts = dict(counts)
        self._lister = lister
        self._known: dict[Hashable, object] = {}

    def move(self, pod: Pod, node_name: str) -> None:
        """Count the Pod on this node, no longer on its own."""
        there = replace(pod, node_name=node_name)
        self._known.clear()
        for spread, counted in self._counts.items():
            self._counts[spread] = shifted(
                counted, spread, self._namespace, gone=(pod,), come=(there,)
            )

    def spread_counts(self, _namespace: str, spread: Spread, /) -> DomainCounts:
        return self._counts[spread]

    def pod(self, uid: str, /) -> Pod | None:
        return self._lister.pod(uid)

    def has_promise(self, uid: str, /) -> bool:
        return self._lister.has_promise(uid)

    def promised_kins(self, namespace: str, /) -> Collection[Kin]:
        return self._lister.promised_kins(namespace)

    def promised_of(self, kin: Kin, /) -> Collection[Pod]:
        return self._lister.promised_of(kin)

    def once(self, key: Hashable, make: Callable[[], T], /) -> T:
        if key not in self._known:
            self._known[key] = make()
        return cast(T, self._known[key])


class Room:
    """Whether a node would take a Pod.

    `books`: whether those who were offered take room where they would fit. The room that they leave
    counts as taken all the same.
    """

    def __init__(self, rules: FitRules, lister: Lister, expected: Expected, *, books: bool) -> None:
        self._rules = rules._replace(spread=False)
        self._reads_spread = rules.spread
        self._expected = expected
        self._lister = lister
        self._promised: PromisedPods | None = None
        if books:
            self._lister, self._promised = lister.promising()

    def move(self, pod: Pod, node_name: str) -> None:
        if self._promised is not None:
            self._promised.promise(pod, node_name)

    def is_needed(self, pod: Pod) -> bool:
        """Say whether the Pod has to stay for one that is to come, whatever its siblings may do."""
        return needed_by(pod, self._lister) is not None

    def takes(self, pod: Pod, node: Node) -> bool:
        if misfit(pod, node, self._lister, self._rules) is not None:
            return False
        return not self._reads_spread or (
            spread_misfit(pod, node, self._expected, leaving=pod) is None
        )
