"""The fewest evictions that bring each constraint within its skew.

One Pod at a time goes from the fullest domain to the emptiest that takes it. A domain takes a Pod
if that stays within the skew, as the scheduler sees it, and one of its nodes fits, under all hard
constraints of the Pod and with all who went before. So a replacement that the scheduler puts into
any such domain is no candidate again, and no constraint undoes another. Only who carries the
constraint goes, for nothing keeps others from coming back; of a domain the least important first.
A Pod that cannot go is passed over for the next of its domain.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from reactive_descheduler.api.changes import On
from reactive_descheduler.api.eviction import Pause, Rejection, Stop
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.scheduling.spread import HARD, DomainCounts, Spread, selects, spreads
from reactive_descheduler.framework.fitting import Fitting
from reactive_descheduler.framework.strategy import Step
from reactive_descheduler.framework.uncounted import uncounted

from .expected import Expected, Room
from .survey import Survey, by_domain, least_important_last
from .targets import Targets
from .wakes import ANY_NODE

NAME = "RemovePodsViolatingTopologySpreadConstraint"


class _State(NamedTuple):
    """What would be once those who were offered are where they would fit."""

    sizes: Expected
    """By what this strategy counts."""
    hard: Expected
    """By what the scheduler counts; where all are counted, the same."""
    room: Room
    moved: set[str]
    waits: dict[Hashable, tuple[On, ...]]
    """What could make room for Pods of a template, or for one that has to stay for another."""

    def move(self, pod: Pod, node: Node) -> None:
        for each in {id(each): each for each in (self.sizes, self.hard)}.values():
            each.move(pod, node.name)
        self.room.move(pod, node.name)
        self.moved.add(pod.uid)

    def room_wakes(self, survey: Survey, pod: Pod) -> tuple[On, ...]:
        who = pod.uid if self.room.is_needed(pod) else pod.template
        if who not in self.waits:
            fitting = Fitting(survey.rules.fit)
            self.waits[who] = fitting.room_wakes(pod, survey.view.lister)
        return self.waits[who]


def even_out(survey: Survey) -> Step[Stop]:
    """Take the constraints one after the other, and offer who has to go."""
    sizes = {spread: survey.counted(spread) for spread in survey.constraints}
    if not any(survey.is_uneven(spread, counted) for spread, counted in sizes.items()):
        return Stop.NO
    if (refused := uncounted(survey.view, NAME, survey.namespace)) is not None:
        yield refused
        return Stop.NO
    lister = survey.view.lister
    hard = {
        spread: lister.spread_counts(survey.namespace, spread)
        for template in survey.templates
        for spread in spreads(template, HARD)
    }
    if survey.rules.counts_all:
        both = seen = Expected(survey.namespace, hard | sizes, lister)
    else:
        both = Expected(survey.namespace, hard, lister)
        seen = Expected(survey.namespace, sizes, lister)
    room = Room(survey.rules.fit, lister, both, books=survey.rules.books)
    state = _State(seen, both, room, set(), {})
    for spread in survey.constraints:
        if (yield from _even_out_one(survey, spread, state)) is Stop.ALL:
            return Stop.ALL
    return Stop.NO


def _even_out_one(survey: Survey, spread: Spread, state: _State) -> Step[Stop]:
    counted = state.sizes.spread_counts(survey.namespace, spread)
    if not survey.is_uneven(spread, counted) or not survey.is_carried(spread):
        return Stop.NO
    survey.view.note(On(ANY_NODE, None))
    of_node = counted.domains.of_node
    highest = survey.floor(spread, counted) + spread.max_skew
    full = {value for value, pods in counted.counts.items() if pods > highest}
    carrying = frozenset(survey.constraints[spread])
    pods = [
        pod
        for pod in survey.selected(spread, lambda name: of_node.get(name) in full)
        if pod.template in carrying and pod.uid not in state.moved and survey.lists(pod)
    ]
    waiting = {
        value: least_important_last(each) for value, each in by_domain(counted, pods).items()
    }
    targets = _targets(survey, spread, counted, state)
    while waiting:
        counted = state.sizes.spread_counts(survey.namespace, spread)
        value = max(sorted(waiting), key=lambda each: counted.counts.get(each, 0))
        if counted.counts.get(value, 0) <= survey.floor(spread, counted) + spread.max_skew:
            return Stop.NO
        moved = yield from _send_one(survey, spread, value, waiting[value], targets, state)
        if moved is Stop.ALL:
            return moved
        if not waiting[value]:
            del waiting[value]
        yield Pause()
    return Stop.NO


def _targets(survey: Survey, spread: Spread, counted: DomainCounts, state: _State) -> Targets:
    others = [each for each in survey.constraints if each is not spread]

    def takes(pod: Pod, node: Node) -> bool:
        return not any(
            _overfills(survey, each, state, pod, node) for each in others
        ) and state.room.takes(pod, node)

    def like(pod: Pod) -> Hashable:
        near = pod.template.anti_affinity or pod.template.pod_affinity
        if near or survey.view.lister.has_promise(pod.uid) or state.room.is_needed(pod):
            return pod.uid  # a Pod is neither in its own way nor near itself
        hard = (each for each in spreads(pod.template, HARD) if each is not spread)
        leaves = [
            _leaving(counts.spread_counts(survey.namespace, each), pod)
            for counts, constraints in ((state.sizes, others), (state.hard, hard))
            for each in constraints
        ]
        return (pod.template, *leaves)

    return Targets(
        survey.view.nodes,
        counted,
        takes=takes if survey.rules.only_fitting else None,
        like=like,
    )


def _leaving(counted: DomainCounts, pod: Pod) -> tuple[str | None, bool]:
    """Return what its leaving means to a constraint: in which domain there will be room, if that
    has other nodes, and whether that becomes the least."""
    value = counted.domains.of_node.get(pod.node_name)
    if value is None:
        return None, False
    lowers = counted.counts.get(value, 0) == (counted.least or 0)
    return (value if len(counted.domains.nodes[value]) > 1 else None), lowers


def _overfills(survey: Survey, spread: Spread, state: _State, pod: Pod, node: Node) -> bool:
    """Say whether a constraint would have to send another Pod away from there, though the Pod may
    not carry it."""
    if not selects(spread, pod.template):
        return False
    counted = state.sizes.spread_counts(survey.namespace, spread)
    counts, of_node = counted.counts, counted.domains.of_node
    here, there = of_node.get(pod.node_name), of_node.get(node.name)
    if there is None or here == there:
        return False
    floor = survey.floor(spread, counted)
    if here is not None:
        floor = min(floor, counts.get(here, 0) - 1)
    return counts.get(there, 0) + 1 - floor > spread.max_skew


def _send_one(
    survey: Survey,
    spread: Spread,
    value: str,
    waiting: list[Pod],
    targets: Targets,
    state: _State,
) -> Step[Stop]:
    """Offer the first Pod of a domain that may go and is taken; those before it are told."""
    view, fitting = survey.view, Fitting(survey.rules.fit)
    counted = state.sizes.spread_counts(survey.namespace, spread)
    floor, size = survey.floor(spread, counted), counted.counts[value]
    reason = f"{size} Pods in {spread.topology_key} {value}, {floor} in the least of its domains"
    while waiting:
        pod = waiting.pop()
        if pod.node_name in survey.left:
            continue
        refused = view.filter(pod)
        if refused is not None:
            yield refused
            continue
        node, missed = yield from targets.find(pod, floor + spread.max_skew - 1)
        wakes = state.room_wakes(survey, pod) if missed else ()
        view.note(*wakes)
        if node is None:
            why = f"{reason}; no domain with fewer takes it"
            yield Rejection(NAME, why, (On(ANY_NODE, None), *wakes), pod.ref)
            continue
        view.note(*fitting.loss_wakes(pod, node, view.lister))
        refused = view.pre_eviction(pod)
        if refused is not None:
            yield refused
            continue
        verdict = yield from survey.offer(pod, reason)
        if verdict.stop is Stop.ALL:
            return Stop.ALL
        if not isinstance(verdict.why, Rejection):  # what a limit or the API server refuses counts
            target = counted.domains.of_node[node.name]
            state.move(pod, node)
            targets.resize(value, size, size - 1)
            into = counted.counts.get(target, 0)
            targets.resize(target, into, into + 1)
            return Stop.NO
    return Stop.NO
