"""The read view of a Node."""

from __future__ import annotations

import msgspec

from reactive_descheduler.api.meta import Ref
from reactive_descheduler.api.terms import Taint


class Node(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One node. Amounts are in billionths of the base unit (`api.quantity`)."""

    name: str
    uid: str
    resource_version: str
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    """False when some condition of type Ready is not True; a node without that condition is ready
    (spec/strategies 2.2)."""
    allocatable: dict[str, int] = {}
    capacity: dict[str, int] = {}
    namespace: str = ""
    opaque: str = ""

    @property
    def ref(self) -> Ref:
        return ("Node", "", self.name)
