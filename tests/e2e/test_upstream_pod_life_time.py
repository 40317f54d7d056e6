"""Upstream's end-to-end scenarios of PodLifeTime and of DefaultEvictor, as events make them.

Upstream runs one pass over Pods that are old enough. Here the program runs first, and each Pod goes
when it comes of age. docs/e2e.md has the numbers.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.e2e.conftest import NODES, a_namespace
from tests.e2e.objects import make_daemon_set, make_deployment, make_job
from tests.e2e.policies import make_policy
from tests.e2e.scene import uids

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from tests.e2e.api import Api, Json
    from tests.e2e.scene import Scene

pytestmark = [pytest.mark.e2e, pytest.mark.real_time, pytest.mark.timeout(120)]

LIFE = 4
"""Seconds that Pods may live: enough for a test to see all of them Ready before they go."""
PRIORITIES = {"e2e-500": 500, "e2e-1000": 1000}
CRITICAL = {"priorityClassName": "system-node-critical"}
LOCAL_STORAGE = {"volumes": [{"name": "scratch", "emptyDir": {}}]}
EVICT = {"descheduler.alpha.kubernetes.io/evict": "true"}


@pytest.fixture
async def _priorities(api: Api) -> AsyncIterator[None]:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    for name, value in PRIORITIES.items():
        await api.create(path, {"metadata": {"name": name}, "value": value})
    yield
    for name in PRIORITIES:
        await api.delete(f"{path}/{name}")


def life_time(
    scene: Scene,
    arguments: Mapping[str, object] | None = None,
    *,
    evictor: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """A policy by which Pods of the test's namespace go at LIFE, unless the arguments differ."""
    usual = {"maxPodLifeTimeSeconds": LIFE, "namespaces": {"include": [scene.namespace]}}
    return make_policy("PodLifeTime", {**usual, **(arguments or {})}, evictor=evictor)


def of_priority(name: str, *, replicas: int) -> dict[str, object]:
    """A Deployment of which each Pod has the priority of its name."""
    return make_deployment(name, replicas=replicas, extra={"priorityClassName": name})


@pytest.mark.parametrize("chosen", ["include", "exclude"])
async def test_only_pods_of_the_namespaces_asked_for_go(scene: Scene, chosen: str) -> None:
    async with a_namespace(scene.api) as name:
        other = replace(scene, namespace=name)
        policy = life_time(scene, {"namespaces": {chosen: [scene.namespace]}})
        going, staying = (scene, other) if chosen == "include" else (other, scene)
        async with scene.running(policy):
            await staying.create(make_deployment("web", replicas=5))
            await going.sees_evicted(
                uids(await going.deploy(make_deployment("web", replicas=5), pods=5))
            )
            await scene.quiet()
            assert not staying.evicted()


@dataclass(frozen=True, slots=True)
class Case:
    """Of whom the Pods go, and of whom they stay, by the settings of DefaultEvictor."""

    goes: tuple[Json, ...]
    stays: tuple[Json, ...] = ()
    evictor: Mapping[str, object] = field(default_factory=dict)
    arguments: Mapping[str, object] = field(default_factory=dict)


TWO_APPS = (make_deployment("web", replicas=5), make_deployment("db", replicas=5))
ALL_PRIORITIES = (
    of_priority("e2e-1000", replicas=3),
    of_priority("e2e-500", replicas=3),
    make_deployment("critical", replicas=3, extra=CRITICAL),
)
LOW, HIGH = of_priority("e2e-500", replicas=5), of_priority("e2e-1000", replicas=5)


def critical_too(threshold: Mapping[str, object]) -> Mapping[str, object]:
    """Settings that lift the threshold beside them."""
    return {"evictSystemCriticalPods": True, "priorityThreshold": threshold}


def count_pods(workload: Json) -> int:
    """How many Pods a Deployment or DaemonSet has when it is complete."""
    match workload:
        case {"spec": {"replicas": int(replicas)}}:
            return replicas
    return len(NODES)


