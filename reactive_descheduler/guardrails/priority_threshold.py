"""Pods of a priority that the policy protects."""

from __future__ import annotations

from typing import ClassVar

from reactive_descheduler.api.pod import Pod
from reactive_descheduler.framework.pod_filter import PodFilter


class PriorityThreshold(PodFilter):
    """A Pod without a priority is below every threshold."""

    NAME: ClassVar[str] = "priorityThreshold"

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold

    def reason(self, pod: Pod, /) -> str:
        priority = pod.template.priority
        if priority is None or priority < self._threshold:
            return ""
        return f"its priority {priority} is not below the threshold {self._threshold}"
