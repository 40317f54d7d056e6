"""RemovePodsHavingTooManyRestarts: evicts Pods whose containers keep restarting.

The count never goes down: a Pod with an old pile of restarts stays eligible until it is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from reactive_descheduler.api.changes import Action, Change
from reactive_descheduler.api.eviction import Cause
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import ContainerStatus, Pod
from reactive_descheduler.config.args import Listed, Positive32
from reactive_descheduler.config.corrections import Corrections
from reactive_descheduler.config.evictor import DefaultEvictorArguments
from reactive_descheduler.framework.pod_strategy import (
    COMMON_EVENTS,
    PodArguments,
    PodStrategy,
    Violation,
    one_of,
)
from reactive_descheduler.framework.strategy import Scope, Subscription, View

STATES = frozenset({"Running", "CrashLoopBackOff"})
"""A phase of the Pod and a reason that a container waits."""


class TooManyRestartsArguments(PodArguments):
    """Arguments of RemovePodsHavingTooManyRestarts."""

    pod_restart_threshold: Annotated[
        Positive32, Field(description="Restarts of all containers together from which on to evict.")
    ]
    including_init_containers: Annotated[
        bool, Field(description="Whether init containers, sidecars among them, count too.")
    ] = False
    states: Annotated[
        Listed[Annotated[str, AfterValidator(one_of(STATES))]],
        Field(description="Only Pods in one of these: Running, CrashLoopBackOff; none means any."),
    ] = ()


class RemovePodsHavingTooManyRestarts(PodStrategy):
    NAME: ClassVar[str] = "RemovePodsHavingTooManyRestarts"
    EVENTS: ClassVar[tuple[Subscription, ...]] = (
        *COMMON_EVENTS,
        Subscription(Action.POD_RESTARTS, Scope.POD),
        # Only with `states`.
        Subscription(Action.POD_STATES | Action.POD_PHASE, Scope.POD),
    )
    FINISHED_TOO: ClassVar[bool] = True
    READS_POD: ClassVar[Action] = Action.POD_RESTARTS | Action.POD_STATES

    def __init__(
        self,
        arguments: TooManyRestartsArguments,
        *,
        profile: int,
        corrections: Corrections,
        evictor: DefaultEvictorArguments | None = None,
    ) -> None:
        super().__init__(arguments, profile=profile, predicates=(self._violation,))
        self._threshold = arguments.pod_restart_threshold
        self._init_too = arguments.including_init_containers
        self._states = frozenset(arguments.states)

    def breaks(self, cause: Cause, change: Change, /) -> bool:
        """Say whether the Pod left the states asked for, if only for a moment."""
        pod = change.new
        return isinstance(pod, Pod) and cause.ident == (pod.uid,) and not self._violates(pod)

    def _violation(self, _view: View, pod: Pod, _node: Node) -> Violation | None:
        if not self._violates(pod):
            return None
        cause = Cause("restarts", (pod.uid,), (pod.ref,), proven_since=self._proven_since(pod))
        restarts = self._restarts(pod)
        reason = f"{restarts} restarts, threshold {self._threshold}"
        return Violation(cause, reason, rank=-restarts)

    def _violates(self, pod: Pod) -> bool:
        return self._restarts(pod) >= self._threshold and (
            not self._states or not self._states.isdisjoint(self._found_states(pod))
        )

    def _proven_since(self, pod: Pod) -> datetime | None:
        """Restarts stand for themselves, there is nothing to settle; a state may pass at once."""
        return None if self._states else pod.started or pod.created

    def _restarts(self, pod: Pod) -> int:
        return sum(container.restarts for container in self._containers(pod))

    def _found_states(self, pod: Pod) -> Iterable[str]:
        yield pod.phase
        yield from (container.waiting for container in self._containers(pod))

    def _containers(self, pod: Pod) -> tuple[ContainerStatus, ...]:
        return pod.containers + (pod.init_containers if self._init_too else ())
