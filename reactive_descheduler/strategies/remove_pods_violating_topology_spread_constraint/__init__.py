"""RemovePodsViolatingTopologySpreadConstraint: evicts Pods where a constraint's domains have become
uneven."""

from .arguments import TopologySpreadArguments
from .strategy import RemovePodsViolatingTopologySpreadConstraint

__all__ = ["RemovePodsViolatingTopologySpreadConstraint", "TopologySpreadArguments"]
