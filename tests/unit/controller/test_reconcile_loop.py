"""The bus and the reconcile loop: which keys are evaluated when, and what a failure comes to."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import ClassVar

import pytest
from structlog.testing import capture_logs

from reactive_descheduler.api.changes import Action, Change, ClusterEvent, Key
from reactive_descheduler.api.eviction import Answer, Candidate, Cause
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.controller import bus
from reactive_descheduler.controller.loop import Failure
from reactive_descheduler.framework.strategy import Evaluation, Scope, Subscription, View
from tests.builders import Manifest, make_budget, make_node, make_pod
from tests.unit.controller.running import POLICY, Labelled, running, wants

NAME = Labelled.NAME


_versions = count(1)


def good(name: str = "a", **fields: object) -> Manifest:
    usual = {"node": "node-1", "labels": {"app": "web"}, "version": str(next(_versions))}
    return make_pod(name, **{**usual, **fields})  # type: ignore[arg-type]


def wrong(name: str = "a") -> Manifest:
    return good(name, labels={"wrong": "yes"})


# what starts a strategy


def test_before_it_goes_live_nothing_is_evaluated() -> None:
    strategy = Labelled()
    found = running(strategy, objects=[wrong()], live=False)
    found.wait(10)
    assert strategy.evaluated == []
    found.core.go_live()
    found.wait(1)

    assert strategy.evaluated == ["a"]
    assert found.offered() == {"a"}


@pytest.mark.parametrize(
    "idle",
    [
        pytest.param(lambda version: make_node("node-1", version=version), id="node heartbeat"),
        pytest.param(lambda version: good(version=version), id="pod status without news"),
    ],
)
def test_what_decides_nothing_starts_nothing(idle: Callable[[str], Manifest]) -> None:
    strategy = Labelled()
    found = running(strategy, objects=[good()])
    strategy.evaluated.clear()
    before = found.core.bus.statistics()
    for version in range(100):
        found.put(idle(f"{version}000"))
    found.wait(60)

    after = found.core.bus.statistics()
    assert strategy.evaluated == []
    assert after.idle_changes - before.idle_changes == 100
    assert (after.keys, after.events) == (before.keys, before.events)


def test_an_event_that_no_one_subscribes_to_starts_nothing() -> None:
    strategy = Labelled()
    found = running(strategy, objects=[good()])
    strategy.evaluated.clear()
    found.put(good(annotations={"x": "y"}, priority=3))
    found.wait(5)

    assert strategy.evaluated == []


def test_a_key_is_evaluated_once_it_is_quiet() -> None:
    strategy = Labelled()
    found = running(strategy, objects=[good(), good("b")])
    strategy.evaluated.clear()
    found.put(wrong())
    found.wait(0.08)
    found.put(good())
    found.wait(0.08)
    found.put(wrong(), wrong("b"))
    found.wait(0.08)
    assert strategy.evaluated == []
    found.wait(0.05)

    assert sorted(strategy.evaluated) == ["a", "b"]


def test_a_busy_key_is_evaluated_at_the_latest_after_the_longest_wait() -> None:
    strategy = Labelled()
    found = running(strategy, objects=[good()])
    strategy.evaluated.clear()
    for step in range(13):
        found.put(wrong() if step % 2 else good())
        found.wait(0.09)

    assert strategy.evaluated == ["a"]


def test_churn_of_one_key_does_not_delay_another() -> None:
    strategy = Labelled()
    found = running(strategy, objects=[good(), good("b")])
    strategy.evaluated.clear()
    found.put(wrong("b"))
    for step in range(2):
        found.put(wrong() if step % 2 else good())
        found.wait(0.06)

    assert strategy.evaluated == ["b"]


def test_each_strategy_has_its_own_debounce() -> None:
    class Slow(Labelled):
        NAME: ClassVar[str] = "RemovePodsHavingTooManyRestarts"

    policy = POLICY.replace(
        "reactive: {",
        "reactive: {strategies: {RemovePodsHavingTooManyRestarts: {debounce: {quiet: 900ms}}}, ",
    )
    fast, slow = Labelled(0), Slow(1)
    found = running(fast, slow, objects=[good()], policy=policy)
    fast.evaluated.clear()
    slow.evaluated.clear()
    found.put(wrong())
    found.wait(0.2)
    assert (fast.evaluated, slow.evaluated) == (["a"], [])
    found.wait(0.8)

    assert slow.evaluated == ["a"]


def test_the_cycle_coming_to_life_or_to_rest_looks_at_everything() -> None:
    strategy = Labelled()
    found = running(strategy, objects=[good(), good("b")])
    strategy.evaluated.clear()
    found.put(make_node("node-2", ready=False, version="2"))
    found.wait(1)
    assert sorted(strategy.evaluated) == ["a", "b"], "one ready node is left: upstream skips all"
    found.put(make_node("node-2", version="33"))
    found.wait(1)

    assert sorted(strategy.evaluated) == ["a", "a", "b", "b"]


# narrow, keys_for, keys_of


def test_narrow_spares_keys_that_cannot_flip_and_doubt_means_run() -> None:
    answers: dict[str, bool] = {"uid-default-a": True, "uid-default-b": False}

    class Narrowed(Labelled):
        EVENTS: ClassVar[tuple[Subscription, ...]] = (
            Subscription(
                Action.POD_LABELS, Scope.POD, lambda _change, _lister, key: answers[key.unit[0]]
            ),
        )

    strategy = Narrowed()
    found = running(strategy, objects=[good(), good("b"), good("c")])
    strategy.evaluated.clear()
    found.put(wrong(), wrong("b"), wrong("c"))
    found.wait(1)

    assert strategy.evaluated == ["a", "c"], "c: the question itself failed"
    assert found.core.bus.statistics().narrow_errors == {NAME: 1}


def test_a_scope_that_fails_means_everything_and_harms_no_other_strategy() -> None:
    class Other(Labelled):
        NAME: ClassVar[str] = "RemovePodsHavingTooManyRestarts"

    first, second = Labelled(0), Other(1)
    found = running(first, second, objects=[good(), good("b")])
    first.evaluated.clear()
    second.evaluated.clear()
    first.broken.add("keys_for")
    found.put(wrong())
    found.wait(1)

    assert sorted(first.evaluated) == ["a", "b"]
    assert second.evaluated == ["a"]
    assert found.core.bus.statistics().narrow_errors == {NAME: 1}


def test_a_change_that_is_not_understood_means_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    strategy = Labelled()
    found = running(strategy)

    def fail(_change: Change) -> Action:
        raise RuntimeError("a bug")

    with capture_logs() as logs, monkeypatch.context() as patch:
        patch.setattr(bus, "cluster_events", fail)
        found.put(wrong())
    found.wait(1)

    assert [line["event"] for line in logs] == ["Change not understood; all is looked at anew"]
    assert found.offered() == {"a"}


def test_a_key_space_that_fails_is_tried_again_and_harms_no_other_strategy() -> None:
    class Other(Labelled):
        NAME: ClassVar[str] = "RemovePodsHavingTooManyRestarts"

    first, second = Labelled(0), Other(1)
    first.broken.add("keys_of")
    with capture_logs() as logs:
        found = running(first, second, objects=[wrong()])
        found.wait(10)
    assert (first.evaluated, second.evaluated) == ([], ["a"])
    assert len([entry for entry in logs if entry["log_level"] == "error"]) == 1
    first.broken.clear()
    found.wait(20)

    assert first.evaluated == ["a"]


def test_a_big_whole_pass_goes_in_slices_that_live_keys_overtake() -> None:
    strategy = Labelled()
    found = running(strategy, objects=[good(f"p{number:04}") for number in range(1300)])
    assert len(strategy.evaluated) == 1300
    strategy.evaluated.clear()
    found.core.resync()
    for _ in range(10):
        due = found.core.queue.pop()
        assert due is not None
        found.core.loop.reconcile(due)
    key = Key(0, NAME, ("uid-default-p1299",))
    found.core.queue.add(key)
    due = found.core.queue.pop()
    assert due is not None
    assert due.key == key
    found.core.loop.reconcile(due)
    found.wait(1)

    assert len(set(strategy.evaluated)) == 1300


def test_a_whole_pass_reaches_what_is_remembered_of_pods_that_are_gone() -> None:
    strategy = Labelled()
    found = running(strategy, objects=[wrong()])
    assert found.offered() == {"a"}
    found.core.store.remove(found.core.store.pods()["uid-default-a"])
    found.core.resync()
    found.wait(1)

    assert found.offered() == set()
    assert found.remembered("a") is None


# failures


def test_an_exception_fails_its_key_only_counted_and_logged_once() -> None:
    strategy = Labelled()
    strategy.broken.add("a")
    with capture_logs() as logs:
        found = running(strategy, objects=[wrong(), wrong("b")])
        found.wait(30)

    assert found.offered() == {"b"}
    assert found.metric("evaluate_errors") > 1
    errors = [entry for entry in logs if entry["log_level"] == "error"]
    assert [(entry["event"], entry["unit"]) for entry in errors] == [
        ("strategy failed on a key", ("uid-default-a",))
    ]
    (failure,) = found.core.loop.failures.values()
    assert failure.error == "RuntimeError: a is broken"


def test_a_failed_key_is_tried_again_from_one_second_up_to_five_minutes() -> None:
    strategy = Labelled()
    strategy.broken.add("a")
    found = running(strategy, objects=[good()])
    strategy.evaluated.clear()
    seen: list[float] = []
    before = found.clock.monotonic()
    while found.clock.monotonic() < 2000:
        found.wait(0.5)
        if strategy.evaluated:
            seen.append(found.clock.monotonic())
            strategy.evaluated.clear()
    gaps = [second - first for first, second in zip([before, *seen], seen, strict=False)]

    assert max(gaps) == pytest.approx(300, abs=2)
    assert gaps == sorted(gaps)


def test_a_fault_on_every_key_is_logged_once_until_all_work_again() -> None:
    strategy = Labelled()
    names = [f"p{number}" for number in range(50)]
    strategy.broken.update(names)
    with capture_logs() as logs:
        found = running(strategy, objects=[wrong(name) for name in names])
        found.wait(60)
        assert len(found.core.loop.failures) == 50
        assert [entry["log_level"] for entry in logs].count("error") == 1
        strategy.broken.clear()
        found.wait(300)
        assert found.core.loop.failures == {}
        strategy.broken.add("p7")
        found.core.resync()
        found.wait(1)

    assert [entry["log_level"] for entry in logs].count("error") == 2


def test_a_key_that_has_failed_for_days_is_still_tried_again() -> None:
    strategy = Labelled()
    strategy.broken.add("a")
    found = running(strategy, objects=[wrong()])
    (key,) = found.core.loop.failures
    found.core.loop.failures[key] = Failure(5000, "for weeks")
    found.wait(10)
    assert found.core.loop.failures[key].attempts == 5001
    strategy.broken.clear()
    found.wait(300)

    assert found.offered() == {"a"}


def test_a_failed_key_loses_its_candidates_and_gets_them_back_when_it_works_again() -> None:
    strategy = Labelled()
    found = running(strategy, objects=[wrong()])
    assert found.offered() == {"a"}
    strategy.broken.add("a")
    found.core.bus.look_again(Key(0, NAME, ("uid-default-a",)))
    found.wait(1)
    assert found.offered() == set()
    strategy.broken.clear()
    found.wait(5)

    assert found.offered() == {"a"}
    assert found.core.loop.failures == {}


def test_a_key_that_fails_at_the_last_check_is_not_evicted() -> None:
    strategy = Labelled()
    found = running(strategy, objects=[wrong()])
    strategy.broken.add("a")

    tokens = found.core.bucket.statistics().tokens

    assert found.send() == []
    assert found.offered() == set()
    assert found.core.bucket.statistics().tokens == tokens


# the last check and what follows


def test_the_candidate_must_still_be_offered_when_it_goes() -> None:
    strategy = Labelled()
    found = running(strategy, objects=[wrong(), wrong("b")])
    found.put(good())  # its key waits out the debounce
    tokens = found.core.bucket.statistics().tokens

    assert [entry.candidate.pod.name for entry in found.send()] == ["b"]
    assert found.core.bucket.statistics().tokens == tokens - 1, "the permit was given back"


class OneOfAll(Labelled):
    """Wants one wrong Pod gone: the first that it may have."""

    def _key(self, pod: Pod) -> Key:
        return Key(self.profile, self.NAME, (pod.namespace,))

    def evaluate(self, view: View, key: Key, /) -> Evaluation:
        for pod in view.lister.pods():
            if wants(pod):
                verdict = yield Candidate(key, pod, Cause("label", (), (pod.ref,)), "it is wrong")
                if verdict is not None and verdict.taken:
                    return


def test_who_is_offered_in_place_of_a_rejected_pod_goes() -> None:
    under_two = good("a", labels={"wrong": "yes", "app": "web"})
    found = running(
        OneOfAll(),
        objects=[make_budget("one"), make_budget("two"), under_two, wrong("b")],
    )

    assert [entry.candidate.pod.name for entry in found.send()] == ["b"]


def test_a_pod_in_flight_counts_as_gone() -> None:
    strategy = Labelled()
    found = running(strategy, objects=[wrong()])
    (entry,) = found.send()
    assert found.core.live.pod("uid-default-a") is None
    found.answer(entry, Answer.WEBHOOK_DENIED)

    assert found.core.live.pod("uid-default-a") is not None


def test_after_an_answer_the_key_is_looked_at_anew() -> None:
    strategy = Labelled()
    found = running(strategy, objects=[wrong()])
    (entry,) = found.send()
    found.answer(entry, Answer.SERVER_ERROR)
    found.wait(1)
    assert found.offered() == {"a"}
    assert found.send() == []
    assert [each.held.by for each in found.core.evictions.candidates() if each.held] == ["retry"]
    found.wait(10)

    assert [each.candidate.pod.name for each in found.send()] == ["a"]


# resync as a backstop


class Deaf(Labelled):
    """Hears nothing."""

    EVENTS: ClassVar[tuple[Subscription, ...]] = ()


def test_a_healthy_run_leaves_nothing_for_the_resync_to_find() -> None:
    strategy = Labelled()
    found = running(strategy, objects=[good(), wrong("b")])
    found.put(wrong())
    found.wait(1)
    for _ in range(3):
        found.core.resync()
        found.wait(5)

    assert found.metric("resync_findings") == 0
    assert found.offered() == {"a", "b"}


def test_what_a_deaf_strategy_misses_is_found_twice_two_seconds_apart_and_counted() -> None:
    strategy = Deaf()
    found = running(strategy, objects=[good()])
    found.put(wrong())
    found.wait(10)
    strategy.evaluated.clear()
    found.core.resync()
    found.wait(1)
    assert strategy.evaluated == ["a"]
    assert found.offered() == set()
    assert found.metric("resync_findings") == 0
    found.wait(1.5)

    assert strategy.evaluated == ["a", "a"]
    assert found.metric("resync_findings") == 1
    assert found.offered() == {"a"}


def test_what_a_change_tells_meanwhile_is_no_finding() -> None:
    strategy = Labelled()
    found = running(strategy, objects=[good()])
    found.core.resync()
    found.put(wrong())
    found.wait(10)

    assert found.metric("resync_findings") == 0
    assert found.offered() == {"a"}


def test_a_finding_that_a_change_explains_later_is_not_held_against_the_next_resync() -> None:
    strategy = Deaf()
    found = running(strategy, objects=[good()])
    found.put(wrong())
    found.core.resync()
    found.drain()  # seen once
    found.core.bus.look_again(Key(0, NAME, ("uid-default-a",)))
    found.wait(5)
    found.put(good())
    found.core.bus.look_again(Key(0, NAME, ("uid-default-a",)))
    found.wait(5)
    found.put(wrong())
    found.core.resync()
    found.drain()

    assert found.metric("resync_findings") == 0, "seen once, not twice"


def test_gate_events_wake_held_candidates_without_evaluating_them() -> None:
    strategy = Labelled()
    policy = POLICY.replace("reactive: {", "maxNoOfPodsToEvictTotal: 1\nreactive: {")
    found = running(strategy, objects=[wrong(), wrong("b")], policy=policy)
    (entry,) = found.send()
    held = [each for each in found.core.evictions.candidates() if each.held]
    assert len(held) == 1
    strategy.evaluated.clear()
    found.core.bus.wake([ClusterEvent(Action.LIMIT_FREED, ("Pod", "default", "x"))])

    assert held[0].held is None
    assert strategy.evaluated == []
    assert entry.candidate.pod.name != held[0].candidate.pod.name
