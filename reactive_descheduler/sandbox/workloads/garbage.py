"""What a deleted workload leaves behind goes too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactive_descheduler.sandbox.client import ApiClient, ApiRefused
from reactive_descheduler.sandbox.controller import Controller
from reactive_descheduler.sandbox.documents import JsonObject, uid_of
from reactive_descheduler.sandbox.workloads.common import owner_uid

if TYPE_CHECKING:
    from reactive_descheduler.sandbox.mirror import Mirrors, ObjectKey


class GarbageCollector(Controller):
    """Deletes what a deleted workload leaves behind. Its keys are (plural, uid of the owner)."""

    def __init__(self, client: ApiClient, mirrors: Mirrors) -> None:
        super().__init__(client)
        self._mirrors = (mirrors.replica_sets, mirrors.pods)
        self._owned = {m.plural: m.index(owner_uid) for m in self._mirrors}
        self._gone: set[str] = set()
        for owners in (
            mirrors.deployments,
            mirrors.replica_sets,
            mirrors.daemon_sets,
            mirrors.stateful_sets,
            mirrors.jobs,
        ):
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
