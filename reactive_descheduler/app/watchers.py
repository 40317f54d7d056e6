"""Eternal tasks that look at the core from time to time: what no watch event tells."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import anyio

from reactive_descheduler.api.errors import ClientError
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.app.core import Core
from reactive_descheduler.evictor.assumed import Assumption
from reactive_descheduler.evictor.gates.bucket import BucketGate
from reactive_descheduler.evictor.gates.permission import PermissionGate
from reactive_descheduler.kit.clock import Clock
from reactive_descheduler.observability.logs import get_logger

log = get_logger("watchers")

LOOK_UP_EVERY = 5.0
"""Seconds between looks for Pods that were assumed going for too long."""
WAITS_LOOK_EVERY = 1.0
CLOCK_LOOK_EVERY = 1.0
CYCLE_LOOK_EVERY = 1.0
DEGRADED_LOOK_EVERY = 5.0
CLOSED_LOOK_EVERY = 1.0
CLOSED_FOR = 5.0
"""Seconds for which everything is held before that is told: a watch that is opened again takes one
or two."""


class Tell(Protocol):
    """Sends a Kubernetes Event about the descheduler itself."""

    def __call__(self, reason: str, note: str, *, warning: bool) -> None: ...


class Watchers:
    """`core`: the one that decides now; None until it is live."""

    def __init__(
        self,
        core: Callable[[], Core | None],
        *,
        get_pod: Callable[[str, str], Awaitable[Pod | None]],
        degraded: Callable[[], list[str]],
        tell: Tell,
        clock: Clock,
    ) -> None:
        self._core = core
        self._get_pod = get_pod
        self._degraded = degraded
        self._tell = tell
        self._clock = clock

    async def clock(self) -> None:
        """Notice that the wall clock jumped."""
        while True:
            await anyio.sleep(CLOCK_LOOK_EVERY)
            core = self._core()
            jump = core.gates.clock.look() if core is not None else None
            if core is not None and jump is not None:
                log.warning("The wall clock jumped", seconds=round(jump.total_seconds(), 1))
                core.on_jump(jump)

    async def cycle(self) -> None:
        """Say when the policy's nodes become too few to do anything, and when they no longer are.

        Somebody who tries this on a cluster of one node would wonder for long otherwise.
        """
        told = True
        while True:
            await anyio.sleep(CYCLE_LOOK_EVERY)
            core = self._core()
            if core is None or core.cycle.alive == told:
                continue
            told = core.cycle.alive
            if told:
                log.info("Enough ready nodes: at work again")
            else:
                log.warning(
                    "Fewer than 2 of the policy's nodes are ready: nothing is evicted",
                    nodes=len(core.lister.nodes()),
                    node_selector=core.policy.node_selector,
                )

    async def closed(self) -> None:
        """Say when something holds everything for longer than a moment, and when it no longer
        does; the rate is none of that."""
        told = ""
        since: float | None = None
        while True:
            await anyio.sleep(CLOSED_LOOK_EVERY)
            core, now = self._core(), self._clock.monotonic()
            closed = _closed(core) if core is not None else None
            if closed is None:
                if told and since is not None:
                    log.info("Evictions go on again", after_seconds=round(now - since))
                told, since = "", None
                continue
            since = now if since is None else since
            by, reason = closed
            if by != told and now - since >= CLOSED_FOR:
                told = by
                log.warning("Nothing is evicted for the time being", by=by, reason=reason)

    async def degraded(self) -> None:
        """Tell of each strategy of which every key fails, once until it works again."""
        told: set[str] = set()
        while True:
            await anyio.sleep(DEGRADED_LOOK_EVERY)
            degraded = set(self._degraded())
            for name in sorted(degraded - told):
                log.error("Strategy degraded", strategy=name)
                note = f"strategy {name} is degraded: every evaluation of it fails"
                self._tell("StrategyDegraded", note, warning=True)
            told = degraded

    async def waits(self) -> None:
        """End the promises of room that were made too long ago, and likewise evictions in
        background."""
        while True:
            await anyio.sleep(WAITS_LOOK_EVERY)
            if (core := self._core()) is not None:
                core.end_waits()

    async def overdue(self) -> None:
        """Ask the API server about Pods that should be seen going and are not (design 5.2)."""
        while True:
            await anyio.sleep(LOOK_UP_EVERY)
            core = self._core()
            if core is None or core.gates.stale.closed(self._clock.now()) is not None:
                continue  # the watch could not have told
            for assumption in core.assumed.overdue(self._clock.now()):
                await self._look_up(core, assumption)

    async def _look_up(self, core: Core, assumption: Assumption) -> None:
        pod = assumption.pod
        try:
            found = await self._get_pod(pod.namespace, pod.name)
        except ClientError as error:
            log.warning("Could not look up an evicted Pod", pod=pod.name, error=str(error))
            core.assumed.keep(pod.uid, self._clock.now())
            return
        stays = found is not None and found.uid == pod.uid and found.deleted is None
        # A reload meanwhile leaves what is assumed to the next core.
        core = self._core() or core
        if stays:
            core.resolve(pod.uid, key=assumption.outcome.candidate.key)
        else:
            core.confirm(pod.uid)


def _closed(core: Core) -> tuple[str, str] | None:
    """Return which gate holds everything, and why; the rate does not count."""
    closed = core.dispatcher.statistics().closed
    if closed is not None and closed.by != BucketGate.NAME:
        return closed.by, closed.reason
    if refusal := core.gates.permission.refusal:
        # Open only for the one request in a while that tries whether we are allowed by now.
        return PermissionGate.NAME, f"not allowed to evict: {refusal}"
    return None
