"""The hold rule: while what a balance key counts is on its way, nothing new is offered."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import ClassVar

import pytest

from reactive_descheduler.api.changes import Action, Change, Key
from reactive_descheduler.api.eviction import Answer, Candidate, Cause
from reactive_descheduler.api.pod import (
    EVICTION_IN_PROGRESS_ANNOTATION,
    REQUEST_EVICT_ONLY_ANNOTATION,
    Pod,
)
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.config.feature_gates import FeatureGate
from reactive_descheduler.framework.profile import Profile
from reactive_descheduler.framework.strategy import (
    Evaluation,
    Holds,
    Phase,
    Scope,
    Strategy,
    Subscription,
    View,
)
from tests.builders import Manifest, make_pod
from tests.unit.controller.running import Labelled, Open, Running, running
from tests.unit.evictor.samples import NOW

KEY = Key(0, "RemoveDuplicates", ("default",))


class Level:
    """Wants as many Pods on node-1 as on node-2: offers what is too much on node-1."""

    NAME: ClassVar[str] = "RemoveDuplicates"
    PHASE: ClassVar[Phase] = Phase.BALANCE
    HOLDS: ClassVar[Holds] = Holds.COUNTED
    EVENTS: ClassVar[tuple[Subscription, ...]] = (
        Subscription(Action.POD_BOUND | Action.POD_GONE | Action.POD_TERMINATING, Scope.OWNER),
    )

    def keys_of(self, lister: Lister, /) -> Iterable[Key]:
        return [KEY]

    def keys_for(self, scope: Scope, change: Change, lister: Lister, /) -> Iterable[Key]:
        return [KEY]

    def evaluate(self, view: View, key: Key, /) -> Evaluation:
        here, there = (
            [pod for pod in view.lister.pods_on(node) if pod.deleted is None and pod.active]
            for node in ("node-1", "node-2")
        )
        for pod in here[len(here) - (len(here) - len(there)) // 2 :]:
            yield Candidate(key, pod, Cause("level", key.unit, (pod.ref,)), "too many")

    def sweep(self, view: View, /) -> Evaluation:
        yield from self.evaluate(view, KEY)

    def counts(self, key: Key, pod: Pod, _lister: Lister, /) -> bool:
        return pod.namespace == key.unit[0] and pod.template.labels.get("app") != "other"

    def breaks(self, cause: Cause, change: Change, /) -> bool:
        return False


class OwnLevel(Level):
    HOLDS: ClassVar[Holds] = Holds.OWN


def web(name: str, node: str = "node-1", *, age: float = 3600, **fields: object) -> Manifest:
    return make_pod(
        name,
        node=node,
        created=NOW - timedelta(seconds=age),
        **fields,  # type: ignore[arg-type]
    )


POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
reactive: {settle: {default: 0s}, debounce: {quiet: 0s}, resync: 10h}
"""


def level(
    *objects: Manifest, strategy: type[Level] = Level, others: tuple[Strategy, ...] = ()
) -> Running:
    def profiles() -> tuple[Profile, ...]:
        balance = (strategy(),)
        return (Profile(index=0, name="p", deschedule=others, balance=balance, evictor=Open()),)

    return running(
        objects=objects,
        policy=POLICY,
        profiles=profiles,
        feature_gates=frozenset({FeatureGate.EVICTIONS_IN_BACKGROUND}),
    )


def four() -> list[Manifest]:
    return [web(name) for name in ("a", "b", "c", "d")]


def test_an_eviction_holds_its_key_until_the_pod_is_gone_and_the_new_one_bound() -> None:
    found = level(*four())
    assert found.offered() == {"c", "d"}
    first, second = found.send()
    found.answer(first, Answer.EVICTED, status=201)
    found.answer(second, Answer.EVICTED, status=201)
    for name in ("c", "d"):
        found.remove(web(name))
    found.wait(1)
    # Two are left on node-1 and none on node-2, yet both replacements are on their way.
    assert found.offered() == set()
    found.put(web("e", "", age=-3), web("e", "node-2", age=-3, version="2"))
    found.wait(1)
    assert found.offered() == set()
    found.put(web("f", "node-2", age=-3))
    found.wait(1)
    assert found.offered() == set()
    remembered = found.core.parking.get(KEY)
    assert remembered is None or not remembered.rejected


def test_a_replacement_that_comes_back_to_the_same_node_ends_the_hold() -> None:
    found = level(*four())
    for entry in found.send():
        found.answer(entry, Answer.EVICTED, status=201)
    for name in ("c", "d"):
        found.remove(web(name))
    found.put(web("e", "node-1", age=-3), web("f", "node-1", age=-3))
    found.wait(1)
    assert found.offered() == {"e", "f"}


