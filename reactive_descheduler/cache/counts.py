"""Sums kept up to date change by change, each with a recount from scratch for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from reactive_descheduler.api.pod import Pod

Amounts = Mapping[str, int]
_NOTHING: Amounts = {}


class NodeLoad(NamedTuple):
    """What the active Pods of a node ask for, in nanos, without zeros; and how many they are."""

    requests: Amounts
    pods: int


class NodeRequests:
    """Requests and number of the active Pods on each node (spec/strategies 2.8)."""

    def __init__(self) -> None:
        self._requests: dict[str, dict[str, int]] = {}
        self._pods: dict[str, int] = {}

    def update(self, old: Pod | None, new: Pod | None) -> None:
        """Follow one change of one Pod."""
        if old is not None and takes_room(old):
            self._add(old, -1)
        if new is not None and takes_room(new):
            self._add(new, 1)

    def requests(self, node_name: str) -> Amounts:
        """Return sums by resource name; a name that is missing stands for zero. A live view."""
        return self._requests.get(node_name, _NOTHING)

    def pods(self, node_name: str) -> int:
        return self._pods.get(node_name, 0)

    def snapshot(self) -> Mapping[str, NodeLoad]:
        """Return every node with an active Pod, for comparison with a recount."""
        return {
            name: NodeLoad(dict(self._requests.get(name, _NOTHING)), pods)
            for name, pods in self._pods.items()
        }

    @staticmethod
    def recount(pods: Iterable[Pod]) -> Mapping[str, NodeLoad]:
        """Return what `snapshot` must be for these Pods, worked out from scratch."""
        on_nodes: dict[str, list[Pod]] = {}
        for pod in pods:
            if takes_room(pod):
                on_nodes.setdefault(pod.node_name, []).append(pod)
        return {
            name: NodeLoad(total_requests(found), len(found)) for name, found in on_nodes.items()
        }

    def _add(self, pod: Pod, sign: int) -> None:
        name = pod.node_name
        requests = self._requests.setdefault(name, {})
        for resource, amount in pod.template.requests.items():
            total = requests.get(resource, 0) + sign * amount
            if total:
                requests[resource] = total
            else:
                requests.pop(resource, None)
        self._pods[name] = self._pods.get(name, 0) + sign
        if not self._pods[name]:
            del self._pods[name], self._requests[name]


def total_requests(pods: Iterable[Pod]) -> dict[str, int]:
    """Return the sum of requests by resource name, without zeros."""
    total: dict[str, int] = {}
    for pod in pods:
        for resource, amount in pod.template.requests.items():
            total[resource] = total.get(resource, 0) + amount
    return {resource: amount for resource, amount in total.items() if amount}


def takes_room(pod: Pod) -> bool:
    """Say whether a Pod counts on some node: bound and neither Succeeded nor Failed."""
    return bool(pod.node_name) and pod.active
