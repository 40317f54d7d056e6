"""Pods whose data would be lost."""

from __future__ import annotations

from typing import ClassVar

from reactive_descheduler.api.pod import Pod
from reactive_descheduler.config.evictor import Protection
from reactive_descheduler.framework.pod_filter import PodFilter


class PodsWithLocalStorage(PodFilter):
    """Volumes of a Pod never change."""

    NAME: ClassVar[str] = Protection.LOCAL_STORAGE

    def reason(self, pod: Pod, /) -> str:
        return "it has local storage (hostPath or emptyDir)" if pod.template.local_storage else ""
