"""Room for one is promised to one: the others wait until it is taken, or free again."""

from __future__ import annotations

import pytest

from reactive_descheduler.api.changes import Key
from reactive_descheduler.api.eviction import Answer, Candidate, Cause
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.scheduling.fit import UPSTREAM
from reactive_descheduler.config.load import load_policy
from reactive_descheduler.framework.rooms import Rooms
from reactive_descheduler.strategies import PLUGINS
from tests.builders import Manifest, Time, cluster, make_node, make_pod, owner, taint
from tests.unit.controller.test_missed_changes import TAINTS, Daemon
from tests.unit.evictor.samples import NOW

FIT: Manifest = {"nodeFit": True}
LARGE = {"cpu": "3"}


def two_for_one_place(*, corrections: str = "all") -> Daemon:
    return Daemon(
        make_node("n1", taints=[taint()]),
        make_node("n2"),
        make_pod("a", node="n1", requests=LARGE, owners=[owner("a")]),
        make_pod("b", node="n1", requests=LARGE, owners=[owner("b")]),
        strategies={TAINTS: {}},
        evictor=FIT,
        corrections=corrections,
    )


def sent(daemon: Daemon) -> list[str]:
    names = [entry.candidate.pod.name for entry in daemon.requests()]
    daemon.run.rest()
    return names


def test_both_go_where_nothing_is_promised() -> None:
    daemon = two_for_one_place(corrections="missingPluginConfig")
    assert sent(daemon) == ["a", "b"]


def test_second_victim_finds_no_room_that_is_promised_to_the_first() -> None:
    daemon = two_for_one_place()
    assert daemon.offered() == {"a", "b"}

    assert sent(daemon) == ["a"]

    assert "b" not in daemon.offered()
    assert daemon.reasons() == {"nodeFit"}


def test_it_may_go_when_the_replacement_of_the_first_is_bound_elsewhere() -> None:
    daemon = two_for_one_place()
    (entry,) = daemon.requests()
    daemon.answer(entry, Answer.EVICTED)
    assert daemon.offered() == set()

    daemon.happen(make_pod("a", node="n1", requests=LARGE, owners=[owner("a")]), gone=True)
    assert daemon.offered() == set()
    made = daemon.run.clock.now()
    daemon.happen(
        make_node("n3"),
        make_pod("a2", node="n3", requests=LARGE, owners=[owner("a")], created=made),
    )

    assert daemon.offered() == {"b"}


def test_one_that_fitted_nowhere_before_may_go_too_once_a_promise_ends() -> None:
    """The node came to suit it while the room was promised."""
    closed = taint("closed")

    def of_a(name: str, node: str, created: Time = NOW) -> Manifest:
        return make_pod(
            name,
            node=node,
            requests=LARGE,
            owners=[owner("a")],
            tolerations=[{"key": "closed", "operator": "Exists"}],
            created=created,
        )

    daemon = Daemon(
        make_node("n1", taints=[taint()]),
        make_node("n2", taints=[closed]),
        of_a("a", "n1"),
        make_pod("b", node="n1", requests=LARGE, owners=[owner("b")]),
        strategies={TAINTS: {}},
        evictor=FIT,
    )
    (entry,) = daemon.requests()
    daemon.answer(entry, Answer.EVICTED)
    daemon.happen(make_node("n2"))
    assert daemon.offered() == set()
    daemon.happen(of_a("a", "n1"), gone=True)
    made = daemon.run.clock.now()

    daemon.happen(make_node("n3", taints=[closed]), of_a("a2", "n3", made))

    assert daemon.offered() == {"b"}


def test_it_may_not_go_when_that_replacement_took_the_room() -> None:
    daemon = two_for_one_place()
    (entry,) = daemon.requests()
    daemon.answer(entry, Answer.EVICTED)

    daemon.happen(make_pod("a", node="n1", requests=LARGE, owners=[owner("a")]), gone=True)
    made = daemon.run.clock.now()
    daemon.happen(make_pod("a2", node="n2", requests=LARGE, owners=[owner("a")], created=made))

    assert (daemon.offered(), daemon.reasons()) == (set(), {"nodeFit"})


@pytest.mark.parametrize("answer", [Answer.SERVER_ERROR, Answer.BUDGET])
def test_it_may_go_when_the_first_was_refused(answer: Answer) -> None:
    daemon = two_for_one_place()
    (entry,) = daemon.requests()
    daemon.run.rest()
    assert daemon.offered() == {"a"}

    daemon.answer(entry, answer)

    assert daemon.offered() == {"a", "b"}


def test_it_may_go_when_the_first_was_waited_for_long_enough() -> None:
    daemon = two_for_one_place()
    (entry,) = daemon.requests()
    daemon.answer(entry, Answer.EVICTED)

    daemon.run.wait(299)
    daemon.run.core.end_waits()
    daemon.run.rest()
    assert daemon.offered() == set()
    daemon.run.wait(1)
    daemon.run.core.end_waits()
    daemon.run.rest()

    assert daemon.offered() == {"b"}


def test_a_dry_run_does_not_stand_in_its_own_way() -> None:
    daemon = two_for_one_place()
    (entry,) = daemon.requests()

    daemon.answer(entry, Answer.DRY_RUN)

    assert daemon.offered() == {"a"}


def room(pod: Manifest, *others: Manifest, evictor: str = "{nodeFit: true}") -> Node | None:
    policy = load_policy(
        f"""
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: p
  pluginConfig: [{{name: DefaultEvictor, args: {evictor}}}]
  plugins: {{deschedule: {{enabled: [{TAINTS}]}}}}
""",
        source="policy",
        plugins=PLUGINS,
    )
    lister = cluster(make_node("n1"), make_node("n2", labels={"new": "1"}), pod, *others)
    found = lister.pod_named("default", "p")
    assert found is not None
    candidate = Candidate(Key(0, TAINTS, (found.uid,)), found, Cause("taint", (), ()), "")
    return Rooms(policy.profiles, UPSTREAM).of(candidate, lister)


@pytest.mark.parametrize(
    ("pod", "evictor", "expected"),
    [
        pytest.param(make_pod("p", node="n1"), "{}", "n2", id="elsewhere"),
        pytest.param(make_pod("p", node="n2"), "{}", "n1", id="first-by-name"),
        pytest.param(
            make_pod("p", node="n3"), '{nodeFit: true, nodeSelector: "new=1"}', "n2", id="selector"
        ),
        pytest.param(
            make_pod("p", node="n3"),
            '{nodeSelector: "new=1"}',
            "n1",
            id="selector-alone",
        ),
        pytest.param(make_pod("p", node="n1", requests={"cpu": 9}), "{}", None, id="too-large"),
        pytest.param(make_pod("p", node="n1", owners=[]), "{}", None, id="nobody-replaces-it"),
        pytest.param(
            make_pod("p", node="n1", owners=[owner("a", kind="DaemonSet")]),
            "{}",
            None,
            id="comes-back-to-its-node",
        ),
        pytest.param(make_pod("p", node="n1", phase="Failed"), "{}", None, id="replaced-already"),
    ],
)
def test_room_is_looked_for_where_the_replacement_may_go(
    pod: Manifest, evictor: str, expected: str | None
) -> None:
    found = room(pod, evictor=evictor)

    assert (found.name if found else None) == expected
