"""How upstream evens out domains: towards the average, each constraint for itself (spec/strategies
4.8)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import ceil
from typing import NamedTuple

from reactive_descheduler.api.changes import On
from reactive_descheduler.api.eviction import Pause, Stop
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.scheduling.spread import DomainCounts, Spread
from reactive_descheduler.framework.fitting import Fitting
from reactive_descheduler.framework.strategy import Step
from reactive_descheduler.framework.uncounted import uncounted

from .survey import Survey, by_domain, last_goes_first
from .wakes import ANY_NODE


class Chosen(NamedTuple):
    """Whom upstream picks of a group, for any of its constraints."""

    survey: Survey
    pods: Mapping[str, tuple[Pod, str]]
    """By UID, with a reason."""


def choose(survey: Survey) -> Step[Chosen]:
    """Pick the Pods; what one constraint moves is not there for the next."""
    pods: dict[str, tuple[Pod, str]] = {}
    for spread in survey.constraints:
        counted = survey.counted(spread)
        if survey.is_uneven(spread, counted) and survey.is_carried(spread):
            if (
                refused := uncounted(survey.view, survey.key.strategy, survey.namespace)
            ) is not None:
                yield refused
                break
            survey.view.note(On(ANY_NODE, None))
            reason = f"Pods are uneven over {spread.topology_key}"
            for pod in _victims(survey, spread, counted):
                pods.setdefault(pod.uid, (pod, reason))
        yield Pause()
    return Chosen(survey, pods)


def offer(chosen: Iterable[Chosen]) -> Step[Stop]:
    """Offer who was picked, unless the filters refuse by now."""
    for survey, pods in chosen:
        for pod, reason in pods.values():
            if pod.node_name in survey.left or not survey.lists(pod):
                continue
            refused = survey.view.filter(pod) or survey.view.pre_eviction(pod)
            if refused is not None:
                yield refused
                continue
            verdict = yield from survey.offer(pod, reason)
            if verdict.stop is Stop.ALL:
                return Stop.ALL
    return Stop.NO


def _victims(survey: Survey, spread: Spread, counted: DomainCounts) -> Iterator[Pod]:
    domains = counted.domains.nodes
    pods = by_domain(counted, survey.selected(spread))
    may_go = survey.may_go if survey.rules.counts_all else lambda _: True
    ordered = [last_goes_first(pods.get(value, ()), may_go) for value in sorted(domains)]
    too_few = survey.rules.reads_min_domains and len(domains) < spread.min_domains
    return even_out(
        sorted(ordered, key=len),
        max_skew=spread.max_skew,
        most=spread.max_skew if too_few else None,
        fits=_fits_below(survey, counted),
        only_fitting=survey.rules.only_fitting,
    )


def _fits_below(survey: Survey, counted: DomainCounts) -> Callable[[Pod], bool]:
    """Return whether a Pod fits some node of a domain below the average."""
    view = survey.view
    average = sum(counted.counts.values()) / len(counted.domains.nodes)
    names = (
        name
        for value, names in counted.domains.nodes.items()
        if counted.counts.get(value, 0) < average
        for name in names
    )
    below = [node for name in sorted(names) if (node := view.nodes.get(name)) is not None]
    fitting = Fitting(survey.rules.fit)  # with a memory of its own, for these nodes

    def fits(pod: Pod) -> bool:
        witness = fitting.elsewhere(pod, below, view.lister)
        if witness is None:
            view.note(*fitting.room_wakes(pod, view.lister))
        else:
            view.note(*fitting.loss_wakes(pod, witness, view.lister))
        return witness is not None

    return fits


def even_out(
    domains: Sequence[list[Pod]],
    *,
    max_skew: int,
    most: int | None,
    fits: Callable[[Pod], bool],
    only_fitting: bool,
) -> Iterator[Pod]:
    """Move Pods from big domains to small ones, towards the average; yield those that have to go.

    Args:
        domains: by size ascending; the last Pod of each goes first. Changed on the way.
        max_skew: of the constraint.
        most: how big a domain may become by this; None for any size.
        fits: whether some node of a domain below the average takes the Pod.
        only_fitting: whether others stay; they count as moved all the same, so that fewer go than
            it takes.
    """
    average = sum(map(len, domains)) / len(domains)
    low, high = 0, len(domains) - 1
    while low < high:
        if len(domains[high]) <= average:
            high -= 1
        above, below = domains[high], domains[low]
        move = _how_many(len(above), len(below), average=average, max_skew=max_skew)
        if most is not None:
            move = min(move, most - len(below))
        if move <= 0:
            low += 1
            continue
        above.sort(key=fits)
        moved = above[-move:]
        yield from (pod for pod in moved if not only_fitting or fits(pod))
        del above[-move:]
        below += moved


def _how_many(above: int, below: int, *, average: float, max_skew: int) -> int:
    skew = above - below
    if skew <= max_skew:
        return 0
    return min(ceil(above - average), ceil(average - below), ceil((skew - max_skew) / 2))
