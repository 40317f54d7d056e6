"""What a look of LowNodeUtilization and HighNodeUtilization costs in a big cluster.

Run by hand, on a quiet machine: `python -m tests.benchmarks.utilization`. What counts is the
longest stretch without a pause: for as long nothing else happens in the daemon.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from reactive_descheduler.api.eviction import TAKEN, Candidate, Rejection, Verdict
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.store import Store
from reactive_descheduler.config.corrections import ALL, NONE, Corrections
from reactive_descheduler.config.evictor import DefaultEvictorArguments
from reactive_descheduler.framework.profile import ProfileView
from reactive_descheduler.framework.strategy import Evaluation, Strategy
from reactive_descheduler.guardrails import build_evictor_filter
from reactive_descheduler.strategies import IN_TREE
from tests.builders import make_node, make_pod, node_view, owner, pod_view

NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)
SIZES = ((500, 10_000), (5000, 100_000))
WORKLOADS = 2000
ROUNDS = 3
ARGUMENTS: Mapping[str, Mapping[str, object]] = {
    "LowNodeUtilization": {
        "thresholds": {"cpu": 30, "memory": 40},
        "targetThresholds": {"cpu": 70, "memory": 80},
    },
    "HighNodeUtilization": {"thresholds": {"cpu": 25, "memory": 25}},
}
EVICTOR = DefaultEvictorArguments.read({"nodeFit": True})
ZONES = 3


def main() -> None:
    gc.set_threshold(10_000, 20, 100)  # as the running program has it
    print(f"{'':44}{'whole, ms':>10}{'stretch, ms':>12}{'offered':>9}{'refused':>9}")
    for nodes, pods in SIZES:
        lister = Lister(filled(nodes, pods))
        for name in ARGUMENTS:
            for told, corrections in (("all", ALL), ("none", NONE)):
                strategy = built(name, corrections)
                found = [look(strategy, view_of(lister, corrections)) for _ in range(ROUNDS)]
                whole, stretch, offered, refused = min(found)
                print(
                    f"{f'{name} {told}, {nodes} nodes':44}{whole * 1000:10.0f}"
                    f"{stretch * 1000:12.1f}{offered:9}{refused:9}"
                )


def filled(nodes: int, pods: int) -> Store:
    """Return a cluster whose nodes are used from hardly to fully."""
    chance = random.Random(1)
    store = Store()
    for place in range(nodes):
        store.put(node_view(make_node(f"n{place:05}", labels={"zone": f"z{place % ZONES}"})))
    workloads = [workload(place, chance) for place in range(WORKLOADS)]
    crowded = sorted(chance.triangular(0, nodes, nodes) for _ in range(pods))
    for place, node in enumerate(crowded):
        pod = msgspec.structs.replace(
            workloads[place % WORKLOADS],
            name=f"p{place:06}",
            uid=f"u{place:06}",
            node_name=f"n{min(int(node), nodes - 1):05}",
        )
        store.put(pod)
    return store


def workload(place: int, chance: random.Random) -> Pod:
    """Return a Pod of a workload; one in ten spreads over zones, one in ten keeps apart."""
    labels = {"app": f"app-{place}"}
    selector = {"matchLabels": labels}
    kind = chance.randrange(10)
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return pod_view(
        make_pod(
            "p",
            namespace=f"team-{place % 50}",
            labels=labels,
            owners=[owner(f"app-{place}")],
            requests={
                "cpu": f"{chance.choice((50, 100, 200, 400))}m",
                "memory": f"{chance.choice((128, 256, 512))}Mi",
            },
            priority=chance.choice((None, 0, 100)),
            spread=[{**spread, "labelSelector": selector}] if kind == 0 else (),
            affinity=apart if kind == 1 else None,
        )
    )


def built(name: str, corrections: Corrections) -> Strategy:
    known = next(each for each in IN_TREE if each.spec.name == name)
    arguments = known.spec.arguments.read(dict(ARGUMENTS[name]))
    return known.strategy(arguments, profile=0, corrections=corrections, evictor=EVICTOR)


def view_of(lister: Lister, corrections: Corrections) -> ProfileView:
    filters = build_evictor_filter(
        EVICTOR, priority_threshold=2_000_000_000, corrections=corrections
    )
    return ProfileView(filters, lister, {node.name: node for node in lister.nodes()}, NOW)


def look(strategy: Strategy, view: ProfileView) -> tuple[float, float, int, int]:
    """Return how long it took, the longest stretch, and how many were offered and refused."""
    evaluation: Evaluation = strategy.evaluate(view, next(iter(strategy.keys_of(view.lister))))
    offered = refused = 0
    longest = 0.0
    verdict: Verdict | None = None
    began = resumed = time.perf_counter()
    while True:
        try:
            said = evaluation.send(verdict)
        except StopIteration:
            ended = time.perf_counter()
            return ended - began, max(longest, ended - resumed), offered, refused
        verdict = TAKEN if isinstance(said, Candidate) else None
        offered += isinstance(said, Candidate)
        refused += isinstance(said, Rejection)
        if not isinstance(said, Candidate | Rejection):
            now = time.perf_counter()
            longest = max(longest, now - resumed)
            resumed = now


if __name__ == "__main__":
    main()
