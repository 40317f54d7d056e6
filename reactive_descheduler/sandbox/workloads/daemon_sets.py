"""DaemonSets become Pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactive_descheduler.sandbox import fitting
from reactive_descheduler.sandbox.controller import Controller
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    attach,
    is_ready,
    is_terminating,
    labels,
    lookup,
    mapping,
    name_of,
    objects,
    text,
    uid_of,
)
from reactive_descheduler.sandbox.mirror import Mirrors, key_of
from reactive_descheduler.sandbox.workloads.common import (
    REVISION_LABEL,
    active,
    delete_pod,
    owner_key,
    owner_uid,
    patch_status,
    pod_of,
    template_hash,
)

if TYPE_CHECKING:
    from reactive_descheduler.sandbox.client import ApiClient
    from reactive_descheduler.sandbox.mirror import Index, ObjectKey

_NODE_NAME = "metadata.name"

# What the real controller lets its Pods bear.
_DAEMON_TOLERATIONS: tuple[tuple[str, str], ...] = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)


class DaemonSetController(Controller):
    """One Pod a node that takes it; a cordon does not keep it away."""

    def __init__(self, client: ApiClient, mirrors: Mirrors) -> None:
        super().__init__(client)
        self._daemon_sets = mirrors.daemon_sets
        self._nodes = mirrors.nodes
        self._pods = mirrors.pods
        self._owned = mirrors.pods.index(owner_uid)
        self.follow(mirrors.daemon_sets, lambda daemon_set: [key_of(daemon_set)])
        self.follow(mirrors.pods, lambda pod: owner_key(pod, "DaemonSet"))
        self.follow(mirrors.nodes, lambda _node: list(self._daemon_sets.objects))

    async def reconcile(self, key: ObjectKey) -> None:
        daemon_set = self._daemon_sets.objects.get(key)
        if daemon_set is None or is_terminating(daemon_set):
            return
        template, sample = _template_pod(daemon_set), _daemon_pod(daemon_set, "")
        there = _by_target(self._owned, daemon_set)
        desired = 0
        for node in list(self._nodes.objects.values()):
            name, lands = name_of(node), fitting.is_attracted(template, node)
            repelled = fitting.repelling_taints(sample, node, "NoSchedule", "NoExecute")
            runs = lands and not repelled
            if runs and name not in there:
                created = await self.client.create(_daemon_pod(daemon_set, name))
                await self._pods.caught_up(created)
            driven_off = fitting.repelling_taints(sample, node, "NoExecute")
            if name in there and (not lands or driven_off) and not is_terminating(there[name]):
                await delete_pod(self.client, self._pods, there[name])
            desired += runs or (name in there and lands and not driven_off)
        await self._update(daemon_set)
        await self._report(daemon_set, desired)

    async def _update(self, daemon_set: JsonObject) -> None:
        """Replace one Pod of a former template, while all others are Ready; a broken one first."""
        pods = list(self._owned.get(uid_of(daemon_set)).values())
        if text(daemon_set, "spec", "updateStrategy", "type") == "OnDelete":
            return
        old = sorted((pod for pod in pods if not _is_updated(daemon_set, pod)), key=is_ready)
        missing = [pod for pod in pods if is_terminating(pod) or not is_ready(pod)]
        if old and missing in ([], [old[0]]) and not is_terminating(old[0]):
            await delete_pod(self.client, self._pods, old[0])

    async def _report(self, daemon_set: JsonObject, desired: int) -> None:
        present = active(self._owned.get(uid_of(daemon_set)).values())
        ready = sum(map(is_ready, present))
        status: JsonObject = {
            "desiredNumberScheduled": desired,
            "currentNumberScheduled": len(present),
            "updatedNumberScheduled": sum(_is_updated(daemon_set, pod) for pod in present),
            "numberMisscheduled": 0,
            "numberReady": ready,
            "numberAvailable": ready,
            "numberUnavailable": max(0, desired - ready),
        }
        await patch_status(self.client, "daemonsets", daemon_set, status)


def _template_pod(daemon_set: JsonObject) -> JsonObject:
    return mapping(daemon_set, "spec", "template")


def _daemon_pod(daemon_set: JsonObject, node: str) -> JsonObject:
    """A Pod for one node: tied to it by affinity, so that the scheduler binds it there."""
    pod = pod_of(daemon_set)
    attach(pod, "metadata", "labels")[REVISION_LABEL] = template_hash(daemon_set)
    spec = attach(pod, "spec")
    spec["tolerations"] = [
        *objects(spec, "tolerations"),
        *(
            {"key": key, "operator": "Exists", "effect": effect}
            for key, effect in _DAEMON_TOLERATIONS
        ),
    ]
    tie = {"key": _NODE_NAME, "operator": "In", "values": [node]}
    attach(spec, "affinity", "nodeAffinity")["requiredDuringSchedulingIgnoredDuringExecution"] = {
        "nodeSelectorTerms": [{"matchFields": [tie]}]
    }
    return pod


def _is_updated(daemon_set: JsonObject, pod: JsonObject) -> bool:
    return labels(pod).get(REVISION_LABEL) == template_hash(daemon_set)


def _by_target(owned: Index, daemon_set: JsonObject) -> dict[str, JsonObject]:
    """The set's Pods by the node that each is for; one that still ends keeps its place."""
    return {_target(pod): pod for pod in owned.get(uid_of(daemon_set)).values()}


def _target(pod: JsonObject) -> str:
    affinity = mapping(pod, "spec", "affinity", "nodeAffinity")
    required = mapping(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
    for term in objects(required, "nodeSelectorTerms"):
        for field in objects(term, "matchFields"):
            values = lookup(field, "values")
            if isinstance(values, list) and values:
                return str(values[0])
    return text(pod, "spec", "nodeName")
