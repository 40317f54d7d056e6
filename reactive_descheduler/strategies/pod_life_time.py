"""PodLifeTime: evicts Pods that are older than allowed, or have long been in some state.

Every criterion that is configured has to hold. Age is strict (from `max + 1 s` on), the time since
a condition's transition is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from math import inf
from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, Field, model_validator

from reactive_descheduler.api.changes import Action, Change
from reactive_descheduler.api.eviction import Candidate, Cause, Stop
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import ContainerStatus, Pod, PodCondition
from reactive_descheduler.config.args import Arguments, Int32, Listed, Unsigned
from reactive_descheduler.config.corrections import Corrections
from reactive_descheduler.config.evictor import DefaultEvictorArguments
from reactive_descheduler.framework.pod_strategy import (
    COMMON_EVENTS,
    NotYet,
    PodArguments,
    PodStrategy,
    Violation,
    after,
    one_of,
)
from reactive_descheduler.framework.strategy import Evaluation, Scope, Subscription, View

_PHASES = {"Running", "Pending", "Succeeded", "Failed", "Unknown"}
_POD_REASONS = {"NodeAffinity", "NodeLost", "Shutdown", "UnexpectedAdmissionError"}
_WAITING = {
    "PodInitializing",
    "ContainerCreating",
    "ImagePullBackOff",
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "ErrImagePull",
    "CreateContainerError",
    "InvalidImageName",
}
_TERMINATED = {
    "OOMKilled",
    "Error",
    "Completed",
    "DeadlineExceeded",
    "Evicted",
    "ContainerCannotRun",
    "StartError",
}
STATES = frozenset(_PHASES | _POD_REASONS | _WAITING | _TERMINATED)
"""Whatever its kind, a state is compared with the phase and with every reason."""

_ALWAYS = datetime.min.replace(tzinfo=UTC)
"""When a condition came due that no time is asked of."""


class OwnerKinds(Arguments):
    """Kinds of owners, exact; at most one of the two lists."""

    include: Annotated[
        Listed[str], Field(description="Only Pods with an owner of one of these kinds.")
    ] = ()
    exclude: Annotated[
        Listed[str], Field(description="No Pods with an owner of one of these kinds.")
    ] = ()

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if self.include and self.exclude:
            raise ValueError("only one of include and exclude may be set in ownerKinds")
        return self


class ConditionFilter(Arguments):
    """A condition of the Pod; what is left out matches anything, but something must be given."""

    type: Annotated[str, Field(description="Type of the condition.")] = ""
    status: Annotated[str, Field(description="Status of the condition.")] = ""
    reason: Annotated[str, Field(description="Reason of the condition.")] = ""
    min_time_since_last_transition_seconds: Annotated[
        Unsigned | None, Field(description="Seconds for which the condition must have stood.")
    ] = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        least = self.min_time_since_last_transition_seconds
        if not (self.type or self.status or self.reason) and least is None:
            raise ValueError(
                "one of type, status, reason and minTimeSinceLastTransitionSeconds must be set"
            )
        return self

    def due(self, condition: PodCondition) -> datetime | None:
        """Return from when on the condition matches; None if it does not, whatever the time."""
        for wanted, found in (
            (self.type, condition.type),
            (self.status, condition.status),
            (self.reason, condition.reason or ""),
        ):
            if wanted not in ("", found):
                return None
        if self.min_time_since_last_transition_seconds is None:
            return _ALWAYS
        since = condition.last_transition_time
        least = self.min_time_since_last_transition_seconds
        return None if since is None else after(since, least)


class PodLifeTimeArguments(PodArguments):
    """Arguments of PodLifeTime."""

    owner_kinds: Annotated[
        OwnerKinds, Field(description="Kinds of owners whose Pods are looked at; none means all.")
    ] = OwnerKinds()
    max_pod_life_time_seconds: Annotated[
        Unsigned | None, Field(description="Age in seconds, since creation, that Pods may reach.")
    ] = None
    states: Annotated[
        Listed[Annotated[str, AfterValidator(one_of(STATES))]],
        Field(description="Only Pods with one of these as phase, or as a reason of their status."),
    ] = ()
    conditions: Annotated[
        Listed[ConditionFilter], Field(description="Only Pods with a condition that one matches.")
    ] = ()
    exit_codes: Annotated[
        Listed[Int32], Field(description="Only Pods with a container that ended with one of these.")
    ] = ()
    including_init_containers: Annotated[
        bool, Field(description="Whether states and exit codes of init containers count too.")
    ] = False
    including_ephemeral_containers: Annotated[
        bool, Field(description="Whether states of ephemeral containers count too.")
    ] = False

    @model_validator(mode="after")
    def _something(self) -> Self:
        aged = self.max_pod_life_time_seconds is not None
        if not (aged or self.states or self.conditions or self.exit_codes):
            raise ValueError(
                "one of maxPodLifeTimeSeconds, states, conditions and exitCodes must be set"
            )
        return self


class PodLifeTime(PodStrategy):
    NAME: ClassVar[str] = "PodLifeTime"
    EVENTS: ClassVar[tuple[Subscription, ...]] = (
        *COMMON_EVENTS,
        Subscription(
            Action.POD_PHASE | Action.POD_STATES | Action.POD_CONDITIONS | Action.POD_OWNERS,
            Scope.POD,
        ),
    )
    FINISHED_TOO: ClassVar[bool] = True
    READS_POD: ClassVar[Action] = Action.POD_STATES | Action.POD_CONDITIONS

    def __init__(
        self,
        arguments: PodLifeTimeArguments,
        *,
        profile: int,
        corrections: Corrections,
        evictor: DefaultEvictorArguments | None = None,
    ) -> None:
        super().__init__(arguments, profile=profile, predicates=(self._violation,))
        self._arguments = arguments
        self._states = frozenset(arguments.states)
        self._exit_codes = frozenset(arguments.exit_codes)

    def sweep(self, view: View, /) -> Evaluation:
        """Offer the Pods of all nodes together, the oldest first; a full node ends nothing."""
        candidates: list[Candidate] = []
        for node in view.nodes.values():
            candidates += yield from self._listed(self._violation, view, node)
        for candidate in sorted(candidates, key=_age_order):
            if (yield from self._offered([candidate])) is Stop.ALL:
                return

    def breaks(self, cause: Cause, change: Change, /) -> bool:
        """Say whether the Pod left what is asked of its state, if only for a moment."""
        pod = change.new
        return isinstance(pod, Pod) and cause.ident == (pod.uid,) and not self._dues(pod)

    def _violation(self, view: View, pod: Pod, _node: Node) -> Violation | NotYet | None:
        dues = self._dues(pod)
        if not dues:
            return None
        due = max(dues)
        if view.now < due:
            return NotYet(due, f"it is due at {due:%FT%TZ}")
        # A state has no time of its own, so only times prove how long the whole has stood.
        timed = min(dues) > _ALWAYS and not self._states and not self._exit_codes
        cause = Cause("age", (pod.uid,), (pod.ref,), proven_since=due if timed else None)
        return Violation(cause, self._reason(pod), _age_rank(pod))

    def _dues(self, pod: Pod) -> list[datetime]:
        """Return when each criterion comes due; nothing if one does not match at all."""
        if not (self._state_matches(pod) and self._owner_matches(pod) and self._exit_matches(pod)):
            return []
        times: list[datetime | None] = []
        longest = self._arguments.max_pod_life_time_seconds
        if longest is not None:
            times.append(after(pod.created, longest + 1))
        if self._arguments.conditions:
            times.append(min(self._conditions_due(pod), default=None))
        dues = [due for due in times if due is not None]
        return (dues or [_ALWAYS]) if len(dues) == len(times) else []

    def _conditions_due(self, pod: Pod) -> Iterator[datetime]:
        for wanted in self._arguments.conditions:
            for condition in pod.conditions:
                due = wanted.due(condition)
                if due is not None:
                    yield due

    def _state_matches(self, pod: Pod) -> bool:
        return not self._states or not self._states.isdisjoint(self._found_states(pod))

    def _found_states(self, pod: Pod) -> Iterator[str]:
        yield pod.phase
        yield pod.reason
        ephemeral = self._arguments.including_ephemeral_containers
        for container in (
            *self._containers(pod),
            *(pod.ephemeral_containers if ephemeral else ()),
        ):
            yield container.waiting
            yield container.terminated

    def _owner_matches(self, pod: Pod) -> bool:
        kinds = {owner.kind for owner in pod.template.owners}
        wanted = self._arguments.owner_kinds
        if wanted.include:
            return not kinds.isdisjoint(wanted.include)
        return kinds.isdisjoint(wanted.exclude)

    def _exit_matches(self, pod: Pod) -> bool:
        return not self._exit_codes or any(
            container.exit_code in self._exit_codes for container in self._containers(pod)
        )

    def _containers(self, pod: Pod) -> Iterable[ContainerStatus]:
        init_too = self._arguments.including_init_containers
        return pod.containers + (pod.init_containers if init_too else ())

    def _reason(self, pod: Pod) -> str:
        parts = []
        if self._arguments.max_pod_life_time_seconds is not None and pod.created is not None:
            longest = self._arguments.max_pod_life_time_seconds
            parts.append(f"older than {longest} s, created {pod.created:%FT%TZ}")
        if self._states:
            found = sorted(self._states.intersection(self._found_states(pod)))
            parts.append(f"in state {', '.join(found)}")
        if self._arguments.conditions:
            parts.append("a condition of it matches")
        if self._exit_codes:
            found_codes = {each.exit_code for each in self._containers(pod)}
            codes = sorted(code for code in self._exit_codes if code in found_codes)
            parts.append(f"a container ended with {', '.join(map(str, codes))}")
        return "; ".join(parts)


def _age_rank(pod: Pod) -> float:
    """Return what puts the oldest first, and whose age is not known before them."""
    return -inf if pod.created is None else pod.created.timestamp()


def _age_order(candidate: Candidate) -> tuple[float, str, str]:
    return (candidate.rank, candidate.pod.namespace, candidate.pod.name)
