"""Pods with PersistentVolumeClaims, all or those of some storage classes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from reactive_descheduler.api.changes import Action, Never, On
from reactive_descheduler.api.eviction import Rejection
from reactive_descheduler.api.meta import Ref
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.config.evictor import Protection
from reactive_descheduler.framework.filter import Reading


class PodsWithPVC:
    """A claim that is missing, or names no class, protects too: its class cannot be told."""

    NAME: ClassVar[str] = Protection.PVC

    def __init__(self, storage_classes: frozenset[str]) -> None:
        self._classes = storage_classes

    def check(self, pod: Pod, reading: Reading, /) -> Rejection | None:
        for name in pod.template.claims:
            if not self._classes:
                reason = f"it uses PersistentVolumeClaim {name}"
                return Rejection(self.NAME, reason, (Never(pod.uid),), pod.ref)
            reason = self._protected(pod, name, reading)
            if reason:
                wake = On(Action.CLAIM, _claim_ref(pod, name))
                return Rejection(self.NAME, reason, (wake,), pod.ref)
        return None

    def depends(self, pod: Pod, _reading: Reading, /) -> Iterable[On]:
        return [On(Action.CLAIM, _claim_ref(pod, name)) for name in pod.template.claims]

    def _protected(self, pod: Pod, name: str, reading: Reading) -> str:
        claim = reading.lister.claim(pod.namespace, name)
        if claim is None:
            return f"its PersistentVolumeClaim {name} is not there"
        if claim.opaque:
            return f"its PersistentVolumeClaim {name} could not be read: {claim.opaque}"
        if not claim.storage_class:
            return f"its PersistentVolumeClaim {name} names no storage class"
        if claim.storage_class in self._classes:
            return f"it uses PersistentVolumeClaim {name} of class {claim.storage_class}"
        return ""


def _claim_ref(pod: Pod, name: str) -> Ref:
    return ("PersistentVolumeClaim", pod.namespace, name)
