"""Static Pods: they come from a file of their node, not from the API."""

from __future__ import annotations

from typing import ClassVar

from reactive_descheduler.api.changes import Action
from reactive_descheduler.api.pod import CONFIG_SOURCE_ANNOTATION, Pod
from reactive_descheduler.framework.pod_filter import PodFilter


class StaticPod(PodFilter):
    NAME: ClassVar[str] = "staticPod"
    LIFTED_BY: ClassVar[Action] = Action.POD_ANNOTATIONS

    def reason(self, pod: Pod, /) -> str:
        source = pod.annotations.get(CONFIG_SOURCE_ANNOTATION, "api")
        return "" if source == "api" else f"it is a static Pod, from {source!r}"
