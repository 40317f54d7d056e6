"""The strategies that there are, in one table.

To add one: a file with its arguments and its class, and its line in IN_TREE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from reactive_descheduler.config.args import Arguments
from reactive_descheduler.config.loaded import PluginSpec
from reactive_descheduler.framework.strategy import Strategy, Subscription

from .node_utilization import (
    HighNodeUtilization,
    HighNodeUtilizationArguments,
    LowNodeUtilization,
    LowNodeUtilizationArguments,
)
from .pod_life_time import PodLifeTime, PodLifeTimeArguments
from .remove_duplicates import DuplicatesArguments, RemoveDuplicates
from .remove_failed_pods import FailedPodsArguments, RemoveFailedPods
from .remove_pods_having_too_many_restarts import (
    RemovePodsHavingTooManyRestarts,
    TooManyRestartsArguments,
)
from .remove_pods_violating_inter_pod_anti_affinity import (
    AntiAffinityArguments,
    RemovePodsViolatingInterPodAntiAffinity,
)
from .remove_pods_violating_node_affinity import (
    NodeAffinityArguments,
    RemovePodsViolatingNodeAffinity,
)
from .remove_pods_violating_node_taints import NodeTaintsArguments, RemovePodsViolatingNodeTaints
from .remove_pods_violating_topology_spread_constraint import (
    RemovePodsViolatingTopologySpreadConstraint,
    TopologySpreadArguments,
)


class InTree(NamedTuple):
    """A strategy of ours and what the rest has to know of it."""

    strategy: Callable[..., Strategy]
    """Its class, called as `(arguments, *, profile, corrections, evictor)`."""
    urgency: int
    """Whose candidates go first when there are more than may go now; lower is more urgent."""
    spec: PluginSpec
    events: tuple[Subscription, ...]
    """Its subscriptions, for the list of triggers."""


def _built(strategy: type[Strategy], arguments: type[Arguments], urgency: int) -> InTree:
    spec = PluginSpec(strategy.NAME, frozenset({strategy.PHASE.value}), arguments)
    return InTree(strategy, urgency, spec, strategy.EVENTS)


IN_TREE: tuple[InTree, ...] = (
    # The node says that it does not want them: the sooner the better.
    _built(RemovePodsViolatingNodeTaints, NodeTaintsArguments, 0),
    # They should not be there, but they work.
    _built(RemovePodsViolatingNodeAffinity, NodeAffinityArguments, 10),
    _built(RemovePodsViolatingInterPodAntiAffinity, AntiAffinityArguments, 10),
    # They are where they may be, and do not work well.
    _built(RemovePodsHavingTooManyRestarts, TooManyRestartsArguments, 20),
    # They work, but the end of a node or zone would take too many of them.
    _built(RemovePodsViolatingTopologySpreadConstraint, TopologySpreadArguments, 24),
    _built(RemoveDuplicates, DuplicatesArguments, 25),
    # They have waited for long and can wait longer.
    _built(PodLifeTime, PodLifeTimeArguments, 30),
    # They have ended and hold no room: nobody waits for it.
    _built(RemoveFailedPods, FailedPodsArguments, 40),
    # They work; others are crowded by them.
    _built(LowNodeUtilization, LowNodeUtilizationArguments, 50),
    # They work and crowd nobody; it only saves a node.
    _built(HighNodeUtilization, HighNodeUtilizationArguments, 60),
)
"""Ordered by urgency."""

PLUGINS: Mapping[str, PluginSpec] = {each.spec.name: each.spec for each in IN_TREE}
"""What the loader of policies has to know."""
