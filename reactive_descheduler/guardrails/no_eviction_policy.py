"""Pods that ask not to be evicted, where the policy takes that as an order."""

from __future__ import annotations

from typing import ClassVar

from reactive_descheduler.api.changes import Action
from reactive_descheduler.api.pod import PREFER_NO_EVICTION_ANNOTATION, Pod
from reactive_descheduler.framework.pod_filter import PodFilter


class NoEvictionPolicy(PodFilter):
    """Presence of the annotation counts, whatever its value."""

    NAME: ClassVar[str] = "noEvictionPolicy"
    LIFTED_BY: ClassVar[Action] = Action.POD_ANNOTATIONS

    def reason(self, pod: Pod, /) -> str:
        if PREFER_NO_EVICTION_ANNOTATION not in pod.annotations:
            return ""
        return "it prefers not to be evicted, and noEvictionPolicy is Mandatory"
