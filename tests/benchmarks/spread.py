"""What topology spread costs on a big cluster: a Pod's event, a node's, a whole pass.

Processor time. Run by hand: `python -m tests.benchmarks.spread`.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count, cycle

from reactive_descheduler.api.changes import Change, Key
from reactive_descheduler.api.eviction import TAKEN, Candidate
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.store import Store
from reactive_descheduler.config.corrections import ALL, NONE, Corrections
from reactive_descheduler.config.evictor import DefaultEvictorArguments
from reactive_descheduler.framework.cycle import CycleNodes
from reactive_descheduler.framework.profile import ProfileView
from reactive_descheduler.framework.strategy import Evaluation, Scope, Strategy
from reactive_descheduler.guardrails import build_evictor_filter
from reactive_descheduler.strategies.remove_pods_violating_topology_spread_constraint import (
    RemovePodsViolatingTopologySpreadConstraint,
    TopologySpreadArguments,
)
from tests.builders import Manifest, make_node, make_pod, owner, view

NODES = 5_000
PODS = 100_000
REPLICAS = 10
ROUNDS = 7
NOW = datetime(2026, 6, 1, tzinfo=UTC)
ZONE, HOST = "zone", "kubernetes.io/hostname"
UNEVEN = {"zones": 300, "hosts": 300, "stuck": 300, "large": 10_000}
"""Workloads with these numbers of Pods that have grown uneven; `large` by one host."""

_versions = count(2)

Result = tuple[int, float]
"""Candidates, and milliseconds of the longest stretch without a pause."""


def main() -> None:
    store = Store()
    for found in cluster():
        store.put(view(found))
    gc.collect()
    gc.freeze()  # as the running program has it
    print(f"{NODES} nodes, {PODS} Pods, mostly {REPLICAS} a workload, all in one namespace")
    print(f"hard constraints over zones and hosts; median and worst of {ROUNDS}")
    for name, corrections in (("all corrections", ALL), ("none", NONE)):
        print(name)
        measure(Trial(store, corrections))


class Trial:
    """The strategy on one cluster, under some corrections."""

    def __init__(self, store: Store, corrections: Corrections) -> None:
        evictor = DefaultEvictorArguments()
        self._filters = build_evictor_filter(
            evictor, priority_threshold=2_000_000_000, corrections=corrections
        )
        self.strategy = RemovePodsViolatingTopologySpreadConstraint(
            TopologySpreadArguments(), profile=0, corrections=corrections, evictor=evictor
        )
        self._store = store
        self.lister = Lister(store)
        self._cycle = CycleNodes(None, {node.name: node for node in self.lister.nodes()})
        self._changes: list[Change] = []

    def put(self, manifest: Manifest) -> None:
        """Let the cluster change; `follow` takes it up."""
        metadata = manifest["metadata"]
        assert isinstance(metadata, dict)
        metadata["resourceVersion"] = str(next(_versions))
        self._changes = self._store.put(view(manifest))

    def forget_nodes(self) -> None:
        """Let all that is remembered of nodes be void, as after a label moved."""
        self._store.topology.update(None, None)

    def keys(self) -> list[Key]:
        return [
            key
            for change in self._changes
            for key in self.strategy.keys_for(Scope.CONSTRAINT, change, self.lister)
        ]

    def follow(self) -> Result:
        """Find the keys of what changed, and evaluate them."""
        results = [self.run(_evaluation(self.strategy, key)) for key in self.keys()]
        stretches = [longest for _, longest in results]
        return sum(found for found, _ in results), max(stretches, default=0.0)

    def run(self, evaluate: Callable[[ProfileView], Evaluation]) -> Result:
        generator = evaluate(ProfileView(self._filters, self.lister, self._cycle, NOW))
        found, verdict, longest, last = 0, None, 0.0, time.process_time()
        while True:
            try:
                said = generator.send(verdict)
            except StopIteration:
                return found, max(longest, time.process_time() - last) * 1e3
            now = time.process_time()
            longest, last, verdict = max(longest, now - last), now, None
            if isinstance(said, Candidate):
                found, verdict = found + 1, TAKEN


def _evaluation(strategy: Strategy, key: Key) -> Callable[[ProfileView], Evaluation]:
    return lambda seen: strategy.evaluate(seen, key)


def measure(trial: Trial) -> None:
    for what, name, number in (
        ("a Pod of an even workload changes", "w7", 70),
        ("  of one with 10,000, uneven by a host", "large", 3),
        ("  of 300, uneven over zones", "zones", 3),
        ("  of 300, uneven over hosts", "hosts", 3),
        ("  of 300 with nowhere to go", "stuck", 3),
    ):
        phases = cycle(["Pending", "Running"])
        show(
            what,
            lambda: trial.put(pod(name, number, phase=next(phases))),  # noqa: B023
            trial.follow,
        )
    revisions = count()
    show(
        "a new template in the namespace",
        lambda: trial.put(pod("w9", 90, revision=str(next(revisions)))),
        trial.follow,
    )
    even = Key(0, trial.strategy.NAME, ("default", "app=w7"))
    show(
        "an even workload after a node came",
        trial.forget_nodes,
        lambda: trial.run(_evaluation(trial.strategy, even)),
    )
    cordons = cycle([True, False])
    show(
        "keys of a node that is not ready (their number)",
        lambda: trial.put(make_node(node(1), labels={ZONE: "z1"}, ready=not next(cordons))),
        lambda: (len(trial.keys()), 0.0),
    )
    show("whole pass", trial.forget_nodes, lambda: trial.run(trial.strategy.sweep), rounds=2)


def show(
    what: str,
    prepare: Callable[[], None],
    step: Callable[[], Result],
    *,
    rounds: int = ROUNDS,
) -> None:
    times, longest, found = [], 0.0, 0
    for _ in range(rounds):
        prepare()
        began = time.process_time()
        found, stretch = step()
        times.append((time.process_time() - began) * 1e3)
        longest = max(longest, stretch)
    print(
        f"  {what:48}{found:7} {statistics.median(times):9.2f} ms {max(times):9.2f} ms,"
        f" longest stretch {longest:6.1f} ms",
        flush=True,
    )


def cluster() -> Iterator[Manifest]:
    room = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    for number in range(NODES):
        yield make_node(node(number), labels={ZONE: f"z{number % 3}"}, allocatable=room)
    for name, pods in UNEVEN.items():
        for number in range(pods):
            yield pod(name, number)
    for number in range(PODS - sum(UNEVEN.values())):
        yield pod(f"w{number // REPLICAS}", number)


def node(number: int) -> str:
    return f"node-{number % NODES:04}"


def place(name: str, number: int) -> str:
    match name:
        case "zones" | "stuck":
            return node(3 * number)  # all in one zone
        case "hosts":
            return node(number // 3)
        case "large":
            return node(min(number, 9_990))
    return node(number)


def pod(name: str, number: int, *, phase: str = "Running", revision: str = "") -> Manifest:
    return make_pod(
        f"{name}-{number}",
        node=place(name, number),
        labels={"app": name, "managed-by": "helm"} | ({"rev": revision} if revision else {}),
        owners=[owner(name)],
        requests={"cpu": "15900m" if name == "stuck" else "100m", "memory": "64Mi"},
        phase=phase,
        spread=[
            {
                "topologyKey": key,
                "maxSkew": 1,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": name}},
            }
            for key in (ZONE, HOST)
        ],
    )


if __name__ == "__main__":
    main()
