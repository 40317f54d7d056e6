"""What RemoveDuplicates costs on a big cluster: one owner, a node that changes, a whole pass.

Processor time. Run by hand: `python -m tests.benchmarks.duplicates`.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from reactive_descheduler.api.changes import Key
from reactive_descheduler.api.eviction import TAKEN, Candidate
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.store import Store
from reactive_descheduler.config.corrections import ALL, NONE, Corrections
from reactive_descheduler.config.evictor import DefaultEvictorArguments
from reactive_descheduler.framework.cycle import CycleNodes
from reactive_descheduler.framework.profile import ProfileView
from reactive_descheduler.framework.strategy import Evaluation
from reactive_descheduler.guardrails import build_evictor_filter
from reactive_descheduler.strategies.remove_duplicates import DuplicatesArguments, RemoveDuplicates
from tests.builders import Manifest, make_node, make_pod, owner, view

NODES = 5_000
PODS = 100_000
REPLICAS = 10
ROUNDS = 7
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def main() -> None:
    store = Store()
    for found in cluster():
        store.put(view(found))
    gc.collect()
    gc.freeze()  # as the running program has it
    print(f"{NODES} nodes, {PODS} Pods of {REPLICAS} an owner; median and worst of {ROUNDS}")
    for name, corrections in (("all corrections", ALL), ("none", NONE)):
        for node_fit in (False, True):
            print(f"{name}{', node fit' if node_fit else ''}")
            measure(store, corrections, node_fit=node_fit)


def measure(store: Store, corrections: Corrections, *, node_fit: bool) -> None:
    evictor = DefaultEvictorArguments(node_fit=node_fit)
    filters = build_evictor_filter(
        evictor, priority_threshold=2_000_000_000, corrections=corrections
    )
    strategy = RemoveDuplicates(
        DuplicatesArguments(), profile=0, corrections=corrections, evictor=evictor
    )
    lister = Lister(store)
    cycle = CycleNodes(None, {node.name: node for node in lister.nodes()})

    def run(evaluate: Callable[[ProfileView], Evaluation]) -> tuple[int, float, float]:
        """Return candidates, milliseconds, and those of the longest stretch without a pause."""
        generator = evaluate(ProfileView(filters, lister, cycle, NOW))
        found, verdict, longest = 0, None, 0.0
        began = last = time.process_time()
        while True:
            try:
                said = generator.send(verdict)
            except StopIteration:
                now = time.process_time()
                return found, (now - began) * 1e3, max(longest, now - last) * 1e3
            now = time.process_time()
            longest, last, verdict = max(longest, now - last), now, None
            if isinstance(said, Candidate):
                found, verdict = found + 1, TAKEN

    def touch() -> None:
        """Let a Pod elsewhere change: what is remembered of one state is void."""
        store.version += 1

    def show(what: str, evaluate: Callable[[ProfileView], Evaluation], rounds: int) -> None:
        results = []
        for _ in range(rounds):
            touch()
            results.append(run(evaluate))
        times = [took for _, took, _ in results]
        longest = max(stretch for _, _, stretch in results)
        print(
            f"  {what:44}{results[-1][0]:7} candidates {statistics.median(times):9.2f} ms"
            f" {max(times):9.2f} ms, longest stretch {longest:6.1f} ms"
        )

    for what, name in (
        ("even, 10 Pods", "w5"),
        ("two on a node, 10 Pods", "crowd"),
        ("ten on a node, 1000 Pods", "big"),
        ("nowhere to go, 10 Pods", "stuck"),
    ):
        key = Key(0, strategy.NAME, ("default", f"ReplicaSet/{name}"))
        show(what, lambda seen, key=key: strategy.evaluate(seen, key), ROUNDS)  # type: ignore[misc]

    def after_a_node_changed(seen: ProfileView) -> Evaluation:
        store.nodes_version += 1
        return strategy.evaluate(seen, Key(0, strategy.NAME, ("default", "ReplicaSet/crowd")))

    show("two on a node, after a node changed", after_a_node_changed, ROUNDS)
    show("whole pass", strategy.sweep, 2)


def cluster() -> Iterator[Manifest]:
    room = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    for number in range(NODES):
        yield make_node(node(number), labels={"zone": f"z{number % 3}"}, allocatable=room)
    for number in range(PODS - 1020):
        name = f"w{number // REPLICAS}"
        # One owner in a hundred has two Pods together.
        together = number % REPLICAS == 0 and (number // REPLICAS) % 100 == 0
        yield pod(name, number, number + 1 if together else number)
    for number in range(REPLICAS):
        yield pod("crowd", number, number // 2)
    for number in range(1000):
        yield pod("big", number, number // 10)
    for number in range(REPLICAS):
        yield pod("stuck", number, number // 5, cpu="15900m")


def node(number: int) -> str:
    return f"node-{number % NODES:04}"


def pod(name: str, number: int, place: int, cpu: str = "100m") -> Manifest:
    return make_pod(
        f"{name}-{number}",
        node=node(place),
        labels={"app": name},
        owners=[owner(name)],
        requests={"cpu": cpu, "memory": "64Mi"},
    )


if __name__ == "__main__":
    main()
