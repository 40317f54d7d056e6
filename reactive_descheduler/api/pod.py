"""The read view of a Pod: what is its own, and the template that it shares with its siblings."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

import msgspec

from reactive_descheduler.api.meta import OwnerReference, Ref
from reactive_descheduler.api.terms import (
    NodeSelector,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    Toleration,
    TopologySpreadConstraint,
)

EVICT_ANNOTATION = "descheduler.alpha.kubernetes.io/evict"
PREFER_NO_EVICTION_ANNOTATION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
REQUEST_EVICT_ONLY_ANNOTATION = "descheduler.alpha.kubernetes.io/request-evict-only"
EVICTION_IN_PROGRESS_ANNOTATION = "descheduler.alpha.kubernetes.io/eviction-in-progress"
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
CONFIG_SOURCE_ANNOTATION = "kubernetes.io/config.source"

READ_ANNOTATIONS = frozenset(
    {
        EVICT_ANNOTATION,
        PREFER_NO_EVICTION_ANNOTATION,
        REQUEST_EVICT_ONLY_ANNOTATION,
        EVICTION_IN_PROGRESS_ANNOTATION,
        MIRROR_ANNOTATION,
        CONFIG_SOURCE_ANNOTATION,
    }
)
"""The only annotations that a view keeps: others (an IP, a checksum) differ from Pod to Pod and
decide nothing."""


class PodTemplate(msgspec.Struct, frozen=True, eq=False, gc=False, kw_only=True):
    """What the Pods of one workload share. Interned by content, so identity is equality and `is`
    tells a change.

    Resources are exact, in billionths of the base unit (`api.quantity`): a sum is rounded once, at
    the end.
    """

    labels: dict[str, str]
    owners: tuple[OwnerReference, ...]
    node_selector: dict[str, str]
    required_node_affinity: NodeSelector | None = None
    preferred_node_affinity: tuple[PreferredSchedulingTerm, ...] = ()
    pod_affinity: tuple[PodAffinityTerm, ...] = ()
    """Required terms only; so of anti-affinity."""
    anti_affinity: tuple[PodAffinityTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    priority: int | None = None
    requests: dict[str, int]
    """By resource name, as the scheduler counts them (spec/strategies 2.8)."""
    requested: tuple[str, ...] = ()
    """Names that some container or init container requests, be it nothing; not what only the Pod as
    a whole does."""
    computed_qos: str = "BestEffort"
    """QoS class computed from requests and limits (2.6), for a Pod whose status does not name
    one."""
    images: tuple[str, ...] = ()
    local_storage: bool = False
    """Some volume is a hostPath or an emptyDir."""
    claims: tuple[str, ...] = ()
    """Names of PersistentVolumeClaims that its volumes refer to."""
    resource_claims: bool = False
    host_ports: tuple[str, ...] = ()
    """As `address:port/protocol`."""


class ContainerStatus(msgspec.Struct, frozen=True, gc=False):
    """One container's restarts and present state; empty texts and None where it is in no such
    state."""

    restarts: int = 0
    waiting: str = ""
    terminated: str = ""
    exit_code: int | None = None


class PodCondition(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str | None = ""
    last_transition_time: datetime | None = None


class Pod(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One Pod. Times are aware datetimes in UTC, None where the field is absent."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    template: PodTemplate
    created: datetime | None = None
    deleted: datetime | None = None
    """`metadata.deletionTimestamp`: set from the moment that it terminates."""
    annotations: dict[str, str] = {}
    """Those of READ_ANNOTATIONS that it carries."""
    node_name: str = ""
    phase: str = ""
    reason: str = ""
    started: datetime | None = None
    ready: bool = False
    qos_class: str = ""
    containers: tuple[ContainerStatus, ...] = ()
    init_containers: tuple[ContainerStatus, ...] = ()
    ephemeral_containers: tuple[ContainerStatus, ...] = ()
    conditions: tuple[PodCondition, ...] = ()
    opaque: str = ""

    @property
    def ref(self) -> Ref:
        return ("Pod", self.namespace, self.name)

    @property
    def active(self) -> bool:
        """Neither Succeeded nor Failed: it counts for room and for list-active (spec/strategies
        1.3)."""
        return self.phase not in ("Succeeded", "Failed")

    @property
    def qos(self) -> str:
        return self.qos_class or self.template.computed_qos


class Kin(NamedTuple):
    """Whom labels and namespaces cannot tell apart: the Pods of one namespace and template."""

    namespace: str
    template: PodTemplate


def kin(pod: Pod) -> Kin:
    return Kin(pod.namespace, pod.template)


class Shape(NamedTuple):
    """What node fit looks at in a Pod: Pods of one shape fit the same nodes, but for their own and
    for neighbours that they cannot bear. A cluster has thousands of templates, but few shapes."""

    node_selector: tuple[tuple[str, str], ...]
    required_node_affinity: NodeSelector | None
    tolerations: tuple[Toleration, ...]
    requests: tuple[tuple[str, int], ...]


def shape(pod: Pod) -> Shape:
    """Return the shape under which "fits nowhere" is remembered."""
    return _shape(pod.template)


@lru_cache(maxsize=10_000)
def _shape(template: PodTemplate) -> Shape:
    return Shape(
        tuple(sorted(template.node_selector.items())),
        template.required_node_affinity,
        template.tolerations,
        tuple(sorted(template.requests.items())),
    )


def controller(pod: Pod) -> OwnerReference | None:
    """Return the owner that replaces the Pod: the controller, else the first owner."""
    owners = pod.template.owners
    for owner in owners:
        if owner.controller:
            return owner
    return owners[0] if owners else None


def workload(pod: Pod) -> Ref | None:
    """Return the top controller: the Deployment behind a ReplicaSet, else the owner itself; None
    for a bare Pod.

    A ReplicaSet of a Deployment is named after it and the Pods' `pod-template-hash`, which saves
    watching ReplicaSets.
    """
    owner = controller(pod)
    if owner is None:
        return None
    template_hash = pod.template.labels.get("pod-template-hash")
    suffix = f"-{template_hash}"
    if owner.kind == "ReplicaSet" and template_hash and owner.name.endswith(suffix):
        return ("Deployment", pod.namespace, owner.name.removesuffix(suffix))
    return (owner.kind, pod.namespace, owner.name)
