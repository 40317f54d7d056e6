"""The five scenes: what each changes over the API, and which Pods must be replaced for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import anyio

from reactive_descheduler.cli.demo_stage import DISK_LABEL, Stage
from reactive_descheduler.cli.demo_timeline import Step
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    controller_of,
    is_terminating,
    labels,
    name_of,
    namespace_of,
    objects,
    seconds_of,
    text,
    uid_of,
)
from reactive_descheduler.sandbox.sample import until_settled

LIFE = timedelta(seconds=6)
"""The age of the policy that labelled Pods may reach."""
RENEW_LABEL = "renew"
THRESHOLD = 10
"""The restarts of the policy from which on a Pod goes."""

_HELD_FOR = 1.0
"""Seconds for which the last scene keeps the budget closed: a wait that can be seen."""


class Act(NamedTuple):
    """What was done. `expected`: the UIDs of the Pods that have to be replaced, and no others.

    `since`: from when on they may go, never earlier; milliseconds count from here.
    """

    expected: frozenset[str]
    since: datetime


@dataclass(frozen=True, slots=True)
class Scene:
    name: str
    title: str
    strategy: str
    play: Callable[[Stage], Awaitable[Act]]
    within: timedelta | None = None
    """How soon the eviction has to follow, where that is promised."""


async def _taint(stage: Stage) -> Act:
    by_node: dict[str, list[JsonObject]] = {}
    for pod in _pods(stage):
        if text(controller_of(pod), "kind") != "DaemonSet":
            by_node.setdefault(text(pod, "spec", "nodeName"), []).append(pod)
    node = max(sorted(by_node), key=lambda name: len(by_node[name]))
    taint = {"key": "retiring", "value": "yes", "effect": "NoSchedule"}
    since = stage.timeline.change(f"{node} gets the taint retiring=yes:NoSchedule")
    await stage.client.patch("nodes", node, {"spec": {"taints": [taint]}})
    return Act(_uids(by_node[node]), since)


async def _take_label(stage: Stage) -> Act:
    api = _pods(stage, app="api")
    node = text(api[0], "spec", "nodeName")
    expected = _uids([pod for pod in api if text(pod, "spec", "nodeName") == node])
    since = stage.timeline.change(f"{node} loses the label {DISK_LABEL}=ssd, which api asks for")
    await stage.client.patch("nodes", node, {"metadata": {"labels": {DISK_LABEL: None}}})
    return Act(expected, since)


async def _restart(stage: Stage) -> Act:
    pod = _pods(stage, app="batch")[0]
    since = await _crash(stage, pod)
    return Act(_uids([pod]), since)


async def _age(stage: Stage) -> Act:
    """Label the youngest Pod of `batch`, which the scene before has just renewed."""
    pod = max(_pods(stage, app="batch"), key=_created)
    # Strictly older than the limit: from the next whole second on, as upstream counts.
    due = _created(pod) + LIFE + timedelta(seconds=1)
    told = f"{name_of(pod)} gets the label {RENEW_LABEL}=soon; it is due at {due:%T}"
    labelled = stage.timeline.change(told)
    patch = {"metadata": {"labels": {RENEW_LABEL: "soon"}}}
    await stage.client.patch("pods", name_of(pod), patch, namespace=namespace_of(pod))
    return Act(_uids([pod]), max(due, labelled))


async def _budget(stage: Stage) -> Act:
    pod = _pods(stage, app="store")[0]
    await _ask_for_available(stage, 3)
    await until_settled(stage.client)

    def held(step: Step) -> bool:
        return step.kind == "held" and step.uid == uid_of(pod)

    with stage.timeline.expecting(held) as is_held:
        await _crash(stage, pod)
        await is_held.wait()
    await anyio.sleep(_HELD_FOR)
    return Act(_uids([pod]), await _ask_for_available(stage, 2))


SCENES = (
    Scene("taint", "A taint is added", "RemovePodsViolatingNodeTaints", _taint),
    Scene("label", "A label is taken away", "RemovePodsViolatingNodeAffinity", _take_label),
    Scene("restarts", "A container keeps restarting", "RemovePodsHavingTooManyRestarts", _restart),
    Scene("age", "A Pod reaches its age", "PodLifeTime", _age, within=timedelta(seconds=1)),
    Scene("budget", "A budget holds, then opens", "RemovePodsHavingTooManyRestarts", _budget),
)


async def _crash(stage: Stage, pod: JsonObject) -> datetime:
    """Let the kubelet's status say that the Pod's container has restarted often."""
    container = text(objects(pod, "spec", "containers")[0], "name")
    since = stage.timeline.change(f"{name_of(pod)} has restarted {THRESHOLD} times")
    await stage.client.patch(
        "pods",
        name_of(pod),
        {"status": {"containerStatuses": [{"name": container, "restartCount": THRESHOLD}]}},
        namespace=namespace_of(pod),
        subresource="status",
        kind="strategic",
    )
    return since


async def _ask_for_available(stage: Stage, minimum: int) -> datetime:
    since = stage.timeline.change(f"the budget of store wants {minimum} of 3 available")
    patch = {"spec": {"minAvailable": minimum}}
    await stage.client.patch("poddisruptionbudgets", "store", patch, namespace="default")
    return since


def _pods(stage: Stage, *, app: str = "") -> list[JsonObject]:
    """The Pods that stay, in order of their names."""
    return [
        pod
        for _, pod in sorted(stage.pods.objects.items())
        if not is_terminating(pod) and app in ("", labels(pod).get("app"))
    ]


def _uids(pods: list[JsonObject]) -> frozenset[str]:
    return frozenset(map(uid_of, pods))


def _created(pod: JsonObject) -> datetime:
    return datetime.fromtimestamp(seconds_of(text(pod, "metadata", "creationTimestamp")), UTC)
