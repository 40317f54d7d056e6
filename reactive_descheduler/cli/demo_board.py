"""What the view of the demo shows, as data: the nodes with their Pods, and the latest steps."""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from datetime import timedelta
from itertools import groupby
from typing import Literal, NamedTuple, TypeAlias

from reactive_descheduler.cli.demo_changes import is_cordoned, taints
from reactive_descheduler.cli.demo_timeline import Step
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    controller_of,
    is_ready,
    is_terminating,
    labels,
    name_of,
    text,
)

KEPT = 500
"""Steps that are remembered: more than a terminal has lines, even if many are folded into one."""
_SEVERAL = 4
"""Steps alike that are told one by one; more are told as one."""

State: TypeAlias = Literal["ready", "starting", "going", "ended"]

_OF_REPLICA_SET = re.compile(
    r"\b([a-z0-9.-]+)-[bcdfghjklmnpqrstvwxz2456789]{5,10}-([bcdfghjklmnpqrstvwxz2456789]{5})\b"
)
"""Workload, hash of the template, and what tells its Pods apart; Kubernetes uses no vowels."""
_SAME_CHANGE = timedelta(milliseconds=50)
"""The descheduler's watch and the demo's tell of one change up to this far apart."""


class PodMark(NamedTuple):
    """A Pod on the board. `group`: its workload."""

    name: str
    group: str
    state: State
    by_daemon_set: bool


class NodeRow(NamedTuple):
    """A node; an empty name: where there is none. `labels`: the user's own, not Kubernetes'."""

    name: str
    ready: bool
    cordoned: bool
    taints: tuple[str, ...]
    labels: tuple[str, ...]
    pods: tuple[PodMark, ...]


class SoFar(NamedTuple):
    """The latest steps, and counts of all."""

    steps: tuple[Step, ...] = ()
    evicted: int = 0
    replaced: int = 0


class Board(NamedTuple):
    """What is to be seen at one moment; equal boards look the same."""

    rows: tuple[NodeRow, ...]
    so_far: SoFar


class Journal:
    """Keeps the latest steps, each change before what came of it, and counts."""

    def __init__(self) -> None:
        self._steps: deque[Step] = deque(maxlen=KEPT)
        self._evicted = 0
        self._replaced = 0

    def so_far(self) -> SoFar:
        return SoFar(tuple(self._steps), self._evicted, self._replaced)

    def listen(self, step: Step) -> None:
        self._evicted += step.kind == "evicted"
        self._replaced += bool(step.replaces)
        late: list[Step] = []
        if step.kind == "change":
            while self._steps and _came_of(self._steps[-1], step):
                late.append(self._steps.pop())
        self._steps.append(step)
        self._steps.extend(reversed(late))


def make_board(nodes: Iterable[JsonObject], pods: Iterable[JsonObject], so_far: SoFar) -> Board:
    """Take a picture; the documents are only read."""
    by_node: defaultdict[str, list[PodMark]] = defaultdict(list)
    for pod in pods:
        by_node[text(pod, "spec", "nodeName")].append(_pod_mark(pod))
    rows = [_row(node, by_node.pop(name_of(node), [])) for node in nodes]
    rows.sort(key=lambda row: _natural(row.name))
    homeless = [mark for marks in by_node.values() for mark in marks]
    if homeless:
        rows.append(NodeRow("", True, False, (), (), _sorted(homeless)))
    return Board(tuple(rows), so_far)


def folded(steps: Iterable[Step]) -> list[Step]:
    """Tell what happens to many Pods at once in one line, where the last of them stood.

    At once is between two changes: `kubectl drain` deletes Pods while replacements of others get
    ready.
    """
    rows: list[Step] = []
    for of_pods, group in groupby(steps, lambda step: bool(step.pod)):
        stretch = list(group)
        rows += _folded_stretch(stretch) if of_pods else stretch
    return rows


def shortened(told: str) -> str:
    """Leave out the template's hash in each Pod's name."""
    return _OF_REPLICA_SET.sub(r"\1-\2", told)


def _folded_stretch(steps: list[Step]) -> list[Step]:
    alike: defaultdict[tuple[str, str, bool], list[Step]] = defaultdict(list)
    for step in steps:
        alike[_likeness(step)].append(step)
    rows = []
    for step in steps:
        run = alike[_likeness(step)]
        if len(run) <= _SEVERAL:
            rows.append(step)
        elif step is run[-1]:
            rows.append(_as_one(run))
    return rows


def _likeness(step: Step) -> tuple[str, str, bool]:
    return step.kind, step.strategy, step.seen is None


def _as_one(run: list[Step]) -> Step:
    groups = Counter(shortened(step.pod).rpartition("-")[0] or step.pod for step in run)
    told = f"{len(run)} Pods: {', '.join(f'{group} {n}' for group, n in groups.items())}"
    if len({step.text for step in run}) == 1:
        told = f"{told}; {run[0].text}"
    return run[-1]._replace(pod="", text=told)


def _row(node: JsonObject, pods: list[PodMark]) -> NodeRow:
    return NodeRow(
        name_of(node),
        is_ready(node),
        is_cordoned(node),
        tuple(taints(node)),
        tuple(sorted(f"{k}={v}".rstrip("=") for k, v in labels(node).items() if "/" not in k)),
        _sorted(pods),
    )


def _pod_mark(pod: JsonObject) -> PodMark:
    owner = controller_of(pod)
    name = name_of(pod)
    return PodMark(
        shortened(name),
        name.rsplit("-", 2 if text(owner, "kind") == "ReplicaSet" else 1)[0] if owner else name,
        _state(pod),
        text(owner, "kind") == "DaemonSet",
    )


def _state(pod: JsonObject) -> State:
    if is_terminating(pod):
        return "going"
    if text(pod, "status", "phase") in ("Succeeded", "Failed"):
        return "ended"
    return "ready" if is_ready(pod) else "starting"


def _sorted(pods: list[PodMark]) -> tuple[PodMark, ...]:
    """By name; those of DaemonSets, which stay where they are, last."""
    return tuple(sorted(pods, key=lambda pod: (pod.by_daemon_set, pod.name)))


def _natural(name: str) -> list[tuple[int, str]]:
    """node-10 comes after node-9."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _came_of(step: Step, change: Step) -> bool:
    return step.seen is not None and abs(step.seen - change.time) < _SAME_CHANGE
