"""Bad input, case by case: a clear message, no crash, no eviction in doubt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import NamedTuple, cast

import anyio
import pytest
from structlog.typing import EventDict

from reactive_descheduler.api.errors import PolicyError
from reactive_descheduler.app.daemon import Daemon
from reactive_descheduler.app.process import read_policy
from reactive_descheduler.app.settings import RunSettings
from reactive_descheduler.client.kube import connect
from reactive_descheduler.config.load import load_policy
from reactive_descheduler.framework.strategy import Evaluation
from reactive_descheduler.kit.clock import LoopClock
from reactive_descheduler.sandbox.faults import Fault
from reactive_descheduler.strategies import PLUGINS
from reactive_descheduler.strategies.pod_life_time import PodLifeTime
from tests.builders import Manifest, make_namespace, make_node, make_pod
from tests.daemon.world import AT_ONCE, START, TAINTS, Here, World, life_time, world

DENIED = (
    'pods is forbidden: User "descheduler" cannot list resource "pods" in API group "" at the'
    " cluster scope"
)
UNBORN = START + timedelta(days=1)


def nodes_and(*objects: Manifest) -> list[Manifest]:
    return [make_namespace(), make_node("node-1"), make_node("node-2"), *objects]


def unreadable(pod: Manifest, **spec: object) -> Manifest:
    return pod | {"spec": {**cast(Manifest, pod["spec"]), **spec}}


async def _taint(running: World) -> None:
    await running.live()
    await running.taint("node-1")


async def _wait(_running: World) -> None:
    return None


async def _jump(running: World) -> None:
    await running.live()
    running.clock.shift(timedelta(days=30))
    await running.taint("node-1")


class Case(NamedTuple):
    told: str
    """What logs, status or readiness say of it, in part; empty where there is nothing to tell."""
    objects: list[Manifest] = nodes_and(make_pod("a", node="node-1"))
    policy: str = TAINTS + AT_ONCE
    faults: tuple[Fault, ...] = ()
    act: Callable[[World], Awaitable[None]] = _taint
    seconds: float = 50
    """How long nothing may go."""


OLD = START - timedelta(days=100)
CASES = {
    "no right to list a needed kind": Case(
        "cannot list resource",
        faults=(Fault(resource="pods", status=403, message=DENIED),),
        act=_wait,
    ),
    "credentials not accepted": Case(
        "credentials are not accepted", faults=(Fault(status=401),), act=_wait
    ),
    "an API server that fails": Case("not synced", faults=(Fault(status=503),), act=_wait),
    "an API server that hangs up": Case("not synced", faults=(Fault(drop="before"),), act=_wait),
    "a Pod that cannot be read": Case(
        "'opaque': 1",
        nodes_and(unreadable(make_pod("a", node="node-1"), tolerations={"no": "list"})),
    ),
    "a node that cannot be read": Case(
        "'opaque': 1",
        [
            make_namespace(),
            make_node("node-2"),
            make_node("node-3"),
            unreadable(make_node("node-1"), taints=17),
            make_pod("a", node="node-1"),
        ],
        act=_wait,
    ),
    "a Pod born in the future": Case(
        "", nodes_and(make_pod("a", node="node-1", created=UNBORN)), life_time(60), act=_wait
    ),
    "a Pod without a birth": Case(
        "", nodes_and(make_pod("a", node="node-1", created=None)), life_time(60), act=_wait
    ),
    "a Pod on a node that is not there": Case("", nodes_and(make_pod("a", node="node-9"))),
    "no node at all": Case("", [make_namespace(), make_pod("a", node="node-1")], act=_wait),
    "a Pod in a namespace that is not there": Case(
        "", [make_node("node-1"), make_node("node-2")], act=_taint
    ),
    "a clock that jumps": Case("The wall clock jumped", act=_jump),
    "a budget that is no budget": Case(
        "'opaque': 1",
        nodes_and(
            make_pod("a", node="node-1"),
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {"selector": ["app", "web"]},
            },
        ),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_bad_input_is_told_and_evicts_nobody(case: Case, logs: list[EventDict]) -> None:
    faults = [Fault(**{**vars(fault), "hits": 0}) for fault in case.faults]
    async with world(case.policy, case.objects, faults=faults) as running:
        await case.act(running)
        await running.rest(case.seconds)

        assert running.requests.hits == 0
        assert not running.ended.is_set()
        assert running.metric("task_crashes") == 0
        assert case.told in f"{running.status()} {running.daemon.not_ready()} {logs}"


async def test_a_strategy_that_raises_is_told_and_evicts_nobody(
    monkeypatch: pytest.MonkeyPatch, logs: list[EventDict]
) -> None:
    def evaluate(*_args: object) -> Evaluation:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(PodLifeTime, "evaluate", evaluate)
    objects = nodes_and(make_pod("a", node="node-1", created=OLD))
    async with world(life_time(60), objects) as running:
        await running.live()
        await running.rest(50)

        assert running.requests.hits == 0
        assert running.status()["degraded"] == ["PodLifeTime"]
        errors = [entry for entry in logs if entry["log_level"] == "error"]
        assert [(each["event"], each["strategy"]) for each in errors] == [
            ("strategy failed on a key", "PodLifeTime"),
            ("Strategy degraded", "PodLifeTime"),
        ]


async def test_an_api_server_that_cannot_be_reached_is_told_and_tried_again() -> None:
    clock = LoopClock(START)
    policy = load_policy(TAINTS, source="policy.yaml", plugins=PLUGINS)
    async with await connect(source=Here("http://127.0.0.1:1"), clock=clock) as connection:
        daemon = Daemon(
            RunSettings(policy_config_file="policy.yaml"),
            policy,
            connection,
            clock=clock,
            random=Random(1),
            priority_classes={},
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(daemon.run)
            await anyio.sleep(120)
            reasons = daemon.not_ready()
            assert len(reasons) == 4
            assert all("127.0.0.1" in reason for reason in reasons)
            daemon.stop()


BROKEN = {
    "no YAML": ("apiVersion: [", "policy.yaml:1:"),
    "not a policy": ("just text", "policy"),
    "an unknown key": (TAINTS + "nonsense: 1\n", "nonsense"),
    "an unknown strategy": (
        TAINTS.replace("RemovePodsViolatingNodeTaints", "RemoveEverything"),
        "RemoveEverything",
    ),
    "a strategy not built yet": (
        TAINTS.replace("RemovePodsViolatingNodeTaints", "RemoveDuplicates"),
        "RemoveDuplicates",
    ),
    "a negative age": (life_time(-5), "maxPodLifeTimeSeconds"),
}


@pytest.mark.real_time  # files are read in a thread
@pytest.mark.parametrize(("text", "told"), BROKEN.values(), ids=BROKEN)
async def test_a_broken_policy_is_refused_before_anything_starts(
    text: str, told: str, tmp_path: Path
) -> None:
    path = tmp_path / "policy.yaml"
    await anyio.Path(path).write_text(text)
    with pytest.raises(PolicyError) as caught:
        await read_policy(RunSettings(policy_config_file=str(path)))

    assert told in str(caught.value)
    assert str(path) in str(caught.value)
