"""Pods that have only just started."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import ClassVar

from reactive_descheduler.api.changes import Action, At, On
from reactive_descheduler.api.eviction import Rejection
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.framework.filter import Reading


class MinPodAge:
    """Age counts from `status.startTime`; a Pod without one is protected even by `0s`."""

    NAME: ClassVar[str] = "minPodAge"

    def __init__(self, least: timedelta) -> None:
        self._least = least

    def check(self, pod: Pod, reading: Reading, /) -> Rejection | None:
        if pod.started is None:
            wake = On(Action.POD_STARTED, pod.ref)
            return Rejection(self.NAME, "it has not started yet", (wake,), pod.ref)
        due = pod.started + self._least
        if reading.now >= due:
            return None
        reason = f"it is younger than minPodAge {self._least}, started {pod.started:%FT%TZ}"
        return Rejection(self.NAME, reason, (At(due),), pod.ref)

    def depends(self, _pod: Pod, _reading: Reading, /) -> Iterable[On]:
        return ()
