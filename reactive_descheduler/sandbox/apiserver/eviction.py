"""The subresource `pods/eviction`: disruption budgets are kept here, not by their controller.

The order of the steps is the real server's, down to its flaw: the budget is taken before the
preconditions of the deletion are checked, so that a stale request still burns budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactive_descheduler.sandbox.apiserver import pods
from reactive_descheduler.sandbox.apiserver.resources import BUDGETS, PODS
from reactive_descheduler.sandbox.apiserver.selectors import matches_labels
from reactive_descheduler.sandbox.apiserver.status import ApiError
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    attach,
    integer,
    is_ready,
    is_terminating,
    labels,
    lookup,
    mapping,
    name_of,
    strings,
    text,
    timestamp,
)

if TYPE_CHECKING:
    from reactive_descheduler.sandbox.apiserver.registry import Registry
    from reactive_descheduler.sandbox.apiserver.store import ObjectKey, Stored

_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_TOO_MANY_BUDGETS = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
    "support."
)
_MOST_DISRUPTED_PODS = 2_000


def evict(registry: Registry, key: ObjectKey, body: JsonObject, *, dry_run: bool) -> None:
    """Evict a Pod, if its disruption budget allows. Raises what `permit` raises."""
    options = mapping(body, "deleteOptions")
    dry_run = dry_run or "All" in strings(options, "dryRun")
    stored = permit(registry, key, body, dry_run=dry_run)
    if dry_run:
        return
    if not is_terminating(stored.document):
        _mark(registry, stored)
    # The mark has moved the version on; what was asked for was checked above.
    unconditional = {name: value for name, value in options.items() if name != "preconditions"}
    registry.delete(PODS, key, unconditional)


def permit(registry: Registry, key: ObjectKey, body: JsonObject, *, dry_run: bool) -> Stored:
    """Take the budget of an eviction and check its preconditions, but leave the Pod as it is.

    Raises ApiError 400 if the names differ, 404 if there is no such Pod, 409 if a precondition
    fails, 429 if the budget forbids it, 500 if two budgets select the Pod.
    """
    if text(body, "kind") not in ("", "Eviction"):
        raise ApiError(400, f"{text(body, 'kind')} cannot be handled as an Eviction")
    if name_of(body) != key[1]:
        raise ApiError(400, "name in URL does not match name in Eviction object")
    stored = registry.get(PODS, key)
    if not _budget_is_moot(stored.document):
        _take_budget(registry, stored, dry_run=dry_run)
    registry.check_preconditions(PODS, stored, mapping(body, "deleteOptions", "preconditions"))
    return stored


def _budget_is_moot(pod: JsonObject) -> bool:
    phase = text(pod, "status", "phase")
    return phase in ("Pending", *pods.FINISHED) or is_terminating(pod)


def _take_budget(registry: Registry, stored: Stored, *, dry_run: bool) -> None:
    namespace, name = stored.key
    budgets = [
        budget
        for (budget_namespace, _), budget in registry.store.of(BUDGETS).objects.items()
        if budget_namespace == namespace
        and matches_labels(lookup(budget.document, "spec", "selector"), labels(stored.document))
    ]
    if len(budgets) > 1:
        raise ApiError(500, _TOO_MANY_BUDGETS, reason="")
    if not budgets or _passes_unready(stored.document, budgets[0].document):
        return
    _check(budgets[0].document)
    if dry_run:
        return
    budget = budgets[0].copy()
    status = attach(budget, "status")
    left = integer(status, "disruptionsAllowed") - 1
    status["disruptionsAllowed"] = left
    attach(status, "disruptedPods")[name] = timestamp(registry.now())
    if left == 0:
        refused: JsonObject = {
            "type": "DisruptionAllowed",
            "status": "False",
            "reason": "InsufficientPods",
            "message": "",
            "observedGeneration": integer(status, "observedGeneration"),
        }
        pods.set_condition(budget, refused, registry.now())
    registry.store.put(BUDGETS, budget)


def _passes_unready(pod: JsonObject, budget: JsonObject) -> bool:
    """An unready Pod is no loss: always under AlwaysAllow, else while the budget is healthy."""
    if is_ready(pod):
        return False
    if text(budget, "spec", "unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    desired = integer(budget, "status", "desiredHealthy")
    return integer(budget, "status", "currentHealthy") >= desired > 0


def _check(budget: JsonObject) -> None:
    name, status = name_of(budget), mapping(budget, "status")
    if integer(status, "observedGeneration") < integer(budget, "metadata", "generation"):
        cause = f"The disruption budget {name} is still being processed by the server."
        raise _refusal(cause, retry_after=10)
    allowed = integer(status, "disruptionsAllowed")
    if allowed < 0 or len(mapping(status, "disruptedPods")) > _MOST_DISRUPTED_PODS:
        why = "pdb disruptions allowed is negative" if allowed < 0 else (
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        )  # fmt: skip
        raise ApiError(403, f'poddisruptionbudget.policy "{name}" is forbidden: {why}')
    if allowed == 0:
        healthy, desired = integer(status, "currentHealthy"), integer(status, "desiredHealthy")
        why = (
            "does not allow evicting pods currently"
            if healthy > desired
            else f"needs {desired} healthy pods and has {healthy} currently"
        )
        raise _refusal(f"The disruption budget {name} {why}")


def _refusal(cause: str, *, retry_after: int = 0) -> ApiError:
    details: JsonObject = {"causes": [{"reason": "DisruptionBudget", "message": cause}]}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    return ApiError(429, _REFUSED, details=details)


def _mark(registry: Registry, stored: Stored) -> None:
    pod = stored.copy()
    mark: JsonObject = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    pods.set_condition(pod, mark, registry.now())
    registry.store.put(PODS, pod)