@pytest.mark.usefixtures("_priorities")
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            Case(ALL_PRIORITIES, evictor=critical_too({"value": 1000})),
            id="system critical too",
        ),
        pytest.param(
            Case(
                ALL_PRIORITIES,
                evictor={
                    "evictSystemCriticalPods": True,
                    "priorityThreshold": {"name": "e2e-1000"},
                },
            ),
            id="system critical too, with a class",
        ),
        pytest.param(
            Case((make_daemon_set("agent"),), evictor={"evictDaemonSetPods": True}),
            id="daemon set",
        ),
        pytest.param(
            Case((LOW,), (HIGH,), evictor={"priorityThreshold": {"value": 1000}}),
            id="below a priority",
        ),
        pytest.param(
            Case((LOW,), (HIGH,), evictor={"priorityThreshold": {"name": "e2e-1000"}}),
            id="below a priority class",
        ),
        pytest.param(
            Case(
                TWO_APPS[:1],
                TWO_APPS[1:],
                arguments={"labelSelector": {"matchLabels": {"app": "web"}}},
            ),
            id="with a label",
        ),
        pytest.param(
            Case(
                (make_deployment("web", replicas=5, annotations=EVICT, extra=LOCAL_STORAGE),),
                (make_deployment("db", replicas=5, extra=LOCAL_STORAGE), make_daemon_set("agent")),
            ),
            id="annotated",
        ),
    ],
)
async def test_who_goes_when_of_age(scene: Scene, case: Case) -> None:
    async with scene.running(life_time(scene, case.arguments, evictor=case.evictor)):
        pods = await asyncio.gather(
            *(scene.deploy(each, pods=count_pods(each)) for each in (*case.goes, *case.stays))
        )
        going = [pod for app in pods[: len(case.goes)] for pod in app]
        await scene.sees_evicted(uids(going))
        await scene.quiet()
        staying = [pod for app in pods[len(case.goes) :] for pod in app]
        assert not scene.evicted() & uids(staying)


async def test_with_room_for_one_under_a_limit_the_oldest_goes(scene: Scene) -> None:
    policy = life_time(scene) | {"maxNoOfPodsToEvictPerNamespace": 1}
    async with scene.running(policy):
        oldest = await scene.deploy(make_deployment("web", replicas=1), pods=1)
        await asyncio.sleep(1)  # creation times are whole seconds
        await scene.api.patch(scene.path("Deployment", "web"), {"spec": {"replicas": 5}})
        await scene.available("web", pods=5)
        await scene.sees_evicted(uids(oldest))
        await asyncio.sleep(LIFE)
        await scene.quiet()
        assert scene.evicted() == uids(oldest)


async def test_a_pod_goes_within_a_second_of_coming_of_age(scene: Scene) -> None:
    names = [f"web-{number}" for number in range(5)]
    async with scene.running(life_time(scene)):
        for name in names:
            await scene.create(make_deployment(name, replicas=1))
            await asyncio.sleep(0.3)  # so that they are created at all times of a second
        first = {name: (await scene.available(name, pods=1))[0] for name in names}
        await scene.sees_evicted(uids(first.values()))
    for name in names:
        eviction = scene.witness.evicted(scene.namespace, name)[0]
        created = eviction.pod.metadata.creation_timestamp
        assert created is not None
        late = eviction.seen - created - timedelta(seconds=LIFE + 1)  # age has to pass LIFE
        assert timedelta() <= late < timedelta(seconds=1), name


JOB_LEFT_OUT = {"ownerKinds": {"exclude": ["Job"]}}
COMPLETED = {"conditions": [{"reason": "PodCompleted", "status": "True"}]}
UNKNOWN = {"conditions": [{"reason": "ReasonDoesNotMatch", "status": "True"}]}


@pytest.mark.parametrize(
    ("ends", "arguments", "goes"),
    [
        pytest.param("Failed", {}, True, id="failed"),
        pytest.param("Failed", JOB_LEFT_OUT, False, id="failed, jobs left out"),
        pytest.param("Succeeded", {}, True, id="succeeded"),
        pytest.param("Succeeded", COMPLETED, True, id="succeeded, with a condition"),
        pytest.param("Succeeded", UNKNOWN, False, id="succeeded, without the condition"),
    ],
)
async def test_pods_of_jobs_go_by_their_state(
    scene: Scene, ends: str, arguments: Mapping[str, object], goes: bool
) -> None:
    policy = life_time(scene, {"maxPodLifeTimeSeconds": None, "states": [ends], **arguments})
    async with scene.running(policy):
        await scene.create(make_job("work", ends=ends))
        if goes:
            await scene.sees_evictions(1)
        else:
            await scene.pods("work", count=1, phase=ends)
        await scene.quiet()
        assert len(scene.evicted()) == int(goes)
