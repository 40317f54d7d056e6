"""Pods that are going already."""

from __future__ import annotations

from typing import ClassVar

from reactive_descheduler.api.pod import Pod
from reactive_descheduler.framework.pod_filter import PodFilter


class Terminating(PodFilter):
    """A deletion, once asked for, is not taken back: the refusal stands for ever."""

    NAME: ClassVar[str] = "terminating"

    def reason(self, pod: Pod, /) -> str:
        return "it is terminating already" if pod.deleted is not None else ""
