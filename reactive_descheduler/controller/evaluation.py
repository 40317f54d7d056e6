"""Drives a strategy's generator over one key and collects what it says. Pure: it changes
nothing."""

from __future__ import annotations

from collections.abc import Callable, Generator

from reactive_descheduler.api.changes import Key
from reactive_descheduler.api.eviction import (
    TAKEN,
    Candidate,
    Held,
    Pause,
    Rejection,
    Verdict,
)
from reactive_descheduler.controller.parking import Evaluated
from reactive_descheduler.framework.profile import ProfileView
from reactive_descheduler.framework.strategy import Reevaluates, Strategy

Answer = Callable[[Candidate], Held | Rejection | None]


def take_all(_candidate: Candidate) -> None:
    """Answer every candidate with "taken", as if no gate stood in the way."""


def evaluate(strategy: Strategy, view: ProfileView, key: Key, answer: Answer) -> Evaluated:
    """Evaluate a key in one go. `answer`: what gates say; only a Rejection makes the strategy pass
    on."""
    steps = evaluate_in_steps(strategy, view, key, answer)
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            evaluated: Evaluated = ended.value
            return evaluated


def still_offers(
    strategy: Strategy, view: ProfileView, candidate: Candidate, answer: Answer
) -> bool:
    """Say whether the candidate is among what its key offers now, for the same cause.

    It looks no further once the candidate has come, for a big key has hundreds, nor where the
    strategy knows that nothing depends on it: this runs right before a request and does not give
    way.
    """
    if isinstance(strategy, Reevaluates):
        generator = strategy.reevaluate(view, candidate)
    else:
        generator = strategy.evaluate(view, candidate.key)
    verdict: Verdict | None = None
    while True:
        try:
            said = generator.send(verdict)
        except StopIteration:
            return False
        verdict = None
        if not isinstance(said, Candidate):
            continue
        if said.pod.uid == candidate.pod.uid:
            return said.cause == candidate.cause
        why = answer(said)
        verdict = Verdict(taken=False, why=why) if isinstance(why, Rejection) else TAKEN


def evaluate_in_steps(
    strategy: Strategy, view: ProfileView, key: Key, answer: Answer
) -> Generator[None, None, Evaluated]:
    """Evaluate a key; yields where the strategy finds it good to give way.

    Whoever gives way looks at `view.version` afterwards: on another state the evaluation is void.
    """
    offered: list[Candidate] = []
    rejected: list[Rejection] = []
    generator = strategy.evaluate(view, key)
    verdict: Verdict | None = None
    while True:
        try:
            said = generator.send(verdict)
        except StopIteration:
            break
        verdict = None
        if isinstance(said, Candidate):
            why = answer(said)
            if isinstance(why, Rejection):
                rejected.append(why)
                verdict = Verdict(taken=False, why=why)
            else:
                offered.append(said)
                verdict = TAKEN
        elif isinstance(said, Rejection):
            rejected.append(said)
        elif isinstance(said, Pause):
            yield
    noted = dict(view.noted)
    for rejection in rejected:
        noted.update(dict.fromkeys(rejection.wakes))
    return Evaluated(tuple(offered), tuple(rejected), tuple(noted))
