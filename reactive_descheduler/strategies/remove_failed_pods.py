"""RemoveFailedPods: evicts Pods that have failed, once they are old enough.

Age counts from creation, not from the failure, and is inclusive. Every criterion that is configured
has to hold; reasons and exit codes may be satisfied by different containers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Annotated, ClassVar

from pydantic import Field

from reactive_descheduler.api.changes import Action, Change, Key
from reactive_descheduler.api.eviction import Cause
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import ContainerStatus, Pod
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.config.args import Int32, Listed, Unsigned
from reactive_descheduler.config.corrections import Corrections
from reactive_descheduler.config.evictor import DefaultEvictorArguments
from reactive_descheduler.framework.pod_strategy import (
    COMMON_EVENTS,
    NotYet,
    PodArguments,
    PodStrategy,
    Violation,
    after,
)
from reactive_descheduler.framework.strategy import Scope, Subscription, View

DEFAULT_LIFETIME = 3600


class FailedPodsArguments(PodArguments):
    """Arguments of RemoveFailedPods."""

    exclude_owner_kinds: Annotated[
        Listed[str], Field(description="No Pods with an owner of one of these kinds.")
    ] = ()
    min_pod_lifetime_seconds: Annotated[
        Unsigned, Field(description="Age in seconds, since creation, that Pods must have.")
    ] = DEFAULT_LIFETIME
    reasons: Annotated[
        Listed[str],
        Field(description="Only Pods with one of these as a reason of their status or container."),
    ] = ()
    exit_codes: Annotated[
        Listed[Int32], Field(description="Only Pods with a container that ended with one of these.")
    ] = ()
    including_init_containers: Annotated[
        bool, Field(description="Whether reasons and exit codes of init containers count too.")
    ] = False


def _has_failed(change: Change, _lister: Lister, _key: Key) -> bool:
    return isinstance(change.new, Pod) and change.new.phase == "Failed"


class RemoveFailedPods(PodStrategy):
    NAME: ClassVar[str] = "RemoveFailedPods"
    EVENTS: ClassVar[tuple[Subscription, ...]] = (
        *COMMON_EVENTS,
        Subscription(
            Action.POD_PHASE | Action.POD_STATES | Action.POD_OWNERS, Scope.POD, _has_failed
        ),
    )
    FINISHED_TOO: ClassVar[bool] = True
    READS_POD: ClassVar[Action] = Action.POD_STATES

    def __init__(
        self,
        arguments: FailedPodsArguments,
        *,
        profile: int,
        corrections: Corrections,
        evictor: DefaultEvictorArguments | None = None,
    ) -> None:
        super().__init__(arguments, profile=profile, predicates=(self._violation,))
        self._excluded_kinds = frozenset(arguments.exclude_owner_kinds)
        self._lifetime = arguments.min_pod_lifetime_seconds
        self._reasons = frozenset(arguments.reasons)
        self._exit_codes = frozenset(arguments.exit_codes)
        self._init_too = arguments.including_init_containers

    def breaks(self, cause: Cause, change: Change, /) -> bool:
        """Say whether the Pod is no longer one that is looked for."""
        pod = change.new
        return isinstance(pod, Pod) and cause.ident == (pod.uid,) and not self._matches(pod)

    def _violation(self, view: View, pod: Pod, _node: Node) -> Violation | NotYet | None:
        if not self._matches(pod):
            return None
        due = self._due(pod, view.now)
        if due is None:
            return None
        if view.now < due:
            return NotYet(due, f"it has failed, and is due at {due:%FT%TZ}")
        # What has failed stays so: there is nothing to settle.
        cause = Cause("failed", (pod.uid,), (pod.ref,), proven_since=pod.created)
        return Violation(cause, self._reason(pod))

    def _due(self, pod: Pod, now: datetime) -> datetime | None:
        """Return from when on it is old enough; None if that never comes."""
        if not self._lifetime:
            # Also one without a creation time, or with one that lies ahead, is zero seconds old.
            return now
        return after(pod.created, self._lifetime)

    def _matches(self, pod: Pod) -> bool:
        return (
            pod.phase == "Failed"
            and self._excluded_kinds.isdisjoint(owner.kind for owner in pod.template.owners)
            and (not self._reasons or not self._reasons.isdisjoint(self._found_reasons(pod)))
            and (not self._exit_codes or not self._exit_codes.isdisjoint(self._found_codes(pod)))
        )

    def _found_reasons(self, pod: Pod) -> Iterator[str]:
        yield pod.reason
        for container in self._containers(pod):
            yield container.waiting
            yield container.terminated

    def _found_codes(self, pod: Pod) -> Iterator[int | None]:
        return (container.exit_code for container in self._containers(pod))

    def _containers(self, pod: Pod) -> Iterable[ContainerStatus]:
        return pod.containers + (pod.init_containers if self._init_too else ())

    def _reason(self, pod: Pod) -> str:
        parts = ["it has failed"]
        if self._reasons:
            parts.append(", ".join(sorted(self._reasons.intersection(self._found_reasons(pod)))))
        if self._exit_codes:
            found = set(self._found_codes(pod))
            codes = sorted(code for code in self._exit_codes if code in found)
            parts.append(f"exit code {', '.join(map(str, codes))}")
        if self._lifetime and pod.created is not None:
            parts.append(f"created {pod.created:%FT%TZ}, at least {self._lifetime} s ago")
        return "; ".join(parts)
