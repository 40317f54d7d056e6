"""Pods that no PodDisruptionBudget covers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from reactive_descheduler.api.changes import Action, Never, On
from reactive_descheduler.api.eviction import Rejection
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.config.evictor import Protection
from reactive_descheduler.framework.filter import Reading


class PodsWithoutPDB:
    """Protects the uncovered; or, as upstream in effect does, everyone.

    Upstream asks for budgets after its informers were started, so its cache of them stays empty
    outside dry run (spec/evictor 2.3, quirk at 9c).
    """

    NAME: ClassVar[str] = Protection.WITHOUT_PDB

    def __init__(self, *, sees_budgets: bool) -> None:
        self._sees_budgets = sees_budgets

    def check(self, pod: Pod, reading: Reading, /) -> Rejection | None:
        reason = "no PodDisruptionBudget selects it"
        if not self._sees_budgets:
            return Rejection(self.NAME, reason, (Never(pod.uid),), pod.ref)
        if reading.lister.budgets_of(pod):
            return None
        return Rejection(self.NAME, reason, (_selection(pod),), pod.ref)

    def depends(self, pod: Pod, _reading: Reading, /) -> Iterable[On]:
        return (_selection(pod),)


def _selection(pod: Pod) -> On:
    return On(Action.BUDGET_SELECTION, ("Namespace", "", pod.namespace))
