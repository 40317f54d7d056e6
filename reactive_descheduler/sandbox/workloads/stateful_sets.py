"""StatefulSets become Pods with numbers, made and ended in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactive_descheduler.sandbox.controller import Controller
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    attach,
    integer,
    is_ready,
    is_terminating,
    labels,
    name_of,
    namespace_of,
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
    from reactive_descheduler.sandbox.mirror import ObjectKey


class StatefulSetController(Controller):
    """Keeps NAME-0 to NAME-(n-1): a Pod's successor has its name, so it waits until it is gone."""

    def __init__(self, client: ApiClient, mirrors: Mirrors) -> None:
        super().__init__(client)
        self._stateful_sets = mirrors.stateful_sets
        self._pods = mirrors.pods
        self._owned = mirrors.pods.index(owner_uid)
        self.follow(mirrors.stateful_sets, lambda stateful_set: [key_of(stateful_set)])
        self.follow(mirrors.pods, lambda pod: owner_key(pod, "StatefulSet"))

    async def reconcile(self, key: ObjectKey) -> None:
        stateful_set = self._stateful_sets.objects.get(key)
        if stateful_set is None or is_terminating(stateful_set):
            return
        replicas = integer(stateful_set, "spec", "replicas", default=1)
        if await self._fill(stateful_set, replicas) and await self._trim(stateful_set, replicas):
            await self._update(stateful_set, replicas)
        await self._report(stateful_set, replicas)

    async def _fill(self, stateful_set: JsonObject, replicas: int) -> bool:
        """Make what is missing; gives whether the next step may follow."""
        in_order = not _is_parallel(stateful_set)
        for number in range(replicas):
            pod = self._numbered(stateful_set).get(number)
            if pod is None:
                created = await self.client.create(_pod(stateful_set, number))
                await self._pods.caught_up(created)
            if in_order and (pod is None or is_terminating(pod) or not is_ready(pod)):
                return False
        return True

    async def _trim(self, stateful_set: JsonObject, replicas: int) -> bool:
        """End what is too many, the highest number first; gives whether none is left."""
        condemned = [n for n in sorted(self._numbered(stateful_set), reverse=True) if n >= replicas]
        for number in condemned if _is_parallel(stateful_set) else condemned[:1]:
            await self._delete(stateful_set, number)
        return not condemned

    async def _update(self, stateful_set: JsonObject, replicas: int) -> None:
        """Replace the highest Pod of a former template, once all above it are Ready."""
        strategy = ("spec", "updateStrategy")
        if text(stateful_set, *strategy, "type") == "OnDelete":
            return
        partition = integer(stateful_set, *strategy, "rollingUpdate", "partition")
        pods, wanted = self._numbered(stateful_set), template_hash(stateful_set)
        for number in range(replicas - 1, partition - 1, -1):
            pod = pods.get(number)
            if pod is None or is_terminating(pod):
                return
            if labels(pod).get(REVISION_LABEL) != wanted:
                await self._delete(stateful_set, number)
                return
            if not is_ready(pod):
                return

    async def _delete(self, stateful_set: JsonObject, number: int) -> None:
        pod = self._numbered(stateful_set)[number]
        if not is_terminating(pod):
            await delete_pod(self.client, self._pods, pod)

    def _numbered(self, stateful_set: JsonObject) -> dict[int, JsonObject]:
        """The Pods by their numbers; one named in another way is nobody's."""
        numbered = {}
        for pod in self._owned.get(uid_of(stateful_set)).values():
            number = name_of(pod).rpartition("-")[2]
            if number.isdigit():
                numbered[int(number)] = pod
        return numbered

    async def _report(self, stateful_set: JsonObject, replicas: int) -> None:
        present = active(self._owned.get(uid_of(stateful_set)).values())
        ready, wanted = sum(map(is_ready, present)), template_hash(stateful_set)
        updated = sum(labels(pod).get(REVISION_LABEL) == wanted for pod in present)
        latest = f"{name_of(stateful_set)}-{wanted}"
        is_complete = updated == ready == len(present) == replicas
        former = text(stateful_set, "status", "currentRevision")
        current = latest if is_complete or not former else former
        status: JsonObject = {
            "replicas": len(present),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "currentReplicas": updated if current == latest else len(present) - updated,
            "updatedReplicas": updated,
            "currentRevision": current,
            "updateRevision": latest,
        }
        await patch_status(self.client, "statefulsets", stateful_set, status)


def _is_parallel(stateful_set: JsonObject) -> bool:
    return text(stateful_set, "spec", "podManagementPolicy") == "Parallel"


def _pod(stateful_set: JsonObject, number: int) -> JsonObject:
    pod, name = pod_of(stateful_set), f"{name_of(stateful_set)}-{number}"
    metadata = attach(pod, "metadata")
    metadata |= {"name": name, "namespace": namespace_of(stateful_set)}
    attach(metadata, "labels").update(
        {
            REVISION_LABEL: template_hash(stateful_set),
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": str(number),
        }
    )
    attach(pod, "spec")["hostname"] = name
    return pod
