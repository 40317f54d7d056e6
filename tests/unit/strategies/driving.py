"""Drives one strategy over a small cluster, without an event loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from reactive_descheduler.api.changes import Change, Key, On, Wake
from reactive_descheduler.api.eviction import TAKEN, Candidate, Rejection, Verdict
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.usage import Usage
from reactive_descheduler.config.corrections import ALL, Corrections
from reactive_descheduler.config.evictor import DefaultEvictorArguments
from reactive_descheduler.framework.profile import ProfileView
from reactive_descheduler.framework.strategy import Evaluation, Strategy
from reactive_descheduler.guardrails import build_evictor_filter
from reactive_descheduler.strategies import IN_TREE
from reactive_descheduler.triggers import cluster_events, touched
from tests.builders import Manifest, cluster, view

NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)
_BUILT = {each.spec.name: each for each in IN_TREE}


class Said(NamedTuple):
    candidates: list[Candidate]
    rejections: list[Rejection]
    wakes: list[Wake]

    @property
    def names(self) -> list[str]:
        return [candidate.pod.name for candidate in self.candidates]

    @property
    def refused(self) -> dict[str, str]:
        return {each.pod[2]: each.by for each in self.rejections if each.pod}


def build(
    name: str,
    arguments: Mapping[str, object] | None = None,
    *,
    evictor: Mapping[str, object] | None = None,
    corrections: Corrections = ALL,
) -> Strategy:
    known = _BUILT[name]
    return known.strategy(
        known.spec.arguments.read({**(arguments or {})}),
        profile=0,
        corrections=corrections,
        evictor=DefaultEvictorArguments.read({**(evictor or {})}),
    )


def view_of(
    lister: Lister,
    *,
    evictor: Mapping[str, object] | None = None,
    corrections: Corrections = ALL,
    now: datetime = NOW,
    usage: Usage | None = None,
) -> ProfileView:
    filters = build_evictor_filter(
        DefaultEvictorArguments.read({**(evictor or {})}),
        priority_threshold=2_000_000_000,
        corrections=corrections,
    )
    ready = {node.name: node for node in lister.nodes() if node.ready}
    return ProfileView(filters, lister, ready if len(ready) > 1 else {}, now, usage)


def sweep(
    strategy: Strategy, seen: ProfileView, answer: Callable[[Candidate], Verdict] = lambda _: TAKEN
) -> Said:
    return drive(strategy.sweep(seen), seen, answer)


def evaluate(strategy: Strategy, seen: ProfileView, *unit: str) -> Said:
    key = Key(0, strategy.NAME, unit)
    return drive(strategy.evaluate(seen, key), seen, lambda _: TAKEN)


def drive(
    evaluation: Evaluation, seen: ProfileView, answer: Callable[[Candidate], Verdict]
) -> Said:
    said = Said([], [], [])
    verdict: Verdict | None = None
    while True:
        try:
            item = evaluation.send(verdict)
        except StopIteration:
            said.wakes.extend(seen.noted)
            return said
        verdict = None
        if isinstance(item, Candidate):
            said.candidates.append(item)
            verdict = answer(item)
        elif isinstance(item, Rejection):
            said.rejections.append(item)
            said.wakes.extend(item.wakes)


def run(
    name: str,
    arguments: Mapping[str, object] | None,
    *manifests: Manifest,
    evictor: Mapping[str, object] | None = None,
    corrections: Corrections = ALL,
    now: datetime = NOW,
    usage: Usage | None = None,
) -> Said:
    """Sweep a cluster once; and hold the keys, each evaluated alone, to the same candidates."""
    lister = cluster(*manifests)
    strategy = build(name, arguments, evictor=evictor, corrections=corrections)

    def look() -> ProfileView:
        return view_of(lister, evictor=evictor, corrections=corrections, now=now, usage=usage)

    said = sweep(strategy, look())
    alone = [
        candidate
        for key in strategy.keys_of(lister)
        for candidate in evaluate(strategy, look(), *key.unit).candidates
    ]
    assert {each.pod.uid: each.reason for each in alone} == {
        each.pod.uid: each.reason for each in reversed(said.candidates)
    }
    return said


def hits(strategy: Strategy, change: Change, lister: Lister) -> set[str]:
    """Return the UIDs of the Pods that the strategy's subscriptions look at after a change."""
    return {unit[0] for unit in units_hit(strategy, change, lister)}


def units_hit(strategy: Strategy, change: Change, lister: Lister) -> set[tuple[str, ...]]:
    """Return the units of the keys that the strategy's subscriptions look at after a change."""
    actions = cluster_events(change)
    return {
        key.unit
        for subscription in strategy.EVENTS
        if subscription.action & actions
        for key in strategy.keys_for(subscription.scope, change, lister)
        if subscription.narrow is None or subscription.narrow(change, lister, key)
    }


def wakes_on(said: Said, change: Change) -> bool:
    """Say whether what was noted wakes the key at this change."""
    actions, refs = cluster_events(change), touched(change)
    return any(
        isinstance(wake, On)
        and bool(wake.action & actions)
        and (wake.ref is None or wake.ref in refs)
        for wake in said.wakes
    )


def changed(old: Manifest | None, new: Manifest | None) -> Change:
    kind = str((new or old or {})["kind"])
    return Change(kind, view(old) if old else None, view(new) if new else None)
