"""Deployments become ReplicaSets, and change from one template to another in steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reactive_descheduler.sandbox.controller import Controller
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    attach,
    clone,
    condition,
    integer,
    is_terminating,
    labels,
    lookup,
    mapping,
    name_of,
    namespace_of,
    seconds_of,
    string_map,
    text,
    timestamp,
    uid_of,
)
from reactive_descheduler.sandbox.mirror import Mirrors, key_of
from reactive_descheduler.sandbox.workloads.common import (
    owner_key,
    owner_uid,
    patch_status,
    reference_to,
    share,
    template_hash,
    with_conditions,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactive_descheduler.sandbox.client import ApiClient
    from reactive_descheduler.sandbox.mirror import ObjectKey

REVISION = "deployment.kubernetes.io/revision"
_HASH_LABEL = "pod-template-hash"


@dataclass(frozen=True)
class Bounds:
    """How many Pods a Deployment wants, and how far a rolling update may stray from it."""

    replicas: int
    surge: int
    unavailable: int

    @property
    def most(self) -> int:
        return self.replicas + self.surge

    @property
    def least(self) -> int:
        """Available Pods that there must be at all times."""
        return self.replicas - self.unavailable


class DeploymentController(Controller):
    """One ReplicaSet a template, the newest of them in growth and the others in decline."""

    def __init__(self, client: ApiClient, mirrors: Mirrors, *, now: Callable[[], float]) -> None:
        super().__init__(client)
        self._now = now
        self._deployments = mirrors.deployments
        self._replica_sets = mirrors.replica_sets
        self._owned = mirrors.replica_sets.index(owner_uid)
        self._pods = mirrors.pods.index(owner_uid)
        self.follow(mirrors.deployments, lambda deployment: [key_of(deployment)])
        self.follow(mirrors.replica_sets, lambda owned: owner_key(owned, "Deployment"))
        self.follow(mirrors.pods, self._recreated_by)

    async def reconcile(self, key: ObjectKey) -> None:
        deployment = self._deployments.objects.get(key)
        if deployment is None or is_terminating(deployment):
            return
        name = f"{name_of(deployment)}-{template_hash(deployment)}"
        owned = self._owned.get(uid_of(deployment))
        old = sorted((rs for rs in owned.values() if name_of(rs) != name), key=_revision)
        current = owned.get((key[0], name))
        if _is_paused(deployment):
            await self._follow_size(list(owned.values()), bounds_of(deployment).replicas)
        else:
            current = await self._advance(deployment, current, old)
        await self._report(deployment, current, old)

    async def _advance(
        self, deployment: JsonObject, current: JsonObject | None, old: list[JsonObject]
    ) -> JsonObject | None:
        """One step towards the template; gives its ReplicaSet, if there may be one yet."""
        if current is None:
            current = await self._introduce(deployment, old)
        if current is None:
            return None
        current = await self._number(current, old)
        if _recreates(deployment):
            await self._recreate(current, old, bounds_of(deployment).replicas)
        else:
            await self._roll(current, old, bounds_of(deployment))
        return current

    async def _follow_size(self, replica_sets: list[JsonObject], replicas: int) -> None:
        """Of a paused Deployment only the size changes, and that only between two updates."""
        running = [rs for rs in replica_sets if integer(rs, "spec", "replicas")]
        if len(running) == 1:
            await self._resize(running[0], replicas)

    async def _introduce(self, deployment: JsonObject, old: list[JsonObject]) -> JsonObject | None:
        """The ReplicaSet of the template; it starts empty where others are there."""
        if _recreates(deployment) and any(self._has_pods(replica_set) for replica_set in old):
            for replica_set in old:
                await self._resize(replica_set, 0)
            return None
        bounds = bounds_of(deployment)
        room = bounds.most - sum(integer(rs, "spec", "replicas") for rs in old)
        first = max(0, min(bounds.replicas, room))
        created = await self.client.create(_replica_set(deployment, first))
        await self._replica_sets.caught_up(created)
        return created

    async def _number(self, current: JsonObject, old: list[JsonObject]) -> JsonObject:
        """Give the current ReplicaSet a higher revision than all others."""
        latest = max(map(_revision, old), default=0)
        if _revision(current) > latest:
            return current
        patched = await self.client.patch(
            "replicasets",
            name_of(current),
            {"metadata": {"annotations": {REVISION: str(latest + 1)}}},
            namespace=namespace_of(current),
        )
        await self._replica_sets.caught_up(patched)
        return patched

    async def _roll(self, current: JsonObject, old: list[JsonObject], bounds: Bounds) -> None:
        """One step: grow what is new as far as the surge allows, or else shrink what is old."""
        size = integer(current, "spec", "replicas")
        total = size + sum(integer(rs, "spec", "replicas") for rs in old)
        if size > bounds.replicas:
            await self._resize(current, bounds.replicas)
        elif size < bounds.replicas and total < bounds.most:
            await self._resize(current, min(bounds.replicas, size + bounds.most - total))
        else:
            await self._shrink(current, old, least=bounds.least, total=total)

    async def _shrink(
        self, current: JsonObject, old: list[JsonObject], *, least: int, total: int
    ) -> None:
        size = integer(current, "spec", "replicas")
        coming = size - integer(current, "status", "availableReplicas")
        spare = total - least - coming
        sizes = {name_of(rs): integer(rs, "spec", "replicas") for rs in old}
        for replica_set in old:  # first what is not available anyway
            name = name_of(replica_set)
            broken = sizes[name] - integer(replica_set, "status", "availableReplicas")
            cut = max(0, min(broken, spare))
            sizes[name] -= cut
            spare -= cut
        available = sum(integer(rs, "status", "availableReplicas") for rs in [current, *old])
        spare = min(spare, available - least)
        for replica_set in old:
            name = name_of(replica_set)
            cut = max(0, min(sizes[name], spare))
            sizes[name] -= cut
            spare -= cut
        for replica_set in old:
            await self._resize(replica_set, sizes[name_of(replica_set)])

    async def _recreate(self, current: JsonObject, old: list[JsonObject], replicas: int) -> None:
        for replica_set in old:
            await self._resize(replica_set, 0)
        if not any(self._has_pods(replica_set) for replica_set in old):
            await self._resize(current, replicas)

    async def _resize(self, replica_set: JsonObject, replicas: int) -> None:
        if integer(replica_set, "spec", "replicas") != replicas:
            patched = await self.client.patch(
                "replicasets",
                name_of(replica_set),
                {"spec": {"replicas": replicas}},
                namespace=namespace_of(replica_set),
            )
            await self._replica_sets.caught_up(patched)

    def _has_pods(self, replica_set: JsonObject) -> bool:
        return bool(self._pods.get(uid_of(replica_set)))

    def _recreated_by(self, pod: JsonObject) -> list[ObjectKey]:
        """The Deployments that may wait for a terminating Pod of theirs to be gone."""
        if not is_terminating(pod):
            return []
        (key,) = owner_key(pod, "ReplicaSet") or [("", "")]
        owner = self._replica_sets.objects.get(key)
        return owner_key(owner, "Deployment") if owner is not None else []

    async def _report(
        self, deployment: JsonObject, current: JsonObject | None, old: list[JsonObject]
    ) -> None:
        present = [*old] if current is None else [current, *old]
        if current is not None:
            await self._annotate(deployment, current)
            await self._forget(deployment, old)
        available = _total(present, "availableReplicas")
        bounds = bounds_of(deployment)
        status: JsonObject = {
            "replicas": _total(present, "replicas"),
            "updatedReplicas": _total(present[:1], "replicas") if current is not None else 0,
            "readyReplicas": _total(present, "readyReplicas"),
            "availableReplicas": available,
            "unavailableReplicas": max(0, _total(present, "replicas") - available),
        }
        conditions = [_availability(available >= bounds.least)]
        if not _is_paused(deployment) and current is not None:
            conditions.append(self._progress(deployment, current, status))
        status["conditions"] = with_conditions(deployment, conditions, self._now())
        await patch_status(self.client, "deployments", deployment, status)

    def _progress(
        self, deployment: JsonObject, current: JsonObject, status: JsonObject
    ) -> JsonObject:
        before, name = condition(deployment, "Progressing"), name_of(current)
        replicas = integer(deployment, "spec", "replicas", default=1)
        complete = all(
            status[field] == replicas
            for field in ("replicas", "updatedReplicas", "availableReplicas")
        )
        moved = any(
            integer(deployment, "status", field) != status[field]
            for field in ("updatedReplicas", "readyReplicas", "availableReplicas", "replicas")
        )
        done = f'ReplicaSet "{name}" has successfully progressed.'
        if complete:
            return self._progressing("True", "NewReplicaSetAvailable", done, before)
        if moved or before.get("reason") == "NewReplicaSetAvailable" or not before:
            self.add_later(key_of(deployment), _deadline(deployment))
            why = f'ReplicaSet "{name}" is progressing.'
            return self._progressing("True", "ReplicaSetUpdated", why, {})
        since = seconds_of(text(before, "lastUpdateTime"))
        if self._now() - since >= _deadline(deployment):
            why = f'ReplicaSet "{name}" has timed out progressing.'
            return self._progressing("False", "ProgressDeadlineExceeded", why, before)
        return before

    def _progressing(
        self, status: str, reason: str, message: str, before: JsonObject
    ) -> JsonObject:
        entry: JsonObject = {
            "type": "Progressing",
            "status": status,
            "reason": reason,
            "message": message,
        }
        same = all(before.get(field) == value for field, value in entry.items())
        updated = text(before, "lastUpdateTime") if same else timestamp(self._now())
        return {"lastUpdateTime": updated, **entry}

    async def _annotate(self, deployment: JsonObject, current: JsonObject) -> None:
        """Tell the Deployment its revision, for `kubectl rollout`."""
        revision = str(_revision(current))
        if string_map(deployment, "metadata", "annotations").get(REVISION) != revision:
            patched = await self.client.patch(
                "deployments",
                name_of(deployment),
                {"metadata": {"annotations": {REVISION: revision}}},
                namespace=namespace_of(deployment),
            )
            await self._deployments.caught_up(patched)

    async def _forget(self, deployment: JsonObject, old: list[JsonObject]) -> None:
        """Delete the oldest empty ReplicaSets beyond the limit."""
        empty = [
            rs
            for rs in old
            if not integer(rs, "spec", "replicas") and not integer(rs, "status", "replicas")
        ]
        limit = integer(deployment, "spec", "revisionHistoryLimit", default=10)
        for replica_set in empty[: max(0, len(empty) - limit)]:
            await self.client.delete(
                "replicasets", name_of(replica_set), namespace=namespace_of(replica_set)
            )


def bounds_of(deployment: JsonObject) -> Bounds:
    """Shares are rounded up for the surge and down for what may be missing."""
    replicas = integer(deployment, "spec", "replicas", default=1)
    if _recreates(deployment):
        return Bounds(replicas, 0, replicas)
    rolling = mapping(deployment, "spec", "strategy", "rollingUpdate")
    surge = share(rolling.get("maxSurge", "25%"), replicas, up=True)
    unavailable = min(replicas, share(rolling.get("maxUnavailable", "25%"), replicas, up=False))
    # With neither it could not move.
    return Bounds(replicas, surge, unavailable if surge or unavailable else 1)


def _recreates(deployment: JsonObject) -> bool:
    return text(deployment, "spec", "strategy", "type") == "Recreate"


def _is_paused(deployment: JsonObject) -> bool:
    return lookup(deployment, "spec", "paused") is True


def _replica_set(deployment: JsonObject, replicas: int) -> JsonObject:
    digest = template_hash(deployment)
    spec = clone(mapping(deployment, "spec"))
    template = attach(spec, "template")
    for place in (attach(template, "metadata", "labels"), attach(spec, "selector", "matchLabels")):
        place[_HASH_LABEL] = digest
    kept = ("selector", "template", "minReadySeconds")
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{name_of(deployment)}-{digest}",
            "namespace": namespace_of(deployment),
            "labels": labels(template),
            "ownerReferences": [reference_to(deployment)],
        },
        "spec": {"replicas": replicas, **{field: spec[field] for field in kept if field in spec}},
    }


def _availability(is_available: bool) -> JsonObject:
    if is_available:
        reason, message = "MinimumReplicasAvailable", "Deployment has minimum availability."
    else:
        reason = "MinimumReplicasUnavailable"
        message = "Deployment does not have minimum availability."
    status = "True" if is_available else "False"
    return {"type": "Available", "status": status, "reason": reason, "message": message}


def _revision(replica_set: JsonObject) -> int:
    number = string_map(replica_set, "metadata", "annotations").get(REVISION, "")
    return int(number) if number.isdigit() else 0


def _deadline(deployment: JsonObject) -> int:
    return integer(deployment, "spec", "progressDeadlineSeconds", default=600)


def _total(replica_sets: list[JsonObject], field: str) -> int:
    return sum(integer(replica_set, "status", field) for replica_set in replica_sets)
