"""The demo's screen: what stands on it, and that it fits whatever the terminal and the cluster."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.screen import Screen as FullScreen

from reactive_descheduler.cli.demo_board import KEPT, Journal, SoFar, make_board, shortened
from reactive_descheduler.cli.demo_screen import Screen
from reactive_descheduler.cli.demo_timeline import Step
from tests.builders import Manifest, make_node, make_pod, owner, taint

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EXPORT = "export KUBECONFIG=/somewhere/descheduler-demo-abcdefgh/kubeconfig"
TRIES = (("kubectl taint node node-1 retiring=yes:NoSchedule", "its Pods leave"),)
NODES = (
    make_node("node-10"),
    make_node("node-2", ready=False, unschedulable=True),
    make_node(
        "node-1",
        labels={"disk": "ssd"},
        taints=[taint("retiring", "yes"), taint("node.kubernetes.io/unschedulable")],
    ),
)
PODS = (
    make_pod("web-dzmrm9k8gf-sxt54", node="node-1"),
    make_pod("web-dzmrm9k8gf-qw82f", node="node-1", deleted=NOON),
    make_pod("agent-4p5jd", node="node-1", owners=[owner("agent", kind="DaemonSet")]),
    make_pod("store-0", node="node-2", ready=False, owners=[owner("store", kind="StatefulSet")]),
    make_pod("job-bcdfg", node="node-2", phase="Succeeded", owners=[owner("job", kind="Job")]),
    make_pod("alone", owners=[], phase="Pending", ready=False),
)
STEPS = (
    Step(NOON, "change", "node-1 gets the taint retiring=yes:NoSchedule"),
    Step(NOON, "seen", "by the descheduler", strategy="RemovePodsViolatingNodeTaints", seen=NOON),
    Step(
        NOON + timedelta(milliseconds=3.21),
        "to go",
        "it does not tolerate taint retiring=yes:NoSchedule of node-1",
        "web-dzmrm9k8gf-qw82f",
        strategy="RemovePodsViolatingNodeTaints",
        seen=NOON,
    ),
    Step(
        NOON + timedelta(seconds=1.5),
        "ready",
        "on node-2, in place of web-dzmrm9k8gf-qw82f",
        "web-dzmrm9k8gf-bbbbb",
        replaces="uid",
        seen=NOON,
    ),
    Step(NOON, "to go", "older than 6 s", "batch-1", strategy="PodLifeTime"),
)


def drawn(
    nodes: Sequence[Manifest] = NODES,
    pods: Sequence[Manifest] = PODS,
    steps: Sequence[Step] = STEPS,
    *,
    width: int = 80,
    height: int = 24,
    encoding: str = "utf-8",
) -> list[str]:
    """Return the lines of the screen, without colours and blanks at their ends."""
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(width=width, height=height, file=file, color_system=None)
    board = make_board(nodes, pods, SoFar(tuple(steps), 1, 1))
    console.print(FullScreen(Screen(board, EXPORT, TRIES)), end="")
    file.flush()
    file.seek(0)
    lines = file.read().split("\n")
    assert len(lines) == height
    assert {cell_len(line) for line in lines} == {width}
    return [line.rstrip() for line in lines]


def test_the_whole_screen() -> None:
    assert drawn() == [
        "3 nodes, 2 of 6 Pods Ready; 1 evicted, 1 replaced                 Ctrl-C ends it",
        "export KUBECONFIG=/somewhere/descheduler-demo-abcdefgh/kubeconfig",
        "kubectl taint node node-1 retiring=yes:NoSchedule  # its Pods leave",
        "",
        "node-1   retiring=yes:NoSchedule   ✗web-qw82f ●web-sxt54 ●agent",
        "         disk=ssd",
        "node-2   not Ready  cordoned       ■job-bcdfg ○store-0",
        "node-10",
        "no node                            ○alone",
        "─" * 80,
        "12:00:00.000  change   node-1 gets the taint retiring=yes:NoSchedule",
        "     +0.0 ms  seen     by the descheduler, for RemovePodsViolatingNodeTaints",
        "     +3.2 ms  to go    web-qw82f  it does not tolerate taint retiring=yes:NoSch…",
        " +1,500.0 ms  ready    web-bbbbb  on node-2, in place of web-qw82f",
        "12:00:00.000  to go    batch-1    PodLifeTime: older than 6 s",
        *[""] * 9,
    ]


def test_before_anything_happens_it_says_so() -> None:
    assert drawn(steps=())[10] == "Nothing has happened yet: change something."


@pytest.mark.parametrize("height", [1, 5, 12, 24, 60])
@pytest.mark.parametrize("width", [10, 40, 80, 200])
@pytest.mark.parametrize("count", [0, 17, 3000])
def test_it_fits_any_terminal(width: int, height: int, count: int) -> None:
    pods = [make_pod(f"web-dzmrm9k8gf-{n:05}", node=f"node-{n % 3}") for n in range(count)]
    drawn(pods=pods, steps=STEPS * 10, width=width, height=height)


def test_many_pods_are_counted_and_the_timeline_keeps_its_place() -> None:
    pods = [make_pod(f"web-dzmrm9k8gf-{n:05}", node="node-1") for n in range(300)]
    lines = drawn(pods=[*pods, *PODS], steps=STEPS * 3)
    assert lines[4] == "node-1   retiring=yes:NoSchedule   ●web 301 ✗web 1 ●agent 1"
    assert "" not in lines[-6:]


def test_many_nodes_leave_room_for_the_timeline() -> None:
    lines = drawn(nodes=[make_node(f"node-{n}") for n in range(100)], steps=STEPS * 2)
    assert lines[4] == "node-0"
    rule = lines.index("─" * 80)
    assert lines[rule - 1].startswith("and ")
    assert [line[14:19] for line in lines[rule + 1 :]] == [
        "to go",
        "chang",
        "seen ",
        "to go",
        "ready",
        "to go",
    ]


def test_a_terminal_without_unicode_gets_other_marks() -> None:
    lines = drawn(encoding="ascii", steps=())
    assert lines[4].endswith("xweb-qw82f *web-sxt54 *agent")
    for width in (10, 40, 80):
        drawn(encoding="ascii", width=width)


def test_a_long_export_line_stays_whole() -> None:
    lines = drawn(width=40)
    assert "".join(lines[1:3]) == EXPORT


def test_what_happens_to_many_pods_at_once_is_told_in_one_line() -> None:
    started = [
        Step(NOON, "ready", f"on node-{n}", f"{app}-dzmrm9k8gf-bbbb{mark}")
        for app, marks in (("web", "bcdfghjkl"), ("api", "bc"))
        for n, mark in enumerate(marks)
    ]
    later = NOON + timedelta(milliseconds=7)
    evicted = [
        Step(later, "evicted", "from node-1", f"web-dzmrm9k8gf-bbbb{mark}", seen=NOON)
        for mark in "bcdfg"
    ]
    mixed = [step for pair in zip(started, evicted, strict=False) for step in pair]
    lines = drawn(steps=[*mixed, *started[len(evicted) :], *STEPS[:1]])
    rule = lines.index("─" * 80)
    assert lines[rule + 1 : rule + 4] == [
        "     +7.0 ms  evicted  5 Pods: web 5; from node-1",
        "12:00:00.000  ready    11 Pods: web 9, api 2",
        "12:00:00.000  change   node-1 gets the taint retiring=yes:NoSchedule",
    ]


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("web-dzmrm9k8gf-sxt54", "web-sxt54"),
        ("on node-2, in place of my-app-2h5dfvhfd6-x8vtr", "on node-2, in place of my-app-x8vtr"),
        ("agent-4p5jd", "agent-4p5jd"),
        ("store-0", "store-0"),
        ("it does not tolerate taint retiring=yes:NoSchedule of node-1",) * 2,
    ],
)
def test_names_are_shortened_by_the_hash_of_their_template(text: str, short: str) -> None:
    assert shortened(text) == short


def test_a_change_stands_before_what_came_of_it_whoever_tells_first() -> None:
    change, seen, *_ = STEPS
    journal = Journal()
    late = change._replace(time=NOON + timedelta(milliseconds=1))
    unrelated = STEPS[-1]
    for step in (unrelated, seen, late, change._replace(time=NOON + timedelta(seconds=1))):
        journal.listen(step)
    assert [step.kind for step in journal.so_far().steps] == ["to go", "change", "seen", "change"]


def test_the_journal_counts_what_it_no_longer_keeps() -> None:
    journal = Journal()
    for _ in range(500):
        journal.listen(Step(NOON, "evicted", ""))
        journal.listen(Step(NOON, "ready", "", replaces="uid"))
    so_far = journal.so_far()
    assert (so_far.evicted, so_far.replaced, len(so_far.steps)) == (500, 500, KEPT)
