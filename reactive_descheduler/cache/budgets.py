"""Which budgets select which Pods."""

from __future__ import annotations

from collections.abc import Sequence

from reactive_descheduler.api.pod import Pod, PodTemplate
from reactive_descheduler.api.selectors import SelectorError, matches
from reactive_descheduler.api.surroundings import PodDisruptionBudget

_SLACK = 64


class BudgetIndex:
    """Budgets by namespace, and by template the ones that select it.

    Whether a budget selects a Pod hangs on namespace and labels alone, so the Pods of one template
    share one answer until a budget of the namespace comes, goes or selects otherwise.
    """

    def __init__(self) -> None:
        self._budgets: dict[str, dict[str, PodDisruptionBudget]] = {}
        self._selecting: dict[str, dict[PodTemplate, tuple[str, ...]]] = {}

    def update(self, old: PodDisruptionBudget | None, new: PodDisruptionBudget | None) -> None:
        """Follow one change of one budget; both sides have the same name."""
        changed = new if new is not None else old
        assert changed is not None  # a change has at least one side
        if old is None or new is None or not _selects_alike(old, new):
            self._selecting.pop(changed.namespace, None)
        budgets = self._budgets.setdefault(changed.namespace, {})
        if new is not None:
            budgets[new.name] = new
        else:
            del budgets[changed.name]
            if not budgets:
                del self._budgets[changed.namespace]

    def of_namespace(self, namespace: str) -> Sequence[PodDisruptionBudget]:
        budgets = self._budgets.get(namespace, {})
        return [budgets[name] for name in sorted(budgets)]

    def of_pod(self, pod: Pod) -> Sequence[PodDisruptionBudget]:
        """Return the budgets that select the Pod, by name; one with an invalid selector selects
        none."""
        budgets = self._budgets.get(pod.namespace)
        if budgets is None:
            return ()
        known = self._selecting.setdefault(pod.namespace, {})
        names = known.get(pod.template)
        if names is None:
            names = tuple(name for name in sorted(budgets) if _selects(budgets[name], pod))
            known[pod.template] = names
        return [budgets[name] for name in names]

    def trim(self, namespace: str, pods: int) -> None:
        """Forget answers for templates that went, once they outnumber the namespace's Pods."""
        if len(self._selecting.get(namespace, ())) > pods + _SLACK:
            del self._selecting[namespace]


def _selects(budget: PodDisruptionBudget, pod: Pod) -> bool:
    try:
        return matches(budget.selector, pod.template.labels)
    except SelectorError:
        return False


def _selects_alike(old: PodDisruptionBudget, new: PodDisruptionBudget) -> bool:
    return old.selector == new.selector
