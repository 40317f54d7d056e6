"""How a scene of the demo is judged, and how it is told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import orjson
import pytest

from reactive_descheduler.cli import demo_report
from reactive_descheduler.cli.demo_play import Known, Played, judge, judge_times
from reactive_descheduler.cli.demo_scenes import (
    LIFE,
    RENEW_LABEL,
    SCENES,
    THRESHOLD,
    Act,
    Scene,
)
from reactive_descheduler.cli.demo_stage import POLICY, Stage
from reactive_descheduler.cli.demo_timeline import Step
from reactive_descheduler.config.load import load_policy
from reactive_descheduler.strategies import PLUGINS

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
BEFORE = {"u1": Known("web-1", "web", True), "u2": Known("web-2", "web", True)}
REPLACED = {"u3": Known("web-3", "web", True), "u2": Known("web-2", "web", True)}


async def _nothing(_stage: Stage) -> Act:
    return Act(frozenset(), NOON)


PROMPT = Scene("age", "A Pod reaches its age", "PodLifeTime", _nothing, timedelta(seconds=1))
PATIENT = Scene("taint", "A taint is added", "RemovePodsViolatingNodeTaints", _nothing)


class Case(NamedTuple):
    expected: set[str]
    after: dict[str, Known]
    left: set[str]
    problems: list[str]


CASES = {
    "right": Case({"u1"}, REPLACED, {"u1"}, []),
    "nothing-to-do": Case(set(), BEFORE, set(), []),
    "stayed": Case({"u1"}, BEFORE, set(), ["web-1 should have been replaced"]),
    "another": Case(
        {"u2"},
        REPLACED,
        {"u1"},
        ["web-1 should have stayed", "web-2 should have been replaced"],
    ),
    "going-still": Case(set(), BEFORE, {"u2"}, ["web-2 should have stayed"]),
    "a-replacement-left-too": Case({"u1"}, REPLACED, {"u1", "u9"}, ["u9 should have stayed"]),
    "not-replaced": Case(
        {"u1"},
        {"u2": BEFORE["u2"]},
        {"u1"},
        ["some workload has not as many Pods as before"],
    ),
    "replaced-elsewhere": Case(
        {"u1"},
        {"u2": BEFORE["u2"], "u4": Known("api-1", "api", True)},
        {"u1"},
        ["some workload has not as many Pods as before"],
    ),
    "not-ready": Case(
        {"u1"},
        REPLACED | {"u3": Known("web-3", "web", False)},
        {"u1"},
        ["web-3 is not Ready"],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_all_pods_are_compared_by_uid(case: Case) -> None:
    act = Act(frozenset(case.expected), NOON)
    assert judge(act, before=BEFORE, after=case.after, left=case.left) == case.problems


@pytest.mark.parametrize(
    ("scene", "milliseconds", "problems"),
    [
        pytest.param(PROMPT, -1, ["web-1 was evicted before its time"], id="early"),
        pytest.param(PROMPT, 0, [], id="on-the-dot"),
        pytest.param(PROMPT, 1000, [], id="within-the-second"),
        pytest.param(PROMPT, 1001, ["web-1 was evicted too late"], id="late"),
        pytest.param(PATIENT, 9000, [], id="nothing-promised"),
    ],
)
def test_times_are_judged(scene: Scene, milliseconds: int, problems: list[str]) -> None:
    time = NOON + timedelta(milliseconds=milliseconds)
    steps = [Step(NOON - timedelta(days=1), "change", ""), Step(time, "evicted", "", "web-1")]
    assert judge_times(Act(frozenset(), NOON), scene, steps) == problems


def _played(*problems: str) -> Played:
    def step(
        milliseconds: float,
        kind: str,
        text: str,
        *,
        pod: str = "",
        uid: str = "",
        node: str = "",
        replaces: str = "",
    ) -> Step:
        time = NOON + timedelta(milliseconds=milliseconds)
        return Step(time, kind, text, pod, uid, node, replaces=replaces)

    return Played(
        scene=PATIENT,
        since=NOON,
        steps=(
            step(-5, "ready", "on node-2", pod="other"),
            step(0, "change", "node-1 gets a taint"),
            step(1.25, "seen", "by the descheduler"),
            step(3, "evicted", "from node-1", pod="web-1", uid="u1", node="node-1"),
            step(4, "evicted", "from node-1", pod="web-2", uid="u2", node="node-1"),
            step(200, "ready", "on node-2", pod="web-3", uid="u3", node="node-2", replaces="u1"),
        ),
        expected=("web-1", "web-2"),
        evaluations={"RemovePodsViolatingNodeTaints": 3, "PodLifeTime": 2},
        problems=problems,
    )


def _lines(text: str) -> list[str]:
    """Return the lines, whatever their columns are as wide as."""
    return [" ".join(line.split()) for line in text.splitlines()]


def test_a_timeline_counts_milliseconds_since_the_change() -> None:
    lines = _lines(demo_report.timeline(_played()))
    assert lines[1] == "+0.0 ms change node-1 gets a taint"
    assert lines[3] == "+3.0 ms evicted web-1 from node-1"
    assert lines[-1] == "runs RemovePodsViolatingNodeTaints 3, other strategies 2"


def test_a_table_has_a_row_for_each_scene() -> None:
    text = demo_report.table([_played(), _played("web-9 should have stayed")])
    assert [line for line in _lines(text) if "taint" in line] == [
        "A taint is added 1 1.2 3.0 - 4.0 200.0 yes",
        "A taint is added 1 1.2 3.0 - 4.0 200.0 web-9 should have stayed",
    ]


def test_the_document_says_the_same_as_data() -> None:
    document = demo_report.document([_played(), _played("wrong")], set_up=1, seconds=2)
    data = orjson.loads(orjson.dumps(document))
    assert not data["ok"]
    assert [scene["ok"] for scene in data["scenes"]] == [True, False]
    scene = data["scenes"][0]
    assert scene["expected"] == ["web-1", "web-2"]
    assert (scene["seenMs"], scene["firstEvictedMs"], scene["lastEvictedMs"]) == (1.25, 3, 4)
    assert scene["readyMs"] == 200, "what was Ready before the change is not of the scene"
    assert [step["ms"] for step in scene["timeline"]] == [-5, 0, 1.25, 3, 4, 200]


def test_live_lines_count_from_the_change_that_led_there() -> None:
    lines: list[str] = []
    listen = demo_report.live_lines(lines.append)
    time = NOON + timedelta(milliseconds=1500)
    listen(Step(NOON, "seen", "on its watch", strategy="PodLifeTime", seen=NOON))
    listen(Step(time, "to go", "old", "web-1", strategy="PodLifeTime"))
    listen(Step(time, "evicted", "from node-1", "web-1", strategy="PodLifeTime"))
    listen(Step(time, "ready", "on node-2", "web-2", seen=NOON))
    assert _lines("\n".join(lines)) == [
        "12:00:00.000 +0.0 ms seen by the descheduler, for PodLifeTime",
        "12:00:01.500 to go web-1 PodLifeTime: old",
        "12:00:01.500 evicted web-1 from node-1",
        "12:00:01.500 +1,500.0 ms ready web-2 on node-2",
    ]


def test_the_scenes_agree_with_the_policy() -> None:
    policy = load_policy(POLICY.read_bytes(), source=POLICY.name, plugins=PLUGINS)
    (profile,) = policy.profiles
    arguments = {
        plugin.name: plugin.arguments.model_dump(by_alias=True) for plugin in profile.deschedule
    }
    assert {scene.strategy for scene in SCENES} == set(arguments)
    restarts = arguments["RemovePodsHavingTooManyRestarts"]
    assert restarts["podRestartThreshold"] == THRESHOLD
    age = arguments["PodLifeTime"]
    assert age["maxPodLifeTimeSeconds"] == LIFE.total_seconds()
    assert profile.deschedule[-1].arguments.label_selector.match_labels == {RENEW_LABEL: "soon"}  # type: ignore[attr-defined]
