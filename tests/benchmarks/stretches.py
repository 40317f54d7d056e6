"""For how long the daemon gives way to nobody: all ten strategies in a cluster of 150,000 Pods.

`./scripts/bench stretches [--pods N] [--requests N]`: the longest stretches of processor time, in
milliseconds, of the first look, of single events after it, of evictions that are granted and
replaced, and of a reload of the policy. Fails if one takes over 100 ms.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import msgspec

from reactive_descheduler.api.node import Node
from reactive_descheduler.api.surroundings import Namespace
from reactive_descheduler.cache.store import Store
from tests.benchmarks.driven import DrivenCore, Stretches
from tests.benchmarks.plan import PODS_A_NODE, ZONES, filled
from tests.builders import make_pod, owner, pod_view

PODS = 150_000
REQUESTS = 30
CROWD = 500
"""Pods on one node that goes."""
MOST_STRETCH = 0.1
SHOWN = 4
DESCHEDULE = (
    "RemovePodsViolatingNodeTaints",
    "RemovePodsViolatingNodeAffinity",
    "RemovePodsViolatingInterPodAntiAffinity",
    "RemovePodsHavingTooManyRestarts",
    "PodLifeTime",
    "RemoveFailedPods",
)
BALANCE = ("RemoveDuplicates", "RemovePodsViolatingTopologySpreadConstraint")
PROFILE = {
    "name": "p",
    "pluginConfig": [
        {"name": "DefaultEvictor", "args": {"nodeFit": True}},
        {
            "name": "RemovePodsViolatingNodeAffinity",
            "args": {"nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]},
        },
        {"name": "RemovePodsHavingTooManyRestarts", "args": {"podRestartThreshold": 100}},
        {"name": "PodLifeTime", "args": {"maxPodLifeTimeSeconds": 30_000_000}},
        {
            "name": "LowNodeUtilization",
            "args": {"thresholds": {"cpu": 15}, "targetThresholds": {"cpu": 25}},
        },
    ],
    "plugins": {
        "deschedule": {"enabled": list(DESCHEDULE)},
        "balance": {"enabled": [*BALANCE, "LowNodeUtilization"]},
    },
}
PACKING = {
    "name": "q",
    "pluginConfig": [
        {"name": "DefaultEvictor", "args": {"nodeFit": True}},
        {"name": "HighNodeUtilization", "args": {"thresholds": {"cpu": 5}}},
    ],
    "plugins": {"balance": {"enabled": ["HighNodeUtilization"]}},
}
"""What packs fights with what spreads: a profile of its own, and nothing is below its threshold."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=PODS)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    arguments = parser.parse_args()
    pods: int = arguments.pods
    requests: int = arguments.requests
    store = crowded(pods)
    driven = DrivenCore([PROFILE, PACKING], store)
    worst = 0.0

    def show(what: str, step: Callable[[], None]) -> None:
        nonlocal worst
        with driven.watched() as stretches:
            step()
        worst = max(worst, stretches.worst()[1])
        print(f"{what:32} {told(stretches)}", flush=True)

    some = next(each for each in store.nodes() if each.name == "n00010")
    space = next(each for each in store.all("Namespace") if isinstance(each, Namespace))
    show("first look", driven.start)
    for which in ("first", "next"):
        show(f"{which} label of a node", lambda: relabel(driven, some, which))  # noqa: B023
        show(f"{which} label of a namespace", lambda: relabel(driven, space, which))  # noqa: B023
        show(f"{which} node not ready", lambda: unready(driven, some))
    show(f"{requests} evictions, replaced", lambda: evict(driven, requests, pods // PODS_A_NODE))
    show(f"node with {CROWD} Pods gone", lambda: remove(driven, "n00020"))
    show("reload of the policy", driven.reload)
    print(f"longest stretch {worst * 1e3:.0f} ms (100)")
    return 1 if worst > MOST_STRETCH else 0


def told(stretches: Stretches) -> str:
    longest = sorted(stretches.longest.items(), key=lambda each: -each[1])[:SHOWN]
    return ", ".join(f"{seconds * 1e3:.1f} {what}" for what, seconds in longest)


def crowded(pods: int) -> Store:
    """Return the cluster of `plan`, with workloads that keep apart and a node full of Pods."""
    store = filled(pods - 3 * CROWD)
    host = "kubernetes.io/hostname"
    for number in range(2 * CROWD):
        labels = {"app": f"apart-{number // 10}"}
        term = {"topologyKey": host, "labelSelector": {"matchLabels": labels}}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        manifest = make_pod(
            f"apart-{number}",
            namespace="team-1",
            node=f"n{100 + number // 2:05}",
            labels=labels,
            owners=[owner(f"apart-{number // 10}")],
            requests={"cpu": "50m"},
            affinity={"podAntiAffinity": required},
        )
        store.put(pod_view(manifest))
    for number in range(CROWD):
        labels = {"app": f"crowd-{number // 10}"}
        spread = {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": labels},
        }
        manifest = make_pod(
            f"crowd-{number}",
            namespace=f"team-{number % 50}",
            node="n00020",
            labels=labels,
            owners=[owner(f"crowd-{number // 10}")],
            requests={"cpu": "1m"},
            spread=[spread],
        )
        store.put(pod_view(manifest))
    return store


def relabel(driven: DrivenCore, found: Node | Namespace, value: str) -> None:
    labels = {**found.labels, "zone": f"z-{value}", "is": value}
    driven.put(msgspec.structs.replace(found, labels=labels))
    driven.drive()


def unready(driven: DrivenCore, found: Node) -> None:
    for ready in (False, True):
        driven.put(msgspec.structs.replace(found, ready=ready))
        driven.drive()


def evict(driven: DrivenCore, requests: int, nodes: int) -> None:
    for number in range(requests):
        if (entry := driven.request()) is None:
            return
        driven.replace(driven.grant(entry), f"n{(number * ZONES + 1) % nodes:05}")
        driven.drive()


def remove(driven: DrivenCore, name: str) -> None:
    """Let a node go, and its Pods one after the other, as the controllers do it."""
    node = driven.core.lister.node(name)
    assert node is not None
    pods = driven.core.lister.pods_on(name)
    driven.delete(node)
    for pod in pods:
        driven.delete(pod)
    driven.drive()


if __name__ == "__main__":
    sys.exit(main())
