"""The read views of what surrounds Pods: namespaces, disruption budgets, volumes and their
claims, priority classes."""

from __future__ import annotations

import msgspec

from reactive_descheduler.api.meta import Ref
from reactive_descheduler.api.terms import LabelSelector, NodeSelector

_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_PLACE_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": _ZONE,
    "failure-domain.beta.kubernetes.io/region": _REGION,
}
"""Old names of labels, and what they are called now."""
PLACE_LABELS = (_ZONE, _REGION, *OLD_PLACE_LABELS)
"""The labels that say where a volume or a node is, without any affinity."""


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
    volume: str = ""
    """Name of the PersistentVolume that it is bound to; empty as long as it is not."""
    deleted: bool = False
    """`metadata.deletionTimestamp` is set: it goes once no Pod uses it, and no new one may."""
    opaque: str = ""

    @property
    def ref(self) -> Ref:
        return ("PersistentVolumeClaim", self.namespace, self.name)


class PersistentVolume(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A volume with what says from where it can be reached."""

    name: str
    uid: str
    resource_version: str
    affinity: NodeSelector | None = None
    places: dict[str, str] = {}
    """Its labels of zone and region; a value may name several, with `__` between."""
    namespace: str = ""
    opaque: str = ""

    @property
    def ref(self) -> Ref:
        return ("PersistentVolume", "", self.name)


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
