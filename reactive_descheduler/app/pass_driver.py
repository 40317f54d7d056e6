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
    Pause,
    Rejection,
    Stop,
    Verdict,
)
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.app.booking import PassBooking
from reactive_descheduler.cache.gone import GonePods
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.promised import PromisedPods
from reactive_descheduler.cache.store import Store
from reactive_descheduler.cache.usage import Usage
from reactive_descheduler.controller.full_pass import full_pass, views
from reactive_descheduler.evictor.background import BackgroundEvictions, is_evacuation
from reactive_descheduler.evictor.gates.limits import PassLimits
from reactive_descheduler.framework.profile import Profile
from reactive_descheduler.framework.rooms import Rooms

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
    in_background: list[RefusedCandidate] = field(default_factory=list)
    """Requests that a webhook refused because it has taken the eviction over."""
    again: list[Candidate] = field(default_factory=list)
    """Candidates that were taken before in this pass, and count once more; never with the
    correction oneOfferPerPass."""
    held: list[HeldCandidate] = field(default_factory=list)
    """Candidates for which no request was made, since a limit is reached."""
    observed: list[Candidate] = field(default_factory=list)
    """Candidates of strategies that only observe: nothing is asked, and they do not go."""
    rejected: list[Rejection] = field(default_factory=list)
    """What filters and strategies said no to, or not yet."""
    failed: list[Failed] = field(default_factory=list)
    failures_show: bool = True
    """Whether the exit code of the process tells of failures; the correction exitCodes."""

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
    observing: frozenset[str] = frozenset(),
    rooms: Rooms | None = None,
    usage: Usage | None = None,
    background: BackgroundEvictions | None = None,
) -> PassReport:
    """Run one full pass and return what became of it.

    Args:
        store: the cluster. Without `one_offer`, Pods that are taken become terminating in it.
        nodes: the cycle's nodes, in order of names.
        limits: counts as it goes, so each pass needs a new one.
        ask: only asked for candidates that no limit holds.
        one_offer: the correction oneOfferPerPass.
        observing: strategies in mode `observe`.
        rooms: where what is taken is promised room; the correction booking.
        usage: measured usage, where the policy configures a source of it.
        background: the evictions in background, where the feature gate is on; it grows.
    """
    ledger = PassLedger(
        profiles,
        lister=Lister(store),
        now=now,
        limits=limits,
        one_offer=one_offer,
        shown_going=None if one_offer else store,
        observing=observing,
        rooms=rooms,
        background=background,
    )
    said_so_far = full_pass(
        views(
            profiles,
            lister=ledger.lister,
            nodes=nodes,
            now=now,
            usage=usage,
        )
    )
    verdict: Verdict | None = None
    while True:
        try:
            said = said_so_far.send(verdict)
        except StopIteration:
            return ledger.report
        verdict = None
        if isinstance(said, Candidate):
            verdict = ledger.before(said) or ledger.after(said, ask(said))
        else:
            ledger.note(said)


class PassLedger:
    """What one pass has taken so far, and the verdicts that follow from it.

    For each candidate: `before`; if that has no verdict, ask the API server, then `after`.
    """

    def __init__(
        self,
        profiles: Sequence[Profile],
        *,
        lister: Lister,
        now: datetime,
        limits: PassLimits,
        one_offer: bool,
        shown_going: Store | None,
        observing: frozenset[str] = frozenset(),
        rooms: Rooms | None = None,
        background: BackgroundEvictions | None = None,
    ) -> None:
        """`shown_going`: where Pods that are taken become terminating, as upstream's cache shows
        them; None: they count as gone."""
        self.report = PassReport()
        self._gone = GonePods()
        promised = PromisedPods()
        self.lister = lister.less(self._gone, promised)
        """The state less what was taken, with what is promised."""
        self._booking = PassBooking(rooms, profiles, promised=promised, lister=self.lister, now=now)
        self._shown_going = shown_going
        self._now = now
        self._limits = limits
        self._one_offer = one_offer
        self._observing = observing
        self._background = background
        self._offered: set[str] = set()
        self._taken: set[str] = set()

    def before(self, candidate: Candidate) -> Verdict | None:
        """Return the verdict if no request is to be made for the candidate."""
        pod = candidate.pod
        if candidate.key.strategy in self._observing:
            # Its own arithmetic goes on as if it went; for everyone else it is still there.
            self.report.observed.append(candidate)
            return TAKEN
        if self._background is not None and self._background.of_pod(pod.uid) is not None:
            return TAKEN  # asked for already: upstream counts it as done and does nothing
        if self._one_offer and pod.uid in self._offered:
            return _NOT_TAKEN
        refused = self._booking.refuses(candidate)
        if refused is not None:
            self.report.rejected.append(refused)
            return Verdict(taken=False, why=refused)
        self._offered.add(pod.uid)
        limited = self._limits.check(pod)
        if limited is not None:
            held, stop = limited
            return self.hold(candidate, held, stop)
        if pod.uid in self._taken:
            # Upstream asks anew for a Pod that is going, which is granted and counts; ours never
            # does.
            self._limits.count(pod)
            self.report.again.append(candidate)
            return TAKEN
        return None

    def hold(self, candidate: Candidate, held: Held, stop: Stop = Stop.NO) -> Verdict:
        """Take note of a candidate that a limit or a gate holds: the pass goes on without it."""
        self.report.held.append(HeldCandidate(candidate, held))
        return Verdict(taken=False, stop=stop, why=held)

    def after(self, candidate: Candidate, refusal: Refusal | None) -> Verdict:
        """Take note of what the API server said."""
        if refusal is not None and self._goes_on(candidate, refusal):
            self.report.in_background.append(RefusedCandidate(candidate, refusal))
            return TAKEN
        if refusal is not None:
            self.report.refused.append(RefusedCandidate(candidate, refusal))
            return _NOT_TAKEN
        pod = candidate.pod
        self._limits.count(pod)
        self.report.evicted.append(candidate)
        self._booking.promise(candidate)
        self._mark(pod)
        return TAKEN

    def _goes_on(self, candidate: Candidate, refusal: Refusal) -> bool:
        pod = candidate.pod
        if self._background is None or not is_evacuation(pod, refusal.code, refusal.message):
            return False
        if pod.active:
            self._background.start(candidate, self._now)
            self._booking.promise(candidate)
        return True

    def note(self, said: Rejection | Failed | Pause) -> None:
        """Take note of what is no candidate."""
        match said:
            case Rejection():
                self.report.rejected.append(said)
            case Failed():
                self.report.failed.append(said)

    def _mark(self, pod: Pod) -> None:
        """Show what follows that this Pod goes."""
        self._taken.add(pod.uid)
        if self._shown_going is None:
            self._gone.add(pod)
        elif not pod.active:
            self._shown_going.remove(pod)  # there is nothing to end: the API server deletes it
        else:
            going = msgspec.structs.replace(pod, deleted=self._now, resource_version="")
            self._shown_going.put(going)