def test_a_pod_made_before_the_request_replaces_nobody() -> None:
    found = level(*four())
    for entry in found.send():
        found.answer(entry, Answer.EVICTED, status=201)
    found.put(web("e", "node-1", age=60), web("f", "node-1", age=60))
    for name in ("c", "d"):
        found.remove(web(name))
    found.wait(1)
    assert found.offered() == set()


def test_what_never_comes_back_holds_until_the_time_out() -> None:
    found = level(*four())
    for entry in found.send():
        found.answer(entry, Answer.EVICTED, status=201)
    for name in ("c", "d"):
        found.remove(web(name))
    found.wait(298)
    assert found.offered() == set()
    found.wait(3)
    assert found.offered() == {"b"}


def test_a_refused_request_holds_nobody() -> None:
    found = level(*four())
    first, second = found.send()
    found.answer(first, Answer.EVICTED, status=201)
    found.answer(second, Answer.SERVER_ERROR)
    found.remove(web(first.candidate.pod.name))
    found.put(web("e", "node-2", age=-3))
    found.wait(1)
    assert found.offered() == {second.candidate.pod.name}


@pytest.mark.parametrize(
    ("strategy", "offered"), [(Level, set()), (OwnLevel, {"b"})], ids=["counted", "own"]
)
def test_a_pod_that_others_delete_holds_keys_that_count_it(
    strategy: type[Level], offered: set[str]
) -> None:
    going = web("x", "node-2", deleted=NOW + timedelta(seconds=30))
    found = level(web("a"), web("b"), going, strategy=strategy)
    assert found.offered() == offered
    found.remove(going)
    found.wait(1)
    assert found.offered() == {"b"}


def test_a_pod_stuck_terminating_holds_no_longer_than_the_time_out() -> None:
    going = web("x", "node-2", deleted=NOW + timedelta(seconds=30))
    found = level(web("a"), web("b"), going)
    found.wait(325)
    assert found.offered() == set()
    found.wait(6)
    assert found.offered() == {"b"}


def test_a_pod_that_the_key_does_not_count_holds_nothing() -> None:
    going = web("x", "node-2", labels={"app": "other"}, deleted=NOW + timedelta(seconds=30))
    found = level(web("a"), web("b"), going)
    assert found.offered() == {"b"}


def test_candidates_that_wait_go_on_while_the_key_is_held() -> None:
    found = level(*(web(name) for name in "abcdef"))
    assert found.offered() == {"d", "e", "f"}
    entry = found.core.dispatcher.next_request()
    assert entry is not None
    found.answer(entry, Answer.EVICTED, status=201)
    found.remove(web(entry.candidate.pod.name))
    found.wait(1)
    # Five on node-1, none on node-2: two too many, and both were offered before.
    assert len(found.offered()) == 2
    assert found.offered() < {"d", "e", "f"}


def test_a_bare_pod_is_waited_for_only_until_it_is_gone() -> None:
    bare = [make_pod(name, node="node-1", owners=[]) for name in ("a", "b", "c", "d")]
    found = level(*bare)
    for entry in found.send():
        found.answer(entry, Answer.EVICTED, status=201)
    for manifest in bare[2:]:
        found.remove(manifest)
    found.wait(1)
    assert found.offered() == {"b"}


def six_of_which_another_strategy_wants_one() -> list[Manifest]:
    wrong = {"app": "web", "wrong": "yes"}
    return [web("a", labels=wrong), *(web(name) for name in "bcdef")]


def test_what_another_strategy_evicts_voids_what_a_key_has_offered() -> None:
    found = level(*six_of_which_another_strategy_wants_one(), others=(Labelled(),))
    assert found.offered() == {"a", "d", "e", "f"}
    (entry,) = found.send()
    assert entry.candidate.pod.name == "a"
    found.answer(entry, Answer.EVICTED, status=201)
    found.wait(1)
    assert found.offered() == set()
    found.remove(web("a"))
    found.put(web("g", "node-2", age=-3))
    found.wait(1)
    # Five are left and one is there: two would level them, where three were offered before.
    assert found.offered() == {"e", "f"}


def test_what_others_delete_voids_what_a_key_has_offered() -> None:
    found = level(*(web(name) for name in "abcdef"))
    assert found.offered() == {"d", "e", "f"}
    found.put(web("a", deleted=NOW + timedelta(seconds=30), version="2"))
    found.wait(1)
    assert found.send() == []
    found.remove(web("a"))
    found.put(web("g", "node-2", age=-3))
    found.wait(1)
    assert found.offered() == {"e", "f"}


