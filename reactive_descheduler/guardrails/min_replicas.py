"""Pods whose owner has too few of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from reactive_descheduler.api.changes import Action, On
from reactive_descheduler.api.eviction import Rejection
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.framework.filter import Reading


class MinReplicas:
    """Counts Pods of the owner's UID on all nodes and in all phases, terminating ones too.

    A Pod with no owner, or with several, passes.
    """

    NAME: ClassVar[str] = "minReplicas"

    def __init__(self, least: int) -> None:
        self._least = least

    def check(self, pod: Pod, reading: Reading, /) -> Rejection | None:
        if len(pod.template.owners) != 1:
            return None
        owner = pod.template.owners[0]
        count = reading.lister.owned_by(owner.uid)
        if count >= self._least:
            return None
        reason = f"{owner.kind} {owner.name} has {count} Pods, fewer than minReplicas {self._least}"
        return Rejection(self.NAME, reason, (_replicas(pod),), pod.ref)

    def depends(self, pod: Pod, _reading: Reading, /) -> Iterable[On]:
        return (_replicas(pod),) if len(pod.template.owners) == 1 else ()


def _replicas(pod: Pod) -> On:
    owner = pod.template.owners[0]
    return On(
        Action.POD_ADDED | Action.POD_DELETED | Action.POD_OWNERS,
        ("Owner", "", owner.uid),  # counted by UID; `triggers.touched` files changes under it
    )
