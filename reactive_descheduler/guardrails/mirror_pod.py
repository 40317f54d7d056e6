"""Mirror Pods: the kubelet's image of a static Pod, which evicting does not move."""

from __future__ import annotations

from typing import ClassVar

from reactive_descheduler.api.changes import Action
from reactive_descheduler.api.pod import MIRROR_ANNOTATION, Pod
from reactive_descheduler.framework.pod_filter import PodFilter


class MirrorPod(PodFilter):
    NAME: ClassVar[str] = "mirrorPod"
    LIFTED_BY: ClassVar[Action] = Action.POD_ANNOTATIONS

    def reason(self, pod: Pod, /) -> str:
        return "it is a mirror Pod" if MIRROR_ANNOTATION in pod.annotations else ""
