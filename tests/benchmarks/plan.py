"""What `plan` costs, and the daemon's first look, from 10,000 to 150,000 Pods.

`./scripts/bench plan`: from parsed objects, thirty Pods a node, with taints, affinity, restarts,
duplicates and spread. Seconds of processor time. Fails if the biggest plan takes over 60 s, or if a
stretch of the daemon's look without giving way takes over 100 ms.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import time
from datetime import UTC, datetime

import msgspec

from reactive_descheduler.api.pod import Pod
from reactive_descheduler.app.core import Core, build_core
from reactive_descheduler.app.plan import make_plan
from reactive_descheduler.app.policy import in_tree_registry
from reactive_descheduler.app.snapshot import Snapshot
from reactive_descheduler.app.surroundings import Surroundings
from reactive_descheduler.cache.store import Store
from reactive_descheduler.config.load import load_policy
from reactive_descheduler.config.loaded import LoadedPolicy
from reactive_descheduler.evictor.worker import EvictionAnswer
from reactive_descheduler.kit.clock import ManualClock
from reactive_descheduler.observability.metrics import BuildInfo, Metrics
from reactive_descheduler.strategies import PLUGINS
from tests.builders import (
    make_namespace,
    make_node,
    make_pod,
    node_view,
    owner,
    pod_view,
    taint,
    view,
)

NOW = datetime(2026, 6, 1, tzinfo=UTC)
PODS_A_NODE = 30
REPLICAS = 20
ZONES = 3
SIZES = (10_000, 50_000, 100_000, 150_000)
MOST_SECONDS, MOST_STRETCH = 60.0, 0.1
POLICY = {
    "apiVersion": "descheduler/v1alpha2",
    "kind": "DeschedulerPolicy",
    "profiles": [
        {
            "name": "p",
            "pluginConfig": [
                {"name": "DefaultEvictor", "args": {"nodeFit": True}},
                {
                    "name": "RemovePodsViolatingNodeAffinity",
                    "args": {
                        "nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]
                    },
                },
                {
                    "name": "RemovePodsHavingTooManyRestarts",
                    "args": {"podRestartThreshold": 100},
                },
            ],
            "plugins": {
                "deschedule": {
                    "enabled": [
                        "RemovePodsViolatingNodeTaints",
                        "RemovePodsViolatingNodeAffinity",
                        "RemovePodsHavingTooManyRestarts",
                    ]
                },
                "balance": {
                    "enabled": [
                        "RemoveDuplicates",
                        "RemovePodsViolatingTopologySpreadConstraint",
                    ]
                },
            },
        }
    ],
}


class Nobody:
    async def evict(self, *_args: object, **_named: object) -> EvictionAnswer:
        raise AssertionError("nothing is sent")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, nargs="+", default=SIZES)
    sizes: list[int] = parser.parse_args().pods
    gc.set_threshold(10_000, 20, 100)  # as the running program has it
    policy = load_policy(json.dumps(POLICY), source="policy", plugins=PLUGINS)
    print(
        f"{'nodes':>6}{'Pods':>8}{'plan, s':>9}{'us/Pod':>8}{'evicted':>9}{'refused':>9}"
        f"{'look, s':>9}{'stretch, ms':>13}  on"
    )
    worst, longest = 0.0, 0.0
    for pods in sizes:
        store = filled(pods)
        look, stretch, where = first_look(policy, store)
        began = time.process_time()
        plan = make_plan(policy, snapshot(store), now=NOW)
        took = time.process_time() - began
        worst, longest = max(worst, took), max(longest, stretch)
        print(
            f"{pods // PODS_A_NODE:6}{pods:8}{took:9.1f}{took / pods * 1e6:8.0f}"
            f"{len(plan.evictions):9}{len(plan.refused):9}{look:9.1f}{stretch * 1e3:13.1f}  {where}"
        )
    wrong = worst > MOST_SECONDS or longest > MOST_STRETCH
    print(f"longest plan {worst:.1f} s (60), longest stretch {longest * 1e3:.0f} ms (100)")
    return 1 if wrong else 0


def first_look(policy: LoadedPolicy, store: Store) -> tuple[float, float, str]:
    """Let the daemon's core look at everything; return seconds, the longest stretch, and of
    what."""
    clock = ManualClock(NOW)
    profiles = in_tree_registry().profiles(policy, priority_classes={})
    surroundings = Surroundings(
        clock=clock, client=Nobody(), metrics=Metrics(BuildInfo("benchmark"))
    )
    core = build_core(policy, profiles, surroundings, dry_run=False)
    for kind in ("Node", "Namespace", "Pod"):
        for found in tuple(store.all(kind)):
            core.store.put(found)
            if kind == "Node":
                core.cycle.on_change(_added(found))
    core.go_live()
    gc.collect()
    gc.freeze()
    began = time.process_time()
    longest, where = _drive(core, clock)
    took = time.process_time() - began
    gc.unfreeze()
    return took, longest, where


def _added(found: object):  # type: ignore[no-untyped-def]
    from reactive_descheduler.api.changes import Change

    return Change("Node", None, found)  # type: ignore[arg-type]


def _drive(core: Core, clock: ManualClock) -> tuple[float, str]:
    longest, where = 0.0, ""
    while True:
        due = core.queue.pop()
        if due is None:
            at = core.queue.next_due()
            if at is None or at > clock.monotonic() + 5:
                return longest, where
            clock.advance(max(0.0, at - clock.monotonic()))
            continue
        last = time.process_time()
        steps = core.loop.steps(due)
        while True:
            done = next(steps, StopIteration) is StopIteration
            now = time.process_time()
            if now - last > longest:
                longest, where = (
                    now - last,
                    f"{type(due.key).__name__} {getattr(due.key, 'strategy', '')}",
                )
            last = now
            if done:
                break


def snapshot(store: Store) -> Snapshot:
    return Snapshot(found for kind in ("Node", "Namespace", "Pod") for found in store.all(kind))


def filled(pods: int) -> Store:
    """Return a cluster in three zones. One node in a hundred is tainted and one in a hundred has
    lost its label; workloads have twenty replicas, each kind of constraint in some."""
    chance = random.Random(1)
    store = Store()
    nodes = pods // PODS_A_NODE
    room = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    for place in range(nodes):
        labels = {"zone": f"z{place % ZONES}", "kubernetes.io/hostname": f"n{place:05}"}
        if place % 100 != 7:
            labels["pool"] = "main"
        taints = [taint("broken")] if place % 100 == 3 else []
        manifest = make_node(f"n{place:05}", labels=labels, taints=taints, allocatable=room)
        store.put(node_view(manifest))
    for place in range(50):
        store.put(view(make_namespace(f"team-{place}")))
    for number in range(pods // REPLICAS):
        template = workload(number, chance)
        home = chance.randrange(nodes)
        for replica in range(REPLICAS):
            # One workload in fifty has grown crooked: on few nodes, of one zone.
            step = ZONES if number % 50 == 0 else 1
            node = (home + replica % (4 if number % 50 == 0 else REPLICAS) * step) % nodes
            name = f"app-{number}-{replica}"
            pod = msgspec.structs.replace(
                template, name=name, uid=f"u-{name}", node_name=f"n{node:05}"
            )
            store.put(pod)
    return store


def workload(number: int, chance: random.Random) -> Pod:
    labels = {"app": f"app-{number}"}
    selector = {"matchLabels": labels}
    kind = number % 5
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    by_host = {**spread, "topologyKey": "kubernetes.io/hostname"}
    pool = [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["main"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": pool}}
    return pod_view(
        make_pod(
            "p",
            namespace=f"team-{number % 50}",
            labels=labels,
            owners=[owner(f"app-{number}")],
            requests={"cpu": f"{chance.choice((50, 100, 200))}m", "memory": "256Mi"},
            restarts=150 if number % 1000 == 11 else 0,
            spread=[
                {**each, "labelSelector": selector}
                for each in ((spread,) if kind == 0 else (spread, by_host) if kind == 1 else ())
            ],
            affinity={"nodeAffinity": required} if kind == 2 else None,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
