"""What changed on a PodDisruptionBudget."""

from __future__ import annotations

from collections.abc import Callable

from reactive_descheduler.api.changes import Action
from reactive_descheduler.api.surroundings import PodDisruptionBudget


def selection(old: PodDisruptionBudget | None, new: PodDisruptionBudget | None) -> Action:
    if old and new and (old.selector, old.opaque) == (new.selector, new.opaque):
        return Action(0)
    return Action.BUDGET_SELECTION


def status(old: PodDisruptionBudget | None, new: PodDisruptionBudget | None) -> Action:
    differ = old and new and _status(old) != _status(new)
    return Action.BUDGET_STATUS if differ else Action(0)


def rose(old: PodDisruptionBudget | None, new: PodDisruptionBudget | None) -> Action:
    if old is None:
        return Action(0)
    higher = new is None or new.disruptions_allowed > old.disruptions_allowed
    return Action.BUDGET_ROSE if higher else Action(0)


def _status(budget: PodDisruptionBudget) -> object:
    # The policy for unhealthy Pods is spec, but it too says what the endpoint will grant.
    return (
        budget.unhealthy_pod_eviction_policy,
        budget.generation,
        budget.observed_generation,
        budget.disruptions_allowed,
        budget.current_healthy,
        budget.desired_healthy,
        budget.expected_pods,
        budget.disrupted_pods,
    )


EXTRACTORS: tuple[
    Callable[[PodDisruptionBudget | None, PodDisruptionBudget | None], Action], ...
] = (selection, status, rose)
