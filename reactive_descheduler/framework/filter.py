"""The interface of a filter: one protection, stateless, that may be asked while counting."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import ClassVar, NamedTuple, Protocol

from reactive_descheduler.api.changes import On
from reactive_descheduler.api.eviction import Rejection
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.cache.lister import Lister


class Reading(NamedTuple):
    """What a filter may look at beside the Pod."""

    lister: Lister
    now: datetime


class Filter(Protocol):
    """One protection. `check` is pure: the same Pod and reading give the same answer."""

    NAME: ClassVar[str]
    """Upstream's name of the protection where it has one (`DaemonSetPods`), else ours."""

    def check(self, pod: Pod, reading: Reading, /) -> Rejection | None:
        """Return why the Pod must stay, with what would lift that; None lets it pass."""

    def depends(self, pod: Pod, reading: Reading, /) -> Iterable[On]:
        """Return what could end a pass that `check` just gave; the Pod's own changes are left out.

        A candidate that waits is looked at again when one of these happens.
        """


class EvictorFilter(Protocol):
    """Both steps of DefaultEvictor for one profile, assembled from filters (spec/evictor 2.3,
    2.5)."""

    def filter(self, pod: Pod, reading: Reading, /) -> Rejection | None: ...
    def pre_eviction(self, pod: Pod, reading: Reading, /) -> Rejection | None: ...
    def depends(
        self, pod: Pod, reading: Reading, refused: Rejection | None, /, *, placed: bool
    ) -> Iterable[On]:
        """Return what could end the passes before `refused`, what a step just said; None: all.

        `placed`: of both steps, not of the first alone.
        """
