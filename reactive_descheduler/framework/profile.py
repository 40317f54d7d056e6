"""One profile of a policy, assembled; and the view through which its strategies read a state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from reactive_descheduler.api.changes import At, On, Wake
from reactive_descheduler.api.eviction import Rejection
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.usage import Usage
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
        self,
        evictor: EvictorFilter,
        lister: Lister,
        nodes: Mapping[str, Node],
        now: datetime,
        usage: Usage | None = None,
    ) -> None:
        self._evictor = evictor
        self._reading = Reading(lister, now)
        self._lister = lister
        self._nodes = nodes
        self._now = now
        self._usage = usage
        self.noted: dict[Wake, None] = {}
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

    @property
    def usage(self) -> Usage | None:
        return self._usage

    @property
    def version(self) -> int:
        measured = self._usage.version if self._usage is not None else 0
        return self._lister.version + measured

    def filter(self, pod: Pod, /) -> Rejection | None:
        self.looked_at += 1
        return self._noted(self._evictor.filter(pod, self._reading), pod, placed=False)

    def pre_eviction(self, pod: Pod, /) -> Rejection | None:
        return self._noted(self._evictor.pre_eviction(pod, self._reading), pod, placed=True)

    def note(self, *wakes: On | At) -> None:
        self.noted.update(dict.fromkeys(wakes))

    def _noted(self, rejection: Rejection | None, pod: Pod, *, placed: bool) -> Rejection | None:
        """Take up what could end the verdict of a step: of a refusal also what would have another
        filter refuse first, since the reason is told."""
        if rejection is not None:
            self.noted.update(dict.fromkeys(rejection.wakes))
        depends = self._evictor.depends(pod, self._reading, rejection, placed=placed)
        self.noted.update(dict.fromkeys(depends))
        return rejection
