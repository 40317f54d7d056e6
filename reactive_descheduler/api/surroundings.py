"""The read views of what surrounds Pods: namespaces, disruption budgets, volume claims, priority
classes."""

from __future__ import annotations

import msgspec

from reactive_descheduler.api.meta import Ref
from reactive_descheduler.api.terms import LabelSelector


class Namespace(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    name: str
    uid: str
    resource_version: str
    labels: dict[str, str] = {}
    namespace: str = ""
    opaque: str = ""

    @property
    def ref(self) -> Ref:
        return ("Namespace", "", self.name)


class PodDisruptionBudget(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A budget with the status that the disruption controller and the eviction endpoint keep."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    selector: LabelSelector | None = None
    """None selects nothing, an empty one everything (policy/v1)."""
    unhealthy_pod_eviction_policy: str = "IfHealthyBudget"
    generation: int = 0
    observed_generation: int = 0
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    disrupted_pods: tuple[str, ...] = ()
    """Names of Pods whose eviction was granted, while they are still there."""
    opaque: str = ""

    @property
    def ref(self) -> Ref:
        return ("PodDisruptionBudget", self.namespace, self.name)


class PersistentVolumeClaim(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    namespace: str
    name: str
    uid: str
    resource_version: str
    storage_class: str = ""
    opaque: str = ""

    @property
    def ref(self) -> Ref:
        return ("PersistentVolumeClaim", self.namespace, self.name)


class PriorityClass(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    name: str
    uid: str
    resource_version: str
    value: int = 0
    namespace: str = ""
    opaque: str = ""

    @property
    def ref(self) -> Ref:
        return ("PriorityClass", "", self.name)