def test_a_victim_of_another_strategy_holds_those_that_weigh_nodes_until_it_is_gone() -> None:
    objects = six_of_which_another_strategy_wants_one()
    found = level(*objects, strategy=OwnLevel, others=(Labelled(),))
    (entry,) = found.send()
    found.answer(entry, Answer.EVICTED, status=201)
    found.put(web("a", deleted=NOW + timedelta(seconds=30), version="2"))
    found.wait(1)
    assert found.offered() == set()
    found.remove(web("a"))
    found.wait(1)
    assert found.offered() == {"e", "f"}


@pytest.mark.parametrize("strategy", [Level, OwnLevel], ids=["counted", "own"])
def test_a_pod_that_takes_long_to_end_holds_until_it_is_gone_and_replaced(
    strategy: type[Level],
) -> None:
    found = level(*four(), strategy=strategy)
    for entry in found.send():
        found.answer(entry, Answer.EVICTED, status=201)
    for name in ("c", "d"):
        found.put(web(name, deleted=NOW + timedelta(seconds=600), version="2"))
    found.wait(598)
    assert found.offered() == set()
    for name in ("c", "d"):
        found.remove(web(name))
    found.wait(200)
    assert found.offered() == set()
    found.put(web("e", "node-2", age=-700), web("f", "node-2", age=-700))
    found.wait(1)
    assert found.offered() == set()


def test_a_lost_request_that_came_to_nothing_leaves_its_replacement_to_the_next() -> None:
    found = level(*four())
    first, second = found.send()
    found.answer(first, Answer.UNKNOWN, status=None)
    found.answer(second, Answer.EVICTED, status=201)
    found.remove(web(second.candidate.pod.name))
    found.put(web("e", "node-2", age=-3))
    found.wait(60)
    assert found.offered() == set()
    found.core.resolve(first.candidate.pod.uid)
    found.wait(1)
    # Three are left on node-1 and one is on node-2: one more would level them.
    assert len(found.offered()) == 1


def machine(name: str, *, in_progress: bool = False, version: str = "1") -> Manifest:
    """Return the Pod of a virtual machine, whose eviction is finished in background."""
    annotations = {REQUEST_EVICT_ONLY_ANNOTATION: ""}
    if in_progress:
        annotations[EVICTION_IN_PROGRESS_ANNOTATION] = ""
    return web(name, annotations=annotations, version=version)


def level_of_machines() -> Running:
    """Four of them, of which two are taken over by a webhook."""
    found = level(*(machine(name) for name in "abcd"))
    assert found.offered() == {"c", "d"}
    for entry in found.send():
        found.answer(entry, Answer.BACKGROUND, status=429)
    return found


def test_an_eviction_in_background_holds_its_key_until_it_ends() -> None:
    found = level_of_machines()
    for name in ("c", "d"):
        found.put(machine(name, in_progress=True, version="2"))
    found.wait(3600)
    found.core.end_waits()
    found.wait(1)
    assert found.send() == []

    for name in ("c", "d"):
        found.remove(machine(name))
    found.wait(298)
    found.core.end_waits()
    assert found.offered() == set()
    found.wait(3)
    found.core.end_waits()
    found.wait(1)
    assert found.offered() == {"b"}


def test_an_eviction_in_background_that_never_shows_holds_until_it_is_given_up() -> None:
    found = level_of_machines()
    found.wait(599)
    found.core.end_waits()
    found.wait(1)
    assert found.send() == []
    found.core.end_waits()
    found.wait(1)
    assert found.offered() == {"c", "d"}


def test_an_eviction_in_background_that_is_taken_back_no_longer_holds() -> None:
    found = level_of_machines()
    for name in ("c", "d"):
        found.put(machine(name, in_progress=True, version="2"))
    found.wait(1)
    assert found.send() == []
    for name in ("c", "d"):
        found.put(machine(name, version="3"))
    found.wait(1)
    assert {entry.candidate.pod.name for entry in found.send()} == {"c", "d"}


def test_what_never_comes_back_is_forgotten_where_no_balance_strategy_asks() -> None:
    wrong = web("a", labels={"wrong": "yes"})
    found = running(Labelled(), objects=[wrong])
    (entry,) = found.send()
    found.answer(entry, Answer.EVICTED, status=201)
    found.remove(wrong)
    assert found.core.gates.replacements.awaits("uid-default-a")
    found.clock.advance(301)
    found.core.end_waits()
    assert not found.core.gates.replacements.awaits("uid-default-a")
