"""How many of an owner's Pods a node may keep, so that those that go find room on the others."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from reactive_descheduler.api.eviction import Pause, Rejection
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.scheduling.fit import slots
from reactive_descheduler.api.scheduling.spread import hard_keys
from reactive_descheduler.framework.fitting import Fitting
from reactive_descheduler.framework.strategy import Step, View

from .crowds import Crowd

_NODES_AT_ONCE = 500
"""After how many the search gives way."""


def level_with_room(view: View, crowd: Crowd, fitting: Fitting, *, strategy: str) -> Step[int]:
    """Return how many Pods a node may keep: the average, or the lowest number above it for
    which the nodes below have room.

    Moves from above to below it leave it where it is, so none of them is taken back.
    """
    average = crowd.average
    excess = crowd.above(average)
    if not excess:
        return average
    # One from the fullest node, which is no destination at any level.
    victim = max(crowd.on.values(), key=len)[-1]
    places: list[tuple[int, int]] = []
    for number, node in enumerate(crowd.nodes):
        if number % _NODES_AT_ONCE == _NODES_AT_ONCE - 1:
            yield Pause()
        room = _room(view, victim, node, fitting)
        if not room:
            continue
        view.note(*fitting.loss_wakes(victim, node, view.lister))
        places.append((len(crowd.on.get(node.name, ())), room))
        excess -= _below(average, places[-1:])
        if excess <= 0:
            return average
    wakes = fitting.room_wakes(victim, view.lister)
    reason = "the nodes with fewer of them have no room for all that should go"
    yield Rejection(strategy, f"{crowd.owner}: {reason}", wakes)
    levels = range(max(map(len, crowd.on.values())) + 1)
    return bisect_left(
        levels,
        True,
        lo=average + 1,
        key=lambda level: crowd.above(level) <= _below(level, places),
    )


def _room(view: View, pod: Pod, node: Node, fitting: Fitting) -> int:
    """Return how many Pods like this one fit a node; no more than one where that hangs on what
    else is there."""
    if node.name == pod.node_name or fitting.misfit(pod, node, view.lister):
        return 0
    template = pod.template
    near = template.anti_affinity or hard_keys(template)
    if near or template.host_ports or template.claims:
        return 1
    return slots(pod, node, view.lister)


def _below(level: int, places: Iterable[tuple[int, int]]) -> int:
    """Return for how many Pods there is room below a level; `places`: Pods there, and room."""
    return sum(min(room, level - count) for count, room in places if count < level)
