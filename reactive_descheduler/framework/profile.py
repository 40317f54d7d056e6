"""One profile of a policy, assembled; and the view through which its strategies read a state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from reactive_descheduler.api.changes import On, Wake
from reactive_descheduler.api.eviction import Rejection
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.framework.filter import EvictorFilter, Reading
from reactive_descheduler.framework.strategy import Strategies


@dataclass(frozen=True, slots=True)
class Profile:
    """Strategies in the order in which upstream runs them, and the evictor that they share."""

    index: int
    name: str
    deschedule: Strategies
    balance: Strategies
    evictor: EvictorFilter


class ProfileView:
    """Reads one state for one profile, and collects the wakes of what it says.

    One is made for each evaluation of a key, so what is noted belongs to that key.
    """

    def __init__(
        self, evictor: EvictorFilter, lister: Lister, nodes: Mapping[str, Node], now: datetime
    ) -> None:
        self._evictor = evictor
        self._reading = Reading(lister, now)
        self._lister = lister
        self._nodes = nodes
        self._now = now
        self.noted: list[Wake] = []
        self.looked_at = 0
        """How many times a filter was asked about a Pod."""

    @property
    def lister(self) -> Lister:
        return self._lister

    @property
    def now(self) -> datetime:
        return self._now

    @property
    def nodes(self) -> Mapping[str, Node]:
        return self._nodes

    def filter(self, pod: Pod, /) -> Rejection | None:
        self.looked_at += 1
        return self._noted(self._evictor.filter(pod, self._reading))

    def pre_eviction(self, pod: Pod, /) -> Rejection | None:
        rejection = self._noted(self._evictor.pre_eviction(pod, self._reading))
        if rejection is None:
            # The last step passed: what could end that has to wake the key as well.
            self.noted.extend(self._evictor.depends(pod, self._reading))
        return rejection

    def note(self, *wakes: On) -> None:
        self.noted.extend(wakes)

    def _noted(self, rejection: Rejection | None) -> Rejection | None:
        if rejection is not None:
            self.noted.extend(rejection.wakes)
        return rejection
