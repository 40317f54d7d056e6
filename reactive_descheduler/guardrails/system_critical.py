"""Pods that the cluster cannot do without."""

from __future__ import annotations

from typing import ClassVar

from reactive_descheduler.api.pod import Pod
from reactive_descheduler.config.evictor import HIGHEST_THRESHOLD, Protection
from reactive_descheduler.framework.pod_filter import PodFilter


class SystemCriticalPods(PodFilter):
    """Priority is settled when a Pod is created, so the refusal stands for ever."""

    NAME: ClassVar[str] = Protection.SYSTEM_CRITICAL

    def reason(self, pod: Pod, /) -> str:
        priority = pod.template.priority
        if priority is None or priority < HIGHEST_THRESHOLD:
            return ""
        return f"its priority {priority} is system-critical"
