"""Checked, never run: what must not type-check is marked, and an unused mark is an error."""

from __future__ import annotations

from reactive_descheduler.api.changes import Action, At, Never, On, Wakes
from reactive_descheduler.api.eviction import Held, Rejection
from reactive_descheduler.evictor.gates.bucket import BucketGate
from reactive_descheduler.evictor.gates.clock import ClockGate
from reactive_descheduler.evictor.gates.lane import LaneGate
from reactive_descheduler.evictor.gates.limits import LimitsGate
from reactive_descheduler.evictor.gates.permission import PermissionGate
from reactive_descheduler.evictor.gates.reported import ReportedGate
from reactive_descheduler.evictor.gates.retry import RetryGate
from reactive_descheduler.evictor.gates.settle import SettleGate
from reactive_descheduler.evictor.gates.staleness import StalenessGate
from reactive_descheduler.evictor.gates.synced import SyncedGate
from reactive_descheduler.framework.gate import Gate

ONE: Wakes = (Never("uid"),)
SEVERAL: Wakes = (On(Action.NODE_TAINTS, None), Never("uid"))

Rejection("filter", "why", ONE)
Held("gate", "why", SEVERAL)
Rejection("filter", "why", ())  # type: ignore[arg-type]
Held("gate", "why", ())  # type: ignore[arg-type]
Rejection("filter", "why")  # type: ignore[call-arg]


def every_gate_is_one(
    gates: tuple[
        BucketGate,
        ClockGate,
        LaneGate,
        LimitsGate,
        PermissionGate,
        ReportedGate,
        RetryGate,
        SettleGate,
        StalenessGate,
        SyncedGate,
    ],
) -> list[Gate]:
    return [*gates]


def a_time_alone_is_enough(at: At) -> Wakes:
    return (at,)
