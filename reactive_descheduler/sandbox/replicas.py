"""Deployments, ReplicaSets and DaemonSets become Pods."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import orjson

from reactive_descheduler.sandbox import fitting
from reactive_descheduler.sandbox.apiserver.pods import FINISHED
from reactive_descheduler.sandbox.client import ApiClient, ApiRefused
from reactive_descheduler.sandbox.controller import Controller
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    attach,
    clone,
    controller_of,
    integer,
    is_ready,
    is_terminating,
    labels,
    lookup,
    mapping,
    name_of,
    namespace_of,
    objects,
    text,
    uid_of,
)
from reactive_descheduler.sandbox.mirror import Mirror, Mirrors, key_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reactive_descheduler.sandbox.mirror import Index, ObjectKey

_HASH_LABEL = "pod-template-hash"
_SAFE = "bcdfghjklmnpqrstvwxz2456789"
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


def owner_uid(document: JsonObject) -> str:
    return text(controller_of(document), "uid")


class DeploymentController(Controller):
    """One ReplicaSet a template; the old ones go once the new one is Ready."""

    def __init__(self, client: ApiClient, mirrors: Mirrors) -> None:
        super().__init__(client)
        self._deployments = mirrors.deployments
        self._replica_sets = mirrors.replica_sets
        self._owned = mirrors.replica_sets.index(owner_uid)
        self.follow(mirrors.deployments, lambda deployment: [key_of(deployment)])
        self.follow(mirrors.replica_sets, lambda owned: _owner_key(owned, "Deployment"))

    async def reconcile(self, key: ObjectKey) -> None:
        deployment = self._deployments.objects.get(key)
        if deployment is None or is_terminating(deployment):
            return
        name = f"{name_of(deployment)}-{template_hash(deployment)}"
        owned = self._owned.get(uid_of(deployment))
        current = owned.get((key[0], name))
        if current is None:
            created = await self.client.create(_replica_set(deployment))
            await self._replica_sets.caught_up(created)
            current = created
        replicas = integer(deployment, "spec", "replicas")
        await self._resize(current, replicas)
        old = [rs for rs in owned.values() if name_of(rs) != name]
        if integer(current, "status", "readyReplicas") >= replicas:
            for replica_set in old:
                await self._resize(replica_set, 0)
        await self._report(deployment, current, [current, *old])

    async def _resize(self, replica_set: JsonObject, replicas: int) -> None:
        if integer(replica_set, "spec", "replicas") != replicas:
            await self.client.patch(
                "replicasets",
                name_of(replica_set),
                {"spec": {"replicas": replicas}},
                namespace=namespace_of(replica_set),
            )

    async def _report(
        self, deployment: JsonObject, current: JsonObject, all_sets: list[JsonObject]
    ) -> None:
        def total(field: str) -> int:
            return sum(integer(replica_set, "status", field) for replica_set in all_sets)

        wanted, available = integer(deployment, "spec", "replicas"), total("availableReplicas")
        status = {
            "replicas": total("replicas"),
            "updatedReplicas": integer(current, "status", "replicas"),
            "readyReplicas": total("readyReplicas"),
            "availableReplicas": available,
            "unavailableReplicas": max(0, wanted - available),
        }
        await _patch_status(self.client, "deployments", deployment, status)


class ReplicaSetController(Controller):
    """Keeps the count of Pods; a terminating Pod is replaced at once, as by the real one."""

    def __init__(self, client: ApiClient, mirrors: Mirrors) -> None:
        super().__init__(client)
        self._replica_sets = mirrors.replica_sets
        self._pods = mirrors.pods
        self._owned = mirrors.pods.index(owner_uid)
        self.follow(mirrors.replica_sets, lambda replica_set: [key_of(replica_set)])
        self.follow(mirrors.pods, lambda pod: _owner_key(pod, "ReplicaSet"))

    async def reconcile(self, key: ObjectKey) -> None:
        replica_set = self._replica_sets.objects.get(key)
        if replica_set is None or is_terminating(replica_set):
            return
        active = _active(self._owned.get(uid_of(replica_set)).values())
        missing = integer(replica_set, "spec", "replicas") - len(active)
        for _ in range(missing):
            await self._pods.caught_up(await self.client.create(pod_of(replica_set)))
        for pod in sorted(active, key=_last_to_go)[: max(0, -missing)]:
            await _delete_pod(self.client, self._pods, pod)
        active = _active(self._owned.get(uid_of(replica_set)).values())
        ready = sum(map(is_ready, active))
        status = {
            "replicas": len(active),
            "fullyLabeledReplicas": len(active),
            "readyReplicas": ready,
            "availableReplicas": ready,
        }
        await _patch_status(self.client, "replicasets", replica_set, status)


class DaemonSetController(Controller):
    """One Pod a node that takes it; a cordon does not keep it away."""

    def __init__(self, client: ApiClient, mirrors: Mirrors) -> None:
        super().__init__(client)
        self._daemon_sets = mirrors.daemon_sets
        self._nodes = mirrors.nodes
        self._pods = mirrors.pods
        self._owned = mirrors.pods.index(owner_uid)
        self.follow(mirrors.daemon_sets, lambda daemon_set: [key_of(daemon_set)])
        self.follow(mirrors.pods, lambda pod: _owner_key(pod, "DaemonSet"))
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
                await _delete_pod(self.client, self._pods, there[name])
            desired += runs or (name in there and lands and not driven_off)
        await self._report(daemon_set, desired)

    async def _report(self, daemon_set: JsonObject, desired: int) -> None:
        active = _active(self._owned.get(uid_of(daemon_set)).values())
        ready = sum(map(is_ready, active))
        status = {
            "desiredNumberScheduled": desired,
            "currentNumberScheduled": len(active),
            "updatedNumberScheduled": len(active),
            "numberMisscheduled": 0,
            "numberReady": ready,
            "numberAvailable": ready,
        }
        await _patch_status(self.client, "daemonsets", daemon_set, status)


class GarbageCollector(Controller):
    """Deletes what a deleted workload leaves behind. Its keys are (plural, uid of the owner)."""

    def __init__(self, client: ApiClient, mirrors: Mirrors) -> None:
        super().__init__(client)
        self._mirrors = (mirrors.replica_sets, mirrors.pods)
        self._owned = {m.plural: m.index(owner_uid) for m in self._mirrors}
        self._gone: set[str] = set()
        for owners in (mirrors.deployments, mirrors.replica_sets, mirrors.daemon_sets):
            owners.listeners.append(self._on_owner)
        for owned in self._mirrors:
            owned.listeners.append(self._on_owned)

    async def reconcile(self, key: ObjectKey) -> None:
        plural, uid = key
        for namespace, name in list(self._owned[plural].get(uid)):
            try:
                await self.client.delete(plural, name, namespace=namespace)
            except ApiRefused as error:
                if error.code != 404:
                    raise

    def _on_owner(self, old: JsonObject | None, new: JsonObject | None) -> None:
        if old is not None and (new is None or uid_of(new) != uid_of(old)):
            self._gone.add(uid_of(old))
            for plural in self._owned:
                self.add((plural, uid_of(old)))

    def _on_owned(self, old: JsonObject | None, new: JsonObject | None) -> None:
        """Pods that were made while their owner went."""
        if old is None and new is not None and owner_uid(new) in self._gone:
            for plural in self._owned:
                self.add((plural, owner_uid(new)))


def template_hash(workload: JsonObject) -> str:
    """Ten signs that stand for the Pod template."""
    template = orjson.dumps(mapping(workload, "spec", "template"), option=orjson.OPT_SORT_KEYS)
    digest = hashlib.sha256(template).digest()
    return "".join(_SAFE[byte % len(_SAFE)] for byte in digest[:10])


def pod_of(workload: JsonObject) -> JsonObject:
    """A Pod of the workload's template, owned by it; the server completes the name."""
    template = clone(mapping(workload, "spec", "template"))
    metadata = attach(template, "metadata")
    metadata["generateName"] = f"{name_of(workload)}-"
    metadata["namespace"] = namespace_of(workload)
    metadata["ownerReferences"] = [_reference(workload)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def _reference(owner: JsonObject) -> JsonObject:
    return {
        "apiVersion": "apps/v1",
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _replica_set(deployment: JsonObject) -> JsonObject:
    digest = template_hash(deployment)
    spec = clone(mapping(deployment, "spec"))
    template = attach(spec, "template")
    for place in (attach(template, "metadata", "labels"), attach(spec, "selector", "matchLabels")):
        place[_HASH_LABEL] = digest
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{name_of(deployment)}-{digest}",
            "namespace": namespace_of(deployment),
            "labels": labels(template),
            "ownerReferences": [_reference(deployment)],
        },
        "spec": {field: spec[field] for field in ("replicas", "selector", "template")},
    }


