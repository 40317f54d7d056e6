"""Pods that the evictor's own label selector leaves out."""

from __future__ import annotations

from typing import ClassVar

from reactive_descheduler.api.changes import Action
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.selectors import Selector, matches
from reactive_descheduler.framework.pod_filter import PodFilter


class PodSelector(PodFilter):
    NAME: ClassVar[str] = "labelSelector"
    LIFTED_BY: ClassVar[Action] = Action.POD_LABELS

    def __init__(self, selector: Selector) -> None:
        self._selector = selector

    def reason(self, pod: Pod, /) -> str:
        if matches(self._selector, pod.template.labels):
            return ""
        return "its labels do not match the evictor's labelSelector"
