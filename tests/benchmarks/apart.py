"""What RemovePodsViolatingInterPodAntiAffinity costs where thousands of Pods are in conflict.

`./scripts/bench apart`: all Pods of one namespace, on 5,000 nodes; the daemon evicts some, one at a
time, whose replacements keep apart. Milliseconds of processor time: of the first look, of each
request with all that follows from it, and of the longest stretch without giving way. Fails if that
takes over 100 ms.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from reactive_descheduler.cache.store import Store
from tests.benchmarks.driven import DrivenCore
from tests.builders import make_namespace, make_node, make_pod, node_view, owner, pod_view, view

NODES, ZONES = 5_000, 3
REQUESTS = 30
MOST_STRETCH = 0.1
HOST, ZONE = "kubernetes.io/hostname", "zone"
NAME = "RemovePodsViolatingInterPodAntiAffinity"
PROFILE = {
    "name": "p",
    "pluginConfig": [{"name": "DefaultEvictor", "args": {"nodeFit": False}}],
    "plugins": {"deschedule": {"enabled": [NAME]}},
}


class Case(NamedTuple):
    pods: int
    replicas: int
    """Of each workload."""
    apart: int
    """In conflict, about."""
    key: str = HOST
    protected: bool = False
    """None of them may go."""


CASES = (
    Case(1_000, 10, 1_000),
    Case(10_000, 10, 1_000),
    Case(10_000, 10, 10_000),
    Case(10_000, 10_000, 10_000),
    Case(1_000, 100, 1_000, ZONE),
    Case(10_000, 100, 10_000, ZONE),
    Case(10_000, 10_000, 10_000, ZONE),
    Case(50_000, 10, 10_000),
    Case(50_000, 10, 50_000),
    Case(50_000, 1_000, 50_000, ZONE),
    Case(10_000, 10, 10_000, protected=True),
)


def main() -> int:
    print(
        f"{'Pods':>7}{'replicas':>9}{'apart':>7} {'key':24}{'look':>8}{'stretch':>9}"
        f"{'a request':>11}{'stretch':>9}  of"
    )
    worst = 0.0
    for case in CASES:
        worst = max(worst, measure(case))
    print(f"longest stretch {worst * 1e3:.0f} ms (100)")
    return 1 if worst > MOST_STRETCH else 0


def measure(case: Case) -> float:
    driven = DrivenCore([PROFILE], filled(case))
    began = time.process_time()
    driven.start()
    look = time.process_time() - began
    _, first = driven.stretches.worst()
    began = time.process_time()
    asked = 0
    with driven.watched() as stretches:
        for _ in range(REQUESTS):
            if (entry := driven.request()) is None:
                break
            asked += 1
            driven.replace(driven.grant(entry), "")
            driven.drive()
    took = (time.process_time() - began) / max(asked, 1)
    what, longest = stretches.worst()
    key = case.key + (", protected" if case.protected else "")
    print(
        f"{case.pods:7}{case.replicas:9}{case.apart:7} {key:24}{look * 1e3:8.0f}{first * 1e3:9.1f}"
        f"{took * 1e3:11.1f}{longest * 1e3:9.1f}  {what} ({asked} requests)",
        flush=True,
    )
    return max(first, longest)


def filled(case: Case) -> Store:
    store = Store()
    store.put(view(make_namespace("default")))
    for number in range(NODES):
        labels = {ZONE: f"z{number % ZONES}", HOST: f"n{number:04}"}
        store.put(node_view(make_node(f"n{number:04}", labels=labels)))
    for number, place in enumerate(places(case)):
        workload = number // case.replicas
        if number % case.replicas == 0:
            template = pod_view(manifest(workload, case))
        name = f"w{workload}_{number}"
        store.put(
            msgspec.structs.replace(
                template, name=name, uid=f"u-{name}", node_name=f"n{place % NODES:04}"
            )
        )
    return store


def places(case: Case) -> Iterator[int]:
    """Yield the node of each Pod: two of a workload on each where they are in conflict.

    With a key that all nodes of a zone share they are in any case.
    """
    for number in range(case.pods):
        if number < case.apart and case.key == HOST:
            yield number // 2
        else:
            yield number


def manifest(workload: int, case: Case) -> dict[str, object]:
    labels = {"app": f"w{workload}"}
    term = {"topologyKey": case.key, "labelSelector": {"matchLabels": labels}}
    return make_pod(
        "p",
        node="n",
        labels=labels,
        owners=[owner(f"w{workload}")],
        requests={"cpu": "10m", "memory": "16Mi"},
        priority=2_000_000_000 if case.protected else None,
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    )


if __name__ == "__main__":
    sys.exit(main())
