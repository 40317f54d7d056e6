"""The full pass as a generator, and the evaluation of one key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import pytest

from reactive_descheduler.api.changes import Action, At, Change, Key, On
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
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.cache.gone import GonePods
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.controller.evaluation import evaluate, take_all
from reactive_descheduler.controller.full_pass import Said, full_pass, views
from reactive_descheduler.framework.filter import Reading
from reactive_descheduler.framework.profile import Profile, ProfileView
from reactive_descheduler.framework.strategy import (
    Evaluation,
    Holds,
    Phase,
    Scope,
    Strategies,
    Strategy,
    Subscription,
    View,
)
from tests.builders import cluster, make_pod
from tests.unit.evictor.samples import NOW, candidate, later, pod

NO = Verdict(taken=False)
DEPENDS = On(Action.BUDGET_SELECTION, ("Namespace", "", "default"))
PLACED = On(Action.NODE_REMOVED, ("Node", "", "n1"))


class Guard:
    """Refuses Pods of one name at each step, and names what could end a pass."""

    def __init__(self, *, refuses: str = "", refuses_last: str = "") -> None:
        self.refuses, self.refuses_last = refuses, refuses_last

    def filter(self, of: Pod, reading: Reading, /) -> Rejection | None:
        wake = On(Action.POD_LABELS, of.ref)
        return Rejection("first", "no", (wake,), of.ref) if of.name == self.refuses else None

    def pre_eviction(self, of: Pod, reading: Reading, /) -> Rejection | None:
        wake = On(Action.NODE_ADDED, None)
        return Rejection("last", "no", (wake,), of.ref) if of.name == self.refuses_last else None

    def depends(
        self, of: Pod, reading: Reading, refused: Rejection | None, /, *, placed: bool
    ) -> Sequence[On]:
        return (DEPENDS, PLACED) if placed else (DEPENDS,)


class Scripted:
    """Yields what it was given and keeps what it is told."""

    NAME: ClassVar[str] = "Scripted"
    PHASE: ClassVar[Phase] = Phase.DESCHEDULE
    EVENTS: ClassVar[tuple[Subscription, ...]] = ()
    HOLDS: ClassVar[Holds] = Holds.NOTHING

    def __init__(
        self, *script: Candidate | Rejection | Pause, error: Exception | None = None
    ) -> None:
        self.script, self.error = script, error
        self.told: list[Verdict | None] = []

    def keys_of(self, lister: Lister, /) -> list[Key]:
        return []

    def keys_for(self, scope: Scope, change: Change, lister: Lister, /) -> list[Key]:
        return []

    def evaluate(self, view: View, key: Key, /) -> Evaluation:
        yield from self._play()

    def sweep(self, view: View, /) -> Evaluation:
        yield from self._play()

    def counts(self, key: Key, pod: Pod, _lister: Lister, /) -> bool:
        return False

    def breaks(self, cause: object, change: Change, /) -> bool:
        return False

    def _play(self) -> Evaluation:
        for said in self.script:
            verdict = yield said
            self.told.append(verdict)
            if verdict is not None and verdict.stop is Stop.ALL:
                return
        if self.error is not None:
            raise self.error


def view(guard: Guard | None = None, *names: str) -> ProfileView:
    return ProfileView(guard or Guard(), cluster(*map(make_pod, names)), {}, NOW)


def drive(
    profiles: Sequence[tuple[View, Strategies, Strategies]],
    answer: Callable[[Candidate], Verdict] = lambda _: TAKEN,
) -> list[Said]:
    found: list[Said] = []
    generator = full_pass(profiles)
    verdict: Verdict | None = None
    while True:
        try:
            said = generator.send(verdict)
        except StopIteration:
            return found
        found.append(said)
        verdict = answer(said) if isinstance(said, Candidate) else None


def named(name: str) -> Candidate:
    return candidate(pod(name))


# full_pass


def test_all_deschedule_strategies_of_all_profiles_come_before_any_balance_strategy() -> None:
    a, b, c, d = map(named, "abcd")
    first = (view(), (Scripted(a), Scripted(b)), (Scripted(c),))
    second = (view(), (Scripted(d),), (Scripted(a),))

    assert drive([first, second]) == [a, b, d, c, a]


def test_a_strategy_is_told_the_verdict_on_each_candidate_and_nothing_else() -> None:
    a, b = named("a"), named("b")
    refusal = Rejection("key", "no destination", (At(NOW),))
    strategy = Scripted(a, refusal, Pause(), b)
    said = drive([(view(), (strategy,), ())], lambda of: TAKEN if of == a else NO)

    assert said == [a, refusal, Pause(), b]
    assert strategy.told == [TAKEN, None, None, NO]


def test_a_stop_ends_one_strategy_and_not_the_pass() -> None:
    a, b, c = map(named, "abc")
    stop = Verdict(taken=False, stop=Stop.ALL)

    def answer(of: Candidate) -> Verdict:
        return stop if of == a else TAKEN

    assert drive([(view(), (Scripted(a, b), Scripted(c)), ())], answer) == [a, c]


def test_a_strategy_that_raises_is_told_as_failed_and_the_others_run() -> None:
    a, b = named("a"), named("b")
    failing = Scripted(a, error=RuntimeError("oops"))

    assert drive([(view(), (failing, Scripted(b)), ())]) == [
        a,
        Failed(None, 0, "Scripted", "RuntimeError: oops"),
        b,
    ]


def test_views_leave_out_what_was_taken_as_it_is_taken() -> None:
    gone = GonePods()
    profile = Profile(index=0, name="p", deschedule=(), balance=(), evictor=Guard())
    ((made, _, _),) = views(
        [profile], lister=cluster(make_pod("a"), make_pod("b")), nodes={}, now=NOW, gone=gone
    )
    assert len(list(made.lister.pods())) == 2
    gone.add(pod("a"))

    assert [each.name for each in made.lister.pods()] == ["b"]


# evaluation of one key


def run(
    *script: Candidate | Rejection | Pause, answer: Callable[[Candidate], Held | Rejection | None]
) -> tuple[Scripted, object]:
    strategy = Scripted(*script)
    as_strategy: Strategy = strategy
    return strategy, evaluate(as_strategy, view(), Key(0, "Scripted", ("u",)), answer)


def test_what_a_gate_holds_counts_as_taken() -> None:
    held = Held("lane", "no budget", (At(later(1)),))
    strategy, found = run(named("a"), answer=lambda _: held)

    assert strategy.told == [TAKEN]
    assert found == ((named("a"),), (), ())


def test_what_a_gate_rejects_is_parked_and_the_strategy_passes_on() -> None:
    refusal = Rejection("lane", "two budgets", (On(Action.BUDGET_SELECTION, None),))
    strategy, found = run(
        named("a"), named("b"), answer=lambda of: refusal if of == named("a") else None
    )

    assert strategy.told == [Verdict(taken=False, why=refusal), TAKEN]
    assert found == ((named("b"),), (refusal,), refusal.wakes)


def test_a_rejection_of_the_strategy_is_parked_and_a_pause_is_not() -> None:
    refusal = Rejection("Scripted", "not yet", (At(later(5)),))
    _, found = run(refusal, Pause(), answer=take_all)

    assert found == ((), (refusal,), refusal.wakes)


def test_an_exception_goes_to_the_caller() -> None:
    with pytest.raises(RuntimeError, match="oops"):
        evaluate(Scripted(error=RuntimeError("oops")), view(), Key(0, "Scripted", ("u",)), take_all)


# the view


def test_whatever_a_filter_refuses_is_noted_for_the_key_also_where_it_only_counts() -> None:
    looking = view(Guard(refuses="a", refuses_last="b"))
    assert looking.filter(pod("a")) is not None
    assert looking.filter(pod("b")) is None
    assert looking.pre_eviction(pod("b")) is not None

    # With each what would let another filter refuse first: the reason that is told would change.
    assert list(looking.noted) == [
        On(Action.POD_LABELS, pod("a").ref),
        DEPENDS,
        On(Action.NODE_ADDED, None),
        PLACED,
    ]
    assert looking.looked_at == 2


def test_what_could_end_a_pass_is_noted_step_by_step() -> None:
    looking = view()
    looking.filter(pod("a"))
    assert list(looking.noted) == [DEPENDS]
    looking.pre_eviction(pod("a"))
    looking.note(On(Action.NODE_TAINTS, None))

    assert list(looking.noted) == [DEPENDS, PLACED, On(Action.NODE_TAINTS, None)]
