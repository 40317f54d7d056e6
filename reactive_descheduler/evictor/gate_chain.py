"""Asks all gates, in order; one that fails holds, and keeps nobody else from learning anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial

import structlog

from reactive_descheduler.api.changes import At, Change, ClusterEvent
from reactive_descheduler.api.eviction import Candidate, EvictionOutcome, Held, Rejection
from reactive_descheduler.framework.gate import Gate, OpenGate

log = structlog.get_logger()

_FAILED_WAIT = timedelta(seconds=30)


class GateChain:
    """Most gates have nothing to say to most questions, and all of this is on the way of an
    eviction: only those are asked that have something of their own to say."""

    def __init__(self, gates: Sequence[Gate]) -> None:
        self._gates = tuple(gates)
        self._closing = _overriding("closed", self._gates)
        self._checking = _overriding("check", self._gates)
        self._rejecting = tuple(gate for gate in self._checking if gate.REJECTS)
        self._starting = _overriding("sent", self._gates)
        self._watching = _overriding("on_change", self._gates)
        self._learning = _overriding("on_outcome", self._gates)
        self._failed: set[str] = set()

    def closed(self, now: datetime) -> Held | None:
        """Return what holds everything."""
        for gate in self._closing:
            try:
                held = gate.closed(now)
            except Exception as error:
                held = self._fail(gate, error, now)
            if held is not None:
                return held
        return None

    def check(self, candidate: Candidate, now: datetime) -> Held | Rejection | None:
        """Ask every gate about a candidate.

        A Rejection goes before what holds: it would not be news when the holding ends, and an
        evaluation must not come to another verdict by the passing of a settle time.
        """
        held: Held | None = None
        for gate in self._checking:
            why = self._check(gate, candidate, now)
            if isinstance(why, Rejection):
                return why
            held = held or why
        return held

    def reject(self, candidate: Candidate, now: datetime) -> Rejection | None:
        """Ask only for a Rejection."""
        for gate in self._rejecting:
            why = self._check(gate, candidate, now)
            if isinstance(why, Rejection):
                return why
        return None

    def take(self, candidate: Candidate, now: datetime) -> None:
        """Take all permits, of a candidate that every gate lets pass now."""
        for gate in self._gates:
            gate.take(candidate, now)

    def give_back(self, candidate: Candidate, now: datetime) -> None:
        for gate in self._gates:
            gate.give_back(candidate, now)

    def sent(self, candidate: Candidate, now: datetime) -> None:
        for gate in self._starting:
            try:
                gate.sent(candidate, now)
            except Exception as error:
                self._report(gate, error)

    def on_outcome(self, outcome: EvictionOutcome, now: datetime) -> list[ClusterEvent]:
        """Return what opened."""
        return [
            event
            for gate in self._learning
            for event in self._tell(gate, partial(gate.on_outcome, outcome, now))
        ]

    def on_change(self, change: Change, now: datetime) -> list[ClusterEvent]:
        """Return what opened."""
        return [
            event
            for gate in self._watching
            for event in self._tell(gate, partial(gate.on_change, change, now))
        ]

    def on_jump(self, by: timedelta) -> None:
        for gate in self._gates:
            gate.on_jump(by)

    def _check(self, gate: Gate, candidate: Candidate, now: datetime) -> Held | Rejection | None:
        try:
            return gate.check(candidate, now)
        except Exception as error:
            return self._fail(gate, error, now)

    def _fail(self, gate: Gate, error: Exception, now: datetime) -> Held:
        """Let a gate that fails hold, for in doubt nothing is evicted."""
        self._report(gate, error)
        reason = f"the gate failed: {type(error).__name__}: {error}"
        return Held(gate.NAME, reason, (At(now + _FAILED_WAIT),))

    def _tell(
        self, gate: Gate, tell: Callable[[], Iterable[ClusterEvent]]
    ) -> Sequence[ClusterEvent]:
        try:
            return tuple(tell())
        except Exception as error:
            self._report(gate, error)
            return ()

    def _report(self, gate: Gate, error: Exception) -> None:
        if gate.NAME not in self._failed:
            self._failed.add(gate.NAME)
            log.error("Gate failed", gate=gate.NAME, exc_info=error)


def _overriding(method: str, gates: Sequence[Gate]) -> tuple[Gate, ...]:
    """Return the gates that have something of their own to say to a question."""
    default = getattr(OpenGate, method)
    return tuple(gate for gate in gates if getattr(type(gate), method) is not default)
