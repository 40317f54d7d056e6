"""What a policy says about topology spread."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from reactive_descheduler.api.scheduling.spread import HARD, SOFT
from reactive_descheduler.config.args import Listed
from reactive_descheduler.framework.pod_strategy import PodArguments, one_of

_Kind = Annotated[str, AfterValidator(one_of(frozenset({HARD, SOFT})))]


class TopologySpreadArguments(PodArguments):
    """Arguments of RemovePodsViolatingTopologySpreadConstraint."""

    constraints: Annotated[
        Listed[_Kind],
        Field(
            description="Which constraints are looked at, by their whenUnsatisfiable; none means"
            " DoNotSchedule."
        ),
    ] = (HARD,)
    topology_balance_node_fit: Annotated[
        bool, Field(description="Whether a Pod goes only if a node with fewer of them takes it.")
    ] = True

    @property
    def kinds(self) -> tuple[str, ...]:
        return self.constraints or (HARD,)
