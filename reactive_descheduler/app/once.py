"""`run --once`: one full pass over a synced cache, with real requests, then the end.

Limits count within the pass as upstream's do; settle and what else only time lifts does not apply.
A candidate for which the bucket has no token is waited for; one that its budget holds is reported
and passed on.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import anyio
import anyio.lowlevel

from reactive_descheduler.api.changes import At
from reactive_descheduler.api.errors import Unreachable
from reactive_descheduler.api.eviction import (
    Answer,
    Candidate,
    Decision,
    Held,
    Rejection,
    Stop,
    Verdict,
)
from reactive_descheduler.app.booking import rooms_of
from reactive_descheduler.app.core import Core
from reactive_descheduler.app.pass_driver import PassLedger, PassReport, Refusal
from reactive_descheduler.app.policy import pass_limits
from reactive_descheduler.app.streams import Streams
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.reflector import Trouble
from reactive_descheduler.config.corrections import Correction
from reactive_descheduler.config.feature_gates import FeatureGate
from reactive_descheduler.controller.full_pass import full_pass, views
from reactive_descheduler.framework.gate import Gate
from reactive_descheduler.kit.clock import Clock
from reactive_descheduler.observability.hooks import Hooks
from reactive_descheduler.observability.logs import get_logger
from reactive_descheduler.strategies import PLUGINS

log = get_logger("once")

GRANTED = frozenset({Answer.EVICTED, Answer.DRY_RUN})
LONGEST_WAIT = 120.0
"""Seconds to wait for what holds everything (no token, a stream that went stale)."""
UNREACHABLE_WITHIN = 10.0
"""Seconds after which a pass gives up on an API server that cannot be reached: whoever starts it
is there to read that."""
LOOK_EVERY = 0.05


async def wait_synced(streams: Streams, *, within: float, clock: Clock) -> None:
    """Return once every kind is listed.

    Raises Unreachable after so many seconds, after fewer if the server cannot be reached, and at
    once if it says no.
    """
    began = clock.monotonic()
    while missing := [each for each in streams.statistics() if not each.synced]:
        waited = clock.monotonic() - began
        troubles = {each.trouble for each in missing}
        if (
            waited >= within
            or Trouble.DENIED in troubles
            or (waited >= UNREACHABLE_WITHIN and Trouble.UNREACHABLE in troubles)
        ):
            kinds = defaultdict(list)
            for each in missing:
                kinds[each.error or "no answer yet"].append(each.kind)
            told = "; ".join(f"{', '.join(of)}: {error}" for error, of in kinds.items())
            failure = Unreachable(f"the cluster cannot be read: {told}")
            failure.hint = next((each.hint for each in missing if each.hint), "")
            raise failure
        await anyio.sleep(LOOK_EVERY)


class OnePass:
    """Drives `full_pass` with the worker, one request after the other."""

    def __init__(self, core: Core, hooks: Hooks, *, clock: Clock) -> None:
        self._core = core
        self._hooks = hooks
        self._clock = clock
        self._told: set[Rejection] = set()
        gates = core.gates
        self._gates: tuple[Gate, ...] = (gates.stale, gates.permission, gates.lane, gates.bucket)

    async def run(self) -> PassReport:
        """Run the pass and return what became of it.

        Raises Unreachable if something held everything for too long.
        """
        core, now = self._core, self._clock.now()
        in_background = FeatureGate.EVICTIONS_IN_BACKGROUND in core.feature_gates
        background = core.enduring.background if in_background else None
        ledger = PassLedger(
            core.profiles,
            lister=Lister(core.store),
            now=now,
            limits=pass_limits(core.policy, background),
            one_offer=Correction.ONE_OFFER_PER_PASS in core.policy.corrections,
            shown_going=None,
            observing=core.policy.reactive.observing,
            background=background,
            rooms=rooms_of(core.policy),
        )
        said_so_far = full_pass(
            views(
                core.profiles,
                lister=ledger.lister,
                nodes=core.cycle,
                now=now,
                usage=core.usage if core.usage.sources else None,
            )
        )
        verdict: Verdict | None = None
        while True:
            try:
                said = said_so_far.send(verdict)
            except StopIteration:
                show = Correction.EXIT_CODES in core.policy.corrections
                return replace(ledger.report, failures_show=show)
            verdict = None
            if isinstance(said, Candidate):
                seen = len(ledger.report.observed)
                verdict = ledger.before(said)
                if len(ledger.report.observed) > seen:
                    self._hooks.on_outcome(await core.worker.evict(said))
                if verdict is None:
                    verdict = await self._ask(ledger, said)
                    self._tell(said, verdict.why)
                elif isinstance(verdict.why, Rejection):
                    self._tell_stays(verdict.why)
                else:
                    self._tell(said, verdict.why)
            else:
                ledger.note(said)
                if isinstance(said, Rejection):
                    self._tell_stays(said)
                await anyio.lowlevel.checkpoint()

    async def _ask(self, ledger: PassLedger, candidate: Candidate) -> Verdict:
        await self._until_open()
        now = self._clock.now()
        for gate in self._gates:
            why = gate.check(candidate, now)
            if isinstance(why, Rejection):
                ledger.note(why)
                return Verdict(taken=False, why=why)
            if isinstance(why, Held):
                return ledger.hold(candidate, why, Stop.NO)
        for gate in self._gates:
            gate.take(candidate, now)
        outcome = await self._core.worker.evict(candidate)
        for gate in self._gates:
            gate.on_outcome(outcome, self._clock.now())
        self._hooks.on_outcome(outcome)
        if outcome.answer in GRANTED:
            return ledger.after(candidate, None)
        return ledger.after(candidate, Refusal(outcome.status or 0, outcome.message))

    def _tell(self, candidate: Candidate, why: Held | Rejection | None) -> None:
        """Say why a candidate stays; what a gate rejects waits for a human, hence a warning."""
        if why is None:
            return
        pod, profile = candidate.pod, self._core.profiles[candidate.key.profile].name
        if isinstance(why, Held):
            now = self._clock.now()
            decision = Decision(now, profile, candidate, "held", why.by, why.reason, None)
            self._hooks.on_decision(decision)
            return
        log.warning(
            "Pod stays",
            pod=f"{pod.namespace}/{pod.name}",
            reason=why.reason,
            by=why.by,
            strategy=candidate.key.strategy,
            node=pod.node_name,
            profile=profile,
        )

    def _tell_stays(self, rejection: Rejection) -> None:
        """Say once why a filter keeps a Pod, unless a strategy says that it is only not due yet."""
        not_due = rejection.by in PLUGINS and rejection.not_yet(rejection.by)
        if not_due or rejection.pod is None or rejection in self._told:
            return
        self._told.add(rejection)
        _, namespace, name = rejection.pod
        pod = f"{namespace}/{name}"
        log.verbose(4, "Pod stays", pod=pod, reason=rejection.reason, by=rejection.by)

    async def _until_open(self) -> None:
        deadline = self._clock.monotonic() + LONGEST_WAIT
        while True:
            now = self._clock.now()
            held = next((held for gate in self._gates if (held := gate.closed(now))), None)
            if held is None:
                return
            times = [wake.time for wake in held.wakes if isinstance(wake, At)]
            if not times or self._clock.monotonic() > deadline:
                raise Unreachable(f"the pass cannot go on: {held.reason}")
            await anyio.sleep(max(0.001, (min(times) - now).total_seconds()))
