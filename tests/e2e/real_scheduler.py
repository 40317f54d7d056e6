"""Random clusters put before the real scheduler: etcd, API server and scheduler, nobody else.

No controller mends or evicts anything, and no kubelet is needed: where a Pod is bound is all that
is asked.
"""

from __future__ import annotations

import asyncio
from copy import deepcopy
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tests.e2e.api import Pod, eventually
from tests.e2e.random_clusters import NAMESPACES, anywhere_but, name_of, part

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from tests.e2e.api import Api, Condition
    from tests.e2e.random_clusters import Cluster, Object

_CORE = "/api/v1"
_NODES, _VOLUMES = f"{_CORE}/nodes", f"{_CORE}/persistentvolumes"
_FORCED = "?gracePeriodSeconds=0"
_BOTH = ("requests", "limits")
"""Of an extended resource both have to be given."""
PATIENCE = 5.0
"""Seconds that a Pod may take to be bound though it was unschedulable at first: the scheduler looks
again, after a second, when it hears of something that it was late to hear of."""


class Answer(NamedTuple):
    """What the scheduler made of a Pod."""

    node: str
    """Empty if it found none."""
    why: str
    """Then its words."""


class _Listed(msgspec.Struct):
    items: list[dict[str, object]]


class RealScheduler:
    """One API server with a scheduler, which sees one cluster after the other."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._asked = 0

    async def prepare(self) -> None:
        """Make the namespaces that all clusters share."""
        for name, labels in NAMESPACES.items():
            await self._api.create(
                f"{_CORE}/namespaces", {"metadata": {"name": name, "labels": labels}}
            )
            # As a controller would; without it no Pod is let in.
            await self._api.create(
                f"{_CORE}/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}}
            )

    async def put(self, cluster: Cluster) -> None:
        """Make a cluster's objects; returns once the scheduler knows its nodes."""
        await asyncio.gather(*(self._put_node(node) for node in cluster.nodes))
        await self._nodes_are_known(cluster)
        await asyncio.gather(*(self._api.create(_VOLUMES, each) for each in cluster.volumes))
        await asyncio.gather(*(self._api.create(_claims(each), each) for each in cluster.claims))
        for each in cluster.claims:
            if name_of(each) in cluster.leaving_claims:
                await self._api.delete(f"{_claims(each)}/{name_of(each)}")
        await asyncio.gather(*(self._put_pod(pod, cluster) for pod in cluster.pods))

    async def clear(self, cluster: Cluster) -> None:
        """Delete them."""
        for namespace in NAMESPACES:
            await self._api.delete(f"{_CORE}/namespaces/{namespace}/pods{_FORCED}")
        kept = [f"{_claims(each)}/{name_of(each)}" for each in cluster.claims]
        kept += [f"{_VOLUMES}/{name_of(each)}" for each in cluster.volumes]
        for path in kept:
            await self._api.delete(path)
            # There is no controller to end their protection.
            await self._api.patch(path, {"metadata": {"finalizers": None}})
        await asyncio.gather(
            *(self._api.delete(f"{_NODES}/{name}") for name in cluster.node_names())
        )

    async def manifests(self) -> list[dict[str, object]]:
        """All that node fit reads, as the API server has it."""
        found: list[dict[str, object]] = []
        for kind, collection in {
            "Namespace": "namespaces",
            "Node": "nodes",
            "PersistentVolume": "persistentvolumes",
            "PersistentVolumeClaim": "persistentvolumeclaims",
            "Pod": "pods",
        }.items():
            listed = await self._api.request("GET", f"{_CORE}/{collection}")
            items = msgspec.json.decode(listed, type=_Listed).items
            found += [{"apiVersion": "v1", "kind": kind, **each} for each in items]
        return found

    async def remove(self, pod: Object) -> None:
        """Delete a Pod at once."""
        await self._api.delete(f"{_pods(pod)}/{name_of(pod)}{_FORCED}")

    async def restore(self, pod: Object) -> None:
        """Put it back on its node."""
        await self._api.create(_pods(pod), pod)

    async def place(self, pod: Object, *, not_on: Iterable[str], patience: float = 0) -> Answer:
        """What the scheduler makes of a replacement of the Pod, which is deleted again.

        patience: seconds that an answer of no has to stand.
        """
        self._asked += 1
        replacement = _replacement(pod, f"asked-{self._asked}", not_on)
        await self._api.create(_pods(pod), replacement)
        answer = await self._answer(replacement, patience)
        await self.remove(replacement)
        return answer

    async def _answer(self, pod: Object, patience: float) -> Answer:
        path = f"{_pods(pod)}/{name_of(pod)}"
        until = asyncio.get_running_loop().time() + patience
        async with asyncio.timeout(30):
            while True:
                found = msgspec.json.decode(await self._api.request("GET", path), type=Pod)
                if found.node:
                    return Answer(found.node, "")
                refused = [each.message for each in found.status.conditions if _refuses(each)]
                if refused and asyncio.get_running_loop().time() >= until:
                    return Answer("", refused[0])
                await asyncio.sleep(0.01)

    async def _put_node(self, node: Object) -> None:
        await self._api.create(_NODES, node)
        # It was let in with a taint that a controller would take away.
        taints = part(node, "spec")["taints"]
        await self._api.patch(f"{_NODES}/{name_of(node)}", {"spec": {"taints": taints}})

    async def _nodes_are_known(self, cluster: Cluster) -> None:
        """Return once the scheduler has heard of the last change to a node; changes to Pods it
        hears of in order anyway."""
        last, seat = cluster.node_names()[-1], f"e2e.test/last-{cluster.seed}"
        room = {seat: "1"}
        await self._api.patch(
            f"{_NODES}/{last}/status", {"status": {"capacity": room, "allocatable": room}}
        )
        probe: Object = {
            "metadata": {"name": f"probe-{cluster.seed}", "namespace": next(iter(NAMESPACES))},
            "spec": {
                "containers": [_wanting({"name": "main", "image": "none"}, [seat])],
                "tolerations": [{"operator": "Exists"}],
            },
        }

        async def is_bound() -> bool:
            path = f"{_pods(probe)}/{name_of(probe)}"
            return bool(msgspec.json.decode(await self._api.request("GET", path), type=Pod).node)

        await self._api.create(_pods(probe), probe)
        await eventually(is_bound, what="the scheduler knows the nodes", within=30)
        await self.remove(probe)

    async def _put_pod(self, pod: Object, cluster: Cluster) -> None:
        await self._api.create(_pods(pod), pod)
        path = f"{_pods(pod)}/{name_of(pod)}"
        if phase := cluster.ended.get(name_of(pod)):
            await self._api.patch(f"{path}/status", {"status": {"phase": phase}})
        if name_of(pod) in cluster.terminating:
            await self._api.delete(path)  # no kubelet ends it


def _refuses(condition: Condition) -> bool:
    return condition.type == "PodScheduled" and condition.reason == "Unschedulable"


def _replacement(pod: Object, name: str, not_on: Iterable[str]) -> Object:
    copy = deepcopy(pod)
    part(copy, "metadata")["name"] = name
    spec = part(copy, "spec")
    del spec["nodeName"]
    containers = spec["containers"]
    assert isinstance(containers, list)
    spec["containers"] = [
        _wanting(containers[0], [anywhere_but(node) for node in not_on]),
        *containers[1:],
    ]
    return copy


def _wanting(container: Object, names: Collection[str]) -> Object:
    """The container, asking for one of each of these resources too."""
    resources = container.get("resources", {})
    assert isinstance(resources, dict)
    wanted = {kind: resources.get(kind, {}) | dict.fromkeys(names, "1") for kind in _BOTH}
    return {**container, "resources": wanted}


def _pods(pod: Object) -> str:
    return f"{_CORE}/namespaces/{part(pod, 'metadata')['namespace']}/pods"


def _claims(claim: Object) -> str:
    return f"{_CORE}/namespaces/{part(claim, 'metadata')['namespace']}/persistentvolumeclaims"
