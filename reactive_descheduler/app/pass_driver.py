"""Drives a full pass to its end: asks the limits, then whoever answers; marks what is taken.

Synchronous and without I/O: `plan` answers every request with yes, the conformance corpus with what
its API server said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import msgspec

from reactive_descheduler.api.eviction import (
    TAKEN,
    Candidate,
    Failed,
    Held,
    Rejection,
    Verdict,
)
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.cache.gone import GonePods
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.store import Store
from reactive_descheduler.controller.full_pass import full_pass, views
from reactive_descheduler.evictor.gates.limits import PassLimits
from reactive_descheduler.framework.profile import Profile

_NOT_TAKEN = Verdict(taken=False)


class Refusal(NamedTuple):
    """The API server's no to an eviction request."""

    code: int
    message: str


Ask = Callable[[Candidate], Refusal | None]
"""Sends one request; None is yes."""


class HeldCandidate(NamedTuple):
    candidate: Candidate
    held: Held


class RefusedCandidate(NamedTuple):
    candidate: Candidate
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class PassReport:
    """What became of one pass, each list in the order in which it happened."""

    evicted: list[Candidate] = field(default_factory=list)
    refused: list[RefusedCandidate] = field(default_factory=list)
    """Requests that the API server answered with no."""
    held: list[HeldCandidate] = field(default_factory=list)
    """Candidates for which no request was made, since a limit is reached."""
    rejected: list[Rejection] = field(default_factory=list)
    """What filters and strategies said no to, or not yet."""
    failed: list[Failed] = field(default_factory=list)

    @property
    def failures(self) -> int:
        """How many evictions failed, as upstream counts: by a limit or by the API server."""
        return len(self.refused) + len(self.held)


def run_pass(
    profiles: Sequence[Profile],
    *,
    store: Store,
    nodes: Mapping[str, Node],
    now: datetime,
    limits: PassLimits,
    ask: Ask,
    one_offer: bool,
) -> PassReport:
    """Run one full pass and return what became of it.

    Args:
        store: the cluster. Without `one_offer`, Pods that are taken become terminating in it.
        nodes: the cycle's nodes, in order of names.
        limits: counts as it goes, so each pass needs a new one.
        ask: only asked for candidates that no limit holds.
        one_offer: the correction oneOfferPerPass.
    """
    driver = _Driver(store, now=now, limits=limits, ask=ask, one_offer=one_offer)
    generator = full_pass(
        views(profiles, lister=Lister(store), nodes=nodes, now=now, gone=driver.gone)
    )
    verdict: Verdict | None = None
    while True:
        try:
            said = generator.send(verdict)
        except StopIteration:
            return driver.report
        verdict = None
        match said:
            case Candidate():
                verdict = driver.answer(said)
            case Rejection():
                driver.report.rejected.append(said)
            case Failed():
                driver.report.failed.append(said)


class _Driver:
    def __init__(
        self, store: Store, *, now: datetime, limits: PassLimits, ask: Ask, one_offer: bool
    ) -> None:
        self.report = PassReport()
        self.gone = GonePods()
        self._store = store
        self._now = now
        self._limits = limits
        self._ask = ask
        self._one_offer = one_offer
        self._offered: set[str] = set()
        self._taken: set[str] = set()

    def answer(self, candidate: Candidate) -> Verdict:
        pod = candidate.pod
        if self._one_offer and pod.uid in self._offered:
            return _NOT_TAKEN
        self._offered.add(pod.uid)
        limited = self._limits.check(pod)
        if limited is not None:
            held, stop = limited
            self.report.held.append(HeldCandidate(candidate, held))
            return Verdict(taken=False, stop=stop, why=held)
        # Upstream asks anew for a Pod that is going, which is granted and counts; no one else does.
        refusal = self._ask(candidate) if pod.uid not in self._taken else None
        if refusal is not None:
            self.report.refused.append(RefusedCandidate(candidate, refusal))
            return _NOT_TAKEN
        self._limits.count(pod)
        if pod.uid not in self._taken:
            self.report.evicted.append(candidate)
            self._mark(pod)
        return TAKEN

    def _mark(self, pod: Pod) -> None:
        """Show what follows that this Pod goes: gone, or as upstream's cache shows it."""
        self._taken.add(pod.uid)
        if self._one_offer:
            self.gone.add(pod)
        else:
            going = msgspec.structs.replace(pod, deleted=self._now, resource_version="")
            self._store.put(going)
