"""Pods with claims to devices (dynamic resource allocation)."""

from __future__ import annotations

from typing import ClassVar

from reactive_descheduler.api.pod import Pod
from reactive_descheduler.config.evictor import Protection
from reactive_descheduler.framework.pod_filter import PodFilter


class PodsWithResourceClaims(PodFilter):
    """Resource claims of a Pod never change."""

    NAME: ClassVar[str] = Protection.RESOURCE_CLAIMS

    def reason(self, pod: Pod, /) -> str:
        return "it has resource claims" if pod.template.resource_claims else ""
