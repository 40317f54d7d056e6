"""Compares a full pass of ours with one of upstream itself, on cases that nobody has recorded.

The program beside upstream's module (tests/controlplane/peer/onepass) plays them.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, NamedTuple, TypedDict, cast

from tests.conformance import run
from tests.conformance.run import Case
from tests.controlplane.upstream import ONE_PASS

BATCHES = (1, 4, 16, 180)
"""Runs, until they explain ours: upstream goes by the random order of Go's maps, so what it may
do shows only in many."""

_Pod = tuple[str, str]


class Eviction(TypedDict):
    namespace: str
    name: str
    plugin: str
    profile: str


class Answer(TypedDict):
    evicted: list[Eviction]
    failedPlugins: list[str]
    error: str | None
    """Why the policy is refused."""


class UpstreamAnswer(Answer):
    unplayable: str
    """Why the case says nothing."""


class _Outcome(NamedTuple):
    refused: bool
    evicted: frozenset[_Pod]
    failed: frozenset[str]

    @classmethod
    def of(cls, answer: Answer) -> _Outcome:
        return cls(
            bool(answer["error"]),
            frozenset(_order(answer)),
            frozenset(answer["failedPlugins"] or ()),
        )


class Upstream:
    """A running program; `playing` starts and ends it."""

    def __init__(self, questions: IO[str], answers: IO[str]) -> None:
        self._questions = questions
        self._answers = answers

    def play(self, case: Case, *, runs: int) -> list[UpstreamAnswer]:
        print(json.dumps({**case, "runs": runs}), file=self._questions, flush=True)
        return cast("list[UpstreamAnswer]", json.loads(self._answers.readline())["answers"])


@contextmanager
def playing() -> Iterator[Upstream]:
    with subprocess.Popen(
        [ONE_PASS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Upstream(process.stdin, process.stdout)


def difference(case: Case, upstream: Upstream) -> str | None:
    """Return in what ours differs from all that upstream does; None if in nothing, or if the case
    says nothing."""
    if run.beyond(case):
        return None
    ours = cast("Answer", run.answer(case))
    theirs: list[UpstreamAnswer] = []
    for runs in BATCHES:
        theirs += upstream.play(case, runs=runs)
        if any(each["unplayable"] for each in theirs) or _explains(theirs, ours):
            return None
    return _outcome_differs(ours, theirs) or _order_differs(ours, theirs)


def _explains(theirs: Sequence[Answer], ours: Answer) -> bool:
    """Say whether one run did the same, or whether it did but for the order, which varies."""
    same = [each for each in theirs if _Outcome.of(each) == _Outcome.of(ours)]
    if same and ours["error"]:
        return True
    varies = len({tuple(_order(each)) for each in theirs}) > 1
    return any(
        _askers(ours) <= _askers(each) and (varies or _order(each) == _order(ours)) for each in same
    )


def _outcome_differs(ours: Answer, theirs: Sequence[Answer]) -> str | None:
    known, mine = {_Outcome.of(each) for each in theirs}, _Outcome.of(ours)
    if mine in known or _is_between(mine, known):
        return None
    told = "; ".join(map(_told, sorted(known, key=lambda each: sorted(each.evicted))[:3]))
    return f"ours: {_told(mine)} {ours['error'] or ''}; upstream's: {told} {theirs[0]['error']}"


def _is_between(mine: _Outcome, known: set[_Outcome]) -> bool:
    """Say whether ours may be one that would show in still more runs, since upstream varies."""
    if len(known) < 2 or mine.refused or any(each.refused for each in known):
        return False
    sets = [each.evicted for each in known]
    return (
        mine.failed in {each.failed for each in known}
        and frozenset.intersection(*sets) <= mine.evicted <= frozenset.union(*sets)
        and min(map(len, sets)) <= len(mine.evicted) <= max(map(len, sets))
    )


def _order_differs(ours: Answer, theirs: Sequence[Answer]) -> str | None:
    """Compare order and askers, where upstream always evicts the same."""
    if len({_Outcome.of(each) for each in theirs}) > 1:
        return None
    orders = [_order(each) for each in theirs]
    if all(each == orders[0] for each in orders) and _order(ours) != orders[0]:
        return f"order {_order(ours)}, upstream's is {orders[0]}"
    wrong = sorted(_askers(ours).difference(*map(_askers, theirs)))
    return f"upstream never has these asked for by that plugin: {wrong}" if wrong else None


def _order(answer: Answer) -> list[_Pod]:
    pods = ((each["namespace"], each["name"]) for each in answer["evicted"] or ())
    return list(dict.fromkeys(pods))


def _askers(answer: Answer) -> set[tuple[str, str, str, str]]:
    return {
        (each["namespace"], each["name"], each["plugin"], each["profile"])
        for each in answer["evicted"] or ()
    }


def _told(outcome: _Outcome) -> str:
    if outcome.refused:
        return "refused"
    pods = ", ".join("/".join(pod) for pod in sorted(outcome.evicted)) or "nobody"
    return f"{pods} (failed: {', '.join(sorted(outcome.failed)) or 'none'})"
