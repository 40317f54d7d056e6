"""Upstream's pass as one synchronous generator, and a driver for it without an event loop.

It yields each candidate and is sent the verdict; the driver may await before it sends. What was
taken counts as gone for what follows. `plan`, `run --once` and the conformance corpus drive it,
which holds it to what upstream evicts.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from datetime import datetime

from reactive_descheduler.api.eviction import Candidate, Failed, Pause, Rejection, Verdict
from reactive_descheduler.api.node import Node
from reactive_descheduler.cache.gone import GonePods
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.usage import Usage
from reactive_descheduler.framework.profile import Profile, ProfileView
from reactive_descheduler.framework.strategy import Strategies, Strategy, View

Said = Candidate | Rejection | Pause | Failed
Pass = Generator[Said, Verdict | None, None]


def full_pass(profiles: Sequence[tuple[View, Strategies, Strategies]]) -> Pass:
    """Run all deschedule strategies of all profiles, then all balance strategies.

    A strategy that raises is told as Failed; the others run all the same.
    """
    for index, (view, deschedule, _) in enumerate(profiles):
        for strategy in deschedule:
            yield from _swept(index, strategy, view)
    for index, (view, _, balance) in enumerate(profiles):
        for strategy in balance:
            yield from _swept(index, strategy, view)


def _swept(profile: int, strategy: Strategy, view: View) -> Pass:
    try:
        yield from strategy.sweep(view)
    except Exception as error:
        yield Failed(None, profile, strategy.NAME, f"{type(error).__name__}: {error}")


def views(
    profiles: Sequence[Profile],
    *,
    lister: Lister,
    nodes: Mapping[str, Node],
    now: datetime,
    gone: GonePods | None = None,
    usage: Usage | None = None,
) -> list[tuple[View, Strategies, Strategies]]:
    """Return what `full_pass` takes: each profile with its view of this state, less `gone`."""
    reduced = lister if gone is None else lister.less(gone)
    return [
        (
            ProfileView(profile.evictor, reduced, nodes, now, usage),
            profile.deschedule,
            profile.balance,
        )
        for profile in profiles
    ]
