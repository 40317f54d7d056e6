"""Pods of DaemonSets, which would come back to the same node."""

from __future__ import annotations

from typing import ClassVar

from reactive_descheduler.api.changes import Action
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.config.evictor import Protection
from reactive_descheduler.framework.pod_filter import PodFilter


class DaemonSetPods(PodFilter):
    """Any owner of that kind counts, the controller or not."""

    NAME: ClassVar[str] = Protection.DAEMON_SET
    LIFTED_BY: ClassVar[Action] = Action.POD_OWNERS

    def reason(self, pod: Pod, /) -> str:
        names = [owner.name for owner in pod.template.owners if owner.kind == "DaemonSet"]
        return f"it belongs to DaemonSet {names[0]}" if names else ""
