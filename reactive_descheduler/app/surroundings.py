"""What the core takes from outside."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from reactive_descheduler.config.feature_gates import FeatureGates
from reactive_descheduler.evictor.worker import EvictionClient
from reactive_descheduler.kit.clock import Clock
from reactive_descheduler.observability.hooks import Hook
from reactive_descheduler.observability.metrics import Metrics

StreamAges = Callable[[], Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the core takes from outside."""

    clock: Clock
    client: EvictionClient
    metrics: Metrics
    hooks: Sequence[Hook] = ()
    stream_ages: StreamAges = field(default=lambda: {})
    """Seconds since each stream that decisions rest on gave a sign of life."""
    feature_gates: FeatureGates = frozenset()
    cut_off: Callable[[], Collection[str]] = field(default=tuple)
    """Kinds of these streams whose watch failed and has not caught up since."""
    not_synced: Callable[[], list[str]] = field(default=list)
    """Kinds whose first list is not complete."""
    budgets_stale: Callable[[], bool] = field(default=lambda: False)
