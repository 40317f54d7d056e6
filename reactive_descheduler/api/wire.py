"""What the API server sends, cut down to the fields that are used.

`msgspec` decodes straight into these, passing over the rest (a third of a Pod is managedFields).
Every optional field may be null as well as absent. A `Raw` field is a stretch of the input that is
not decoded: equal stretches are decoded once (`api.decoding`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Generic, TypeVar

import msgspec
from msgspec import Raw

from reactive_descheduler.api.pod import PodCondition
from reactive_descheduler.api.terms import (
    LabelSelector,
    NodeSelector,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    Taint,
)

Time = Annotated[datetime, msgspec.Meta(tz=True)]
Amounts = dict[str, str | int | float | None]
NONE = Raw(b"")
T = TypeVar("T")


class Wire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The base of all."""


class Meta(Wire, frozen=True, gc=False):
    name: str
    namespace: str | None = ""
    uid: str | None = ""
    resource_version: str | None = ""
    labels: Raw = NONE
    annotations: Raw = NONE
    owner_references: Raw = NONE
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    generation: int | None = 0


class Container(Wire, frozen=True, gc=False):
    image: Raw = NONE
    resources: Raw = NONE
    ports: Raw = NONE
    restart_policy: Raw = NONE


class Volume(Wire, frozen=True, gc=False):
    host_path: Raw = NONE
    empty_dir: Raw = NONE
    persistent_volume_claim: Raw = NONE


class PodSpec(Wire, frozen=True, gc=False):
    node_name: str | None = ""
    priority: int | None = None
    node_selector: Raw = NONE
    affinity: Raw = NONE
    tolerations: Raw = NONE
    topology_spread_constraints: Raw = NONE
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    volumes: list[Volume] | None = None
    overhead: Raw = NONE
    resources: Raw = NONE
    resource_claims: Raw = NONE


class Waiting(Wire, frozen=True, gc=False):
    reason: str | None = ""


class Terminated(Wire, frozen=True, gc=False):
    reason: str | None = ""
    exit_code: int | None = 0


class ContainerState(Wire, frozen=True, gc=False):
    waiting: Waiting | None = None
    terminated: Terminated | None = None


class StatusOfContainer(Wire, frozen=True, gc=False):
    restart_count: int | None = 0
    state: ContainerState | None = None


class PodStatus(Wire, frozen=True, gc=False):
    phase: str | None = ""
    reason: str | None = ""
    start_time: Time | None = None
    qos_class: str | None = ""
    conditions: tuple[PodCondition, ...] | None = ()
    container_statuses: list[StatusOfContainer] | None = None
    init_container_statuses: list[StatusOfContainer] | None = None
    ephemeral_container_statuses: list[StatusOfContainer] | None = None


class WirePod(Wire, frozen=True, gc=False):
    metadata: Meta
    spec: PodSpec | None = None
    status: PodStatus | None = None


class NodeSpec(Wire, frozen=True, gc=False):
    taints: tuple[Taint, ...] | None = ()
    unschedulable: bool | None = False


class NodeCondition(Wire, frozen=True, gc=False):
    type: str = ""
    status: str = ""


class NodeStatus(Wire, frozen=True, gc=False):
    conditions: list[NodeCondition] | None = None
    allocatable: Amounts | None = None
    capacity: Amounts | None = None


class WireNode(Wire, frozen=True, gc=False):
    metadata: Meta
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class WireNamespace(Wire, frozen=True, gc=False):
    metadata: Meta


class BudgetSpec(Wire, frozen=True, gc=False):
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class BudgetStatus(Wire, frozen=True, gc=False):
    observed_generation: int | None = 0
    disruptions_allowed: int | None = 0
    current_healthy: int | None = 0
    desired_healthy: int | None = 0
    expected_pods: int | None = 0
    disrupted_pods: dict[str, str | None] | None = None


class WireBudget(Wire, frozen=True, gc=False):
    metadata: Meta
    spec: BudgetSpec | None = None
    status: BudgetStatus | None = None


class ClaimSpec(Wire, frozen=True, gc=False):
    storage_class_name: str | None = ""
    volume_name: str | None = ""


class VolumeAffinity(Wire, frozen=True, gc=False):
    required: NodeSelector | None = None


class VolumeSpec(Wire, frozen=True, gc=False):
    node_affinity: VolumeAffinity | None = None


class WireVolume(Wire, frozen=True, gc=False):
    metadata: Meta
    spec: VolumeSpec | None = None


class WireClaim(Wire, frozen=True, gc=False):
    metadata: Meta
    spec: ClaimSpec | None = None


class WirePriorityClass(Wire, frozen=True, gc=False):
    metadata: Meta
    value: int | None = 0


class ListMeta(Wire, frozen=True, gc=False):
    resource_version: str | None = ""
    continue_: str | None = msgspec.field(default="", name="continue")


class WireList(Wire, Generic[T], frozen=True, gc=False):
    metadata: ListMeta | None = None
    items: list[T] | None = None


class Line(Wire, Generic[T], frozen=True, gc=False):
    """One line of a watch."""

    type: str
    object: T


class Bookmark(Wire, frozen=True, gc=False):
    """The object of a BOOKMARK; beside its version nothing in it need be well-formed."""

    metadata: ListMeta


class StatusDetails(Wire, frozen=True, gc=False):
    retry_after_seconds: float | None = None


class Status(Wire, frozen=True, gc=False):
    """The object of an ERROR."""

    code: int | None = 0
    reason: str | None = ""
    message: str | None = ""
    details: StatusDetails | None = None


class Resources(Wire, frozen=True, gc=False):
    requests: Amounts | None = None
    limits: Amounts | None = None


class Port(Wire, frozen=True, gc=False):
    host_port: int | None = 0
    host_ip: str | None = msgspec.field(default="", name="hostIP")
    protocol: str | None = "TCP"


class ClaimSource(Wire, frozen=True, gc=False):
    claim_name: str | None = ""


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class NodeAffinity(Wire, frozen=True, gc=False):
    required: NodeSelector | None = msgspec.field(default=None, name=_REQUIRED)
    preferred: tuple[PreferredSchedulingTerm, ...] | None = msgspec.field(
        default=(), name=_PREFERRED
    )


class PodTerms(Wire, frozen=True, gc=False):
    """Of Pod affinity, or of anti-affinity."""

    required: tuple[PodAffinityTerm, ...] | None = msgspec.field(default=(), name=_REQUIRED)


class Affinity(Wire, frozen=True, gc=False):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodTerms | None = None
    pod_anti_affinity: PodTerms | None = None
