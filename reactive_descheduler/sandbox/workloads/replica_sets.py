"""ReplicaSets become Pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactive_descheduler.sandbox.controller import Controller
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    integer,
    is_ready,
    is_terminating,
    name_of,
    text,
    uid_of,
)
from reactive_descheduler.sandbox.mirror import Mirrors, key_of
from reactive_descheduler.sandbox.workloads.common import (
    active,
    delete_pod,
    owner_key,
    owner_uid,
    patch_status,
    pod_of,
    ready_for,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactive_descheduler.sandbox.client import ApiClient
    from reactive_descheduler.sandbox.mirror import ObjectKey


class ReplicaSetController(Controller):
    """Keeps the count of Pods; a terminating Pod is replaced at once, as by the real one."""

    def __init__(self, client: ApiClient, mirrors: Mirrors, *, now: Callable[[], float]) -> None:
        super().__init__(client)
        self._now = now
        self._replica_sets = mirrors.replica_sets
        self._pods = mirrors.pods
        self._owned = mirrors.pods.index(owner_uid)
        self.follow(mirrors.replica_sets, lambda replica_set: [key_of(replica_set)])
        self.follow(mirrors.pods, lambda pod: owner_key(pod, "ReplicaSet"))

    async def reconcile(self, key: ObjectKey) -> None:
        replica_set = self._replica_sets.objects.get(key)
        if replica_set is None or is_terminating(replica_set):
            return
        present = active(self._owned.get(uid_of(replica_set)).values())
        missing = integer(replica_set, "spec", "replicas") - len(present)
        for _ in range(missing):
            await self._pods.caught_up(await self.client.create(pod_of(replica_set)))
        for pod in sorted(present, key=_last_to_go)[: max(0, -missing)]:
            await delete_pod(self.client, self._pods, pod)
        present = active(self._owned.get(uid_of(replica_set)).values())
        status: JsonObject = {
            "replicas": len(present),
            "fullyLabeledReplicas": len(present),
            "readyReplicas": sum(map(is_ready, present)),
            "availableReplicas": self._available(replica_set, present),
        }
        await patch_status(self.client, "replicasets", replica_set, status)

    def _available(self, replica_set: JsonObject, pods: list[JsonObject]) -> int:
        """How many are Ready for long enough; comes back for those that are not yet."""
        needed = integer(replica_set, "spec", "minReadySeconds")
        ages = [age for pod in pods if (age := ready_for(pod, self._now())) >= 0]
        young = [age for age in ages if age < needed]
        if young:
            self.add_later(key_of(replica_set), needed - max(young))
        return len(ages) - len(young)


def _last_to_go(pod: JsonObject) -> tuple[bool, bool, str]:
    """Sorts what may go first to the front: not bound, not Ready, by name."""
    return bool(text(pod, "spec", "nodeName")), is_ready(pod), name_of(pod)
