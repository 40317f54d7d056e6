"""Which nodes Pods accept, and how long that is remembered."""

from __future__ import annotations

import pytest

from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.store import Store
from reactive_descheduler.config.corrections import NONE
from reactive_descheduler.config.evictor import DefaultEvictorArguments
from reactive_descheduler.framework.cycle import CycleNodes
from reactive_descheduler.framework.profile import ProfileView
from reactive_descheduler.framework.reach import Reach
from reactive_descheduler.guardrails import build_evictor_filter
from tests.builders import Manifest, cluster_store, make_node, make_pod, pod_view, taint, view
from tests.unit.strategies.driving import NOW

GPU = [taint("gpu")]
NODES = [
    make_node("n1"),
    make_node("n2", taints=GPU),
    make_node("n3", labels={"zone": "a"}),
    make_node("n4", unschedulable=True),
]
_FILTERS = build_evictor_filter(
    DefaultEvictorArguments(), priority_threshold=2_000_000_000, corrections=NONE
)


class World:
    """A store and its cycle, as the daemon keeps them."""

    def __init__(self, *manifests: Manifest) -> None:
        self.store: Store = cluster_store(*manifests)
        self.lister = Lister(self.store)
        self.cycle = CycleNodes(None, {node.name: node for node in self.lister.nodes()})

    def tell(self, manifest: Manifest) -> None:
        for change in self.store.put(view(manifest)):
            self.cycle.on_change(change)

    def find(self, reach: Reach, pod: Manifest) -> list[str]:
        """Return the names of the nodes for a Pod."""
        found = reach.nodes(
            ProfileView(_FILTERS, self.lister, self.cycle, NOW), pod_view(pod).template
        )
        while True:
            try:
                next(found)
            except StopIteration as ended:
                nodes = ended.value
                break
        return [node.name for node in nodes]


MALFORMED = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Odd"}]}]
        }
    }
}


@pytest.mark.parametrize(
    ("pod", "names"),
    [
        pytest.param(make_pod(), ["n1", "n3"], id="plain"),
        pytest.param(
            make_pod(tolerations=[{"key": "gpu", "operator": "Exists"}]),
            ["n1", "n2", "n3"],
            id="tolerates",
        ),
        pytest.param(make_pod(node_selector={"zone": "a"}), ["n3"], id="selects"),
        pytest.param(make_pod(affinity=MALFORMED), ["n1", "n3"], id="cannot-be-read"),
    ],
)
def test_taints_and_labels_decide(pod: Manifest, names: list[str]) -> None:
    assert World(*NODES).find(Reach(cordoned=False), pod) == names


def test_cordoned_nodes_count_for_who_asks_for_them() -> None:
    assert World(*NODES).find(Reach(cordoned=True), make_pod()) == ["n1", "n3", "n4"]


def test_pods_and_heartbeats_void_nothing_and_a_node_that_differs_all() -> None:
    world, reach = World(*NODES), Reach(cordoned=False)
    world.find(reach, make_pod())
    version = world.lister.nodes_version
    world.tell(make_pod("other", node="n1"))
    world.tell(make_node("n1", version="2"))
    assert world.lister.nodes_version == version
    world.tell(make_node("n1", version="3", taints=GPU))
    assert world.lister.nodes_version == version + 1
    assert world.find(reach, make_pod()) == ["n3"]
