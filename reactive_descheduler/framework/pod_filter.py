"""Base of the filters that look at nothing but the Pod itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar

from reactive_descheduler.api.changes import Action, Never, On
from reactive_descheduler.api.eviction import Rejection
from reactive_descheduler.api.pod import Pod

from .filter import Reading


class PodFilter(ABC):
    """A filter whose answer rests on the Pod alone."""

    NAME: ClassVar[str]
    LIFTED_BY: ClassVar[Action] = Action(0)
    """What on the Pod could end the refusal; none: it never ends."""

    @abstractmethod
    def reason(self, pod: Pod, /) -> str:
        """Return why the Pod must stay; empty lets it pass."""

    def check(self, pod: Pod, _reading: Reading, /) -> Rejection | None:
        reason = self.reason(pod)
        if not reason:
            return None
        wake = On(self.LIFTED_BY, pod.ref) if self.LIFTED_BY else Never(pod.uid)
        return Rejection(self.NAME, reason, (wake,), pod.ref)

    def depends(self, _pod: Pod, _reading: Reading, /) -> Iterable[On]:
        return ()