def _template_pod(daemon_set: JsonObject) -> JsonObject:
    return mapping(daemon_set, "spec", "template")


def _daemon_pod(daemon_set: JsonObject, node: str) -> JsonObject:
    """A Pod for one node: tied to it by affinity, so that the scheduler binds it there."""
    pod = pod_of(daemon_set)
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


def _owner_key(document: JsonObject, kind: str) -> list[ObjectKey]:
    owner = controller_of(document)
    if owner.get("kind") != kind:
        return []
    return [(namespace_of(document), text(owner, "name"))]


def _active(pods: Iterable[JsonObject]) -> list[JsonObject]:
    return [
        pod
        for pod in pods
        if not is_terminating(pod) and text(pod, "status", "phase") not in FINISHED
    ]


def _last_to_go(pod: JsonObject) -> tuple[bool, bool, str]:
    """Sorts what may go first to the front: not bound, not Ready, by name."""
    return bool(text(pod, "spec", "nodeName")), is_ready(pod), name_of(pod)


async def _delete_pod(client: ApiClient, pods: Mirror, pod: JsonObject) -> None:
    try:
        deleted = await client.delete("pods", name_of(pod), namespace=namespace_of(pod))
    except ApiRefused as error:
        if error.code != 404:
            raise
        return
    await pods.caught_up(deleted)


async def _patch_status(
    client: ApiClient, plural: str, workload: JsonObject, counts: dict[str, int]
) -> None:
    """Report counts, if they are news."""
    status = counts | {"observedGeneration": integer(workload, "metadata", "generation")}
    present = mapping(workload, "status")
    if any(present.get(field) != value for field, value in status.items()):
        await client.patch(
            plural,
            name_of(workload),
            {"status": status},
            namespace=namespace_of(workload),
            subresource="status",
        )
