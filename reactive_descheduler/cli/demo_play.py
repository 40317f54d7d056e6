"""Plays a scene and judges it: the right Pods replaced, no others, none before its time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import anyio

from reactive_descheduler.cli.demo_scenes import Act, Scene
from reactive_descheduler.cli.demo_stage import Stage
from reactive_descheduler.cli.demo_timeline import Step
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    controller_of,
    is_ready,
    is_terminating,
    name_of,
    text,
    uid_of,
)
from reactive_descheduler.sandbox.sample import until_settled

LIMIT = 14.0
"""Seconds that a scene may take until all is Ready again; five of them stay under the 90 s."""
QUIET = 0.5
"""Seconds to look on after a scene: nothing more may go."""


@dataclass(frozen=True, slots=True)
class Known:
    """A Pod as it was when a scene began, or ended."""

    name: str
    owner: str
    ready: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A scene that was played. `problems` is empty if it went as it should."""

    scene: Scene
    since: datetime
    steps: tuple[Step, ...]
    """In order of time."""
    expected: tuple[str, ...]
    evaluations: Mapping[str, int]
    """How often each strategy looked at something."""
    problems: tuple[str, ...]

    def first(self, kind: str) -> float | None:
        """Return the milliseconds from `since` to the first such step after it, if any."""
        return next(iter(self._times(kind)), None)

    def last(self, kind: str) -> float | None:
        """Return the milliseconds from `since` to the last such step, if any."""
        return next(reversed(self._times(kind)), None)

    def milliseconds(self, step: Step) -> float:
        return (step.time - self.since).total_seconds() * 1000

    def _times(self, kind: str) -> list[float]:
        return [
            self.milliseconds(step)
            for step in self.steps
            if step.kind == kind and step.time >= self.since
        ]


async def play(stage: Stage, scene: Scene) -> Played:
    """Play a scene, wait until the cluster is whole again, and judge."""
    with anyio.move_on_after(LIMIT):
        await until_settled(stage.client)
    before, runs = _census(stage), Counter(stage.daemon.core.loop.runs)
    steps: list[Step] = []
    left: set[str] = set()

    def on_pod(old: JsonObject | None, new: JsonObject | None) -> None:
        if new is None or is_terminating(new):
            left.add(uid_of(old if new is None else new))

    act: Act | None = None
    stage.timeline.listeners.append(steps.append)
    stage.pods.listeners.append(on_pod)
    try:
        with anyio.move_on_after(LIMIT) as limit:
            began = stage.timeline.now()
            act = await scene.play(stage)
            await _until_replaced(stage, act.expected, len(before))
        await anyio.sleep(QUIET)
    finally:
        stage.pods.listeners.remove(on_pod)
        stage.timeline.listeners.remove(steps.append)
    act = act or Act(frozenset(), began)
    steps.sort(key=lambda step: step.time)
    return Played(
        scene=scene,
        since=act.since,
        steps=tuple(steps),
        expected=tuple(sorted(before[uid].name for uid in act.expected)),
        evaluations={
            name: count - runs[name]
            for name, count in stage.daemon.core.loop.runs.items()
            if count > runs[name]
        },
        problems=(
            *([f"not over after {LIMIT:g} s"] if limit.cancelled_caught else []),
            *judge(act, before=before, after=_census(stage), left=left),
            *judge_times(act, scene, steps),
        ),
    )


def judge(
    act: Act, *, before: Mapping[str, Known], after: Mapping[str, Known], left: set[str]
) -> list[str]:
    """Compare all Pods by UID: say what is wrong. `left`: the UIDs that were seen going."""
    names = {uid: pod.name for uid, pod in (*after.items(), *before.items())}
    gone = before.keys() - after.keys()
    problems = [f"{names[uid]} should have been replaced" for uid in act.expected - gone]
    problems += [
        f"{names.get(uid, uid)} should have stayed" for uid in (gone | left) - act.expected
    ]
    wanted = Counter(pod.owner for pod in before.values())
    if wanted != Counter(pod.owner for pod in after.values()):
        problems.append("some workload has not as many Pods as before")
    problems += [f"{pod.name} is not Ready" for pod in after.values() if not pod.ready]
    return sorted(problems)


def judge_times(act: Act, scene: Scene, steps: list[Step]) -> list[str]:
    """Say what went too early, or later than the scene promises."""
    problems = []
    for step in steps:
        if step.kind not in ("to go", "evicted"):
            continue
        if step.time < act.since:
            problems.append(f"{step.pod} was {step.kind} before its time")
        elif scene.within is not None and step.time > act.since + scene.within:
            problems.append(f"{step.pod} was {step.kind} too late")
    return problems


async def _until_replaced(stage: Stage, expected: frozenset[str], count: int) -> None:
    while True:
        census = _census(stage)
        if (
            not expected & census.keys()
            and len(census) == count
            and all(pod.ready for pod in census.values())
        ):
            return
        await stage.pods.next_change()


def _census(stage: Stage) -> dict[str, Known]:
    """All Pods by UID, those that are going too."""
    return {
        uid_of(pod): Known(name_of(pod), text(controller_of(pod), "uid"), is_ready(pod))
        for pod in stage.pods.objects.values()
    }
