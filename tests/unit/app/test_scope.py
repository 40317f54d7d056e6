"""What an event costs does not hang on the size of the cluster."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from reactive_descheduler.app.policy import in_tree_registry
from reactive_descheduler.config.load import load_policy
from reactive_descheduler.strategies import PLUGINS
from tests.builders import Manifest, make_node, make_pod, taint
from tests.unit.controller.running import Running, running

POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: default
  pluginConfig:
  - name: RemovePodsHavingTooManyRestarts
    args: {podRestartThreshold: 5}
  - name: RemovePodsViolatingNodeAffinity
    args: {nodeAffinityType: [requiredDuringSchedulingIgnoredDuringExecution]}
  - name: PodLifeTime
    args: {maxPodLifeTimeSeconds: 1000000}
  plugins:
    deschedule:
      enabled:
      - RemovePodsViolatingNodeTaints
      - RemovePodsViolatingNodeAffinity
      - RemovePodsHavingTooManyRestarts
      - PodLifeTime
reactive: {settle: {default: 0s}}
"""
PODS_A_NODE = 3
SIZES = (100, 5_000)


class Cost(NamedTuple):
    runs: dict[str, int]
    looked_at: float
    keys: int
    evaluations: float


def cluster(nodes: int) -> list[Manifest]:
    objects = [make_node(f"n{number}") for number in range(nodes)]
    for number in range(nodes):
        objects += [
            make_pod(f"p{number}-{place}", node=f"n{number}") for place in range(PODS_A_NODE)
        ]
    return objects


def start(nodes: int) -> Running:
    loaded = load_policy(POLICY, source="policy", plugins=PLUGINS)
    profiles = in_tree_registry().profiles(loaded, priority_classes={})
    return running(objects=cluster(nodes), policy=POLICY, profiles=lambda: profiles, live=False)


def counters(found: Running) -> Cost:
    return Cost(
        dict(found.core.loop.runs),
        found.metric("pods_looked_at"),
        sum(found.core.bus.statistics().keys.values()),
        found.metric("evaluations"),
    )


def cost_of(found: Running, *changes: Manifest) -> Cost:
    """Return what these changes cost, after the debounce."""
    before = counters(found)
    found.put(*changes)
    found.wait(2)
    after = counters(found)
    return Cost(
        {
            name: count - before.runs.get(name, 0)
            for name, count in after.runs.items()
            if count != before.runs.get(name, 0)
        },
        after.looked_at - before.looked_at,
        after.keys - before.keys,
        after.evaluations - before.evaluations,
    )


@pytest.mark.parametrize("size", SIZES)
def test_one_event_looks_at_what_it_concerns_only(size: int) -> None:
    found = start(size)
    found.core.bus.go_live()  # without the first full pass, which looks at everything

    tainted = cost_of(found, make_node("n1", version="2", taints=[taint()]))
    assert tainted == Cost({"RemovePodsViolatingNodeTaints": PODS_A_NODE}, PODS_A_NODE, 3, 3)
    assert found.offered() == {f"p1-{place}" for place in range(PODS_A_NODE)}

    beat = cost_of(found, make_node("n2", version="3"))
    assert beat == Cost({}, 0, 0, 0)

    restarted = cost_of(found, make_pod("p5-0", node="n5", version="4", restarts=7))
    assert restarted == Cost({"RemovePodsHavingTooManyRestarts": 1}, 1, 1, 1)

    relabelled = cost_of(found, make_node("n7", version="5", labels={"zone": "a"}))
    assert set(relabelled.runs.values()) == {PODS_A_NODE}
    assert relabelled.looked_at == 0, "no Pod there violates anything"
