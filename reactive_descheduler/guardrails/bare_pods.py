"""Pods that nothing would replace."""

from __future__ import annotations

from typing import ClassVar

from reactive_descheduler.api.changes import Action
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.config.evictor import Protection
from reactive_descheduler.framework.pod_filter import PodFilter


class FailedBarePods(PodFilter):
    """In force it protects all Pods without an owner; switched off, those that have not failed."""

    NAME: ClassVar[str] = Protection.FAILED_BARE
    LIFTED_BY: ClassVar[Action] = Action.POD_OWNERS | Action.POD_PHASE

    def __init__(self, *, spare_failed: bool) -> None:
        self._spare_failed = spare_failed

    def reason(self, pod: Pod, /) -> str:
        if pod.template.owners:
            return ""
        if self._spare_failed:
            return "it has no owner to replace it"
        return "" if pod.phase == "Failed" else "it has no owner to replace it, and has not failed"
