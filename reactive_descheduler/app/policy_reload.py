"""Puts another policy in force while the daemon runs, or says why the last one stays.

What only the cluster tells is asked before: priority classes, and the first lists of kinds that the
last policy did not need.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import anyio

from reactive_descheduler.api.errors import ClientError, PolicyError, Problem
from reactive_descheduler.app.policy import needed_kinds, needs_priority_classes
from reactive_descheduler.app.policy_file import PolicyFile
from reactive_descheduler.app.streams import Streams
from reactive_descheduler.cache.list_watch import ListerWatcher
from reactive_descheduler.client.kube import KubeConnection
from reactive_descheduler.client.priority_classes import read_priority_classes
from reactive_descheduler.config.doubts import all_warnings
from reactive_descheduler.config.loaded import LoadedPolicy
from reactive_descheduler.kit.clock import Clock
from reactive_descheduler.observability.logs import get_logger
from reactive_descheduler.observability.metrics import Metrics

log = get_logger("policy")

SYNC_WITHIN = 60.0
"""Seconds for the first list of a kind that a reloaded policy needs."""


class Teller(Protocol):
    """Sends an Event about the policy."""

    def __call__(self, reason: str, note: str, *, warning: bool) -> None: ...


class PolicyReload:
    """`source_of`: lists and watches a kind. `put_in_force`: does so without an await; returns
    whether it did, which it does not when the process is about to end."""

    def __init__(
        self,
        file: PolicyFile,
        connection: KubeConnection,
        streams: Streams,
        *,
        clock: Clock,
        metrics: Metrics,
        source_of: Callable[[str], ListerWatcher],
        put_in_force: Callable[[LoadedPolicy, Mapping[str, int]], bool],
        tell: Teller,
    ) -> None:
        self._file = file
        self._connection = connection
        self._streams = streams
        self._clock = clock
        self._metrics = metrics
        self._source_of = source_of
        self._put_in_force = put_in_force
        self._tell = tell

    async def run(self) -> None:
        await self._file.watch(self._reload, self._refuse)

    async def _reload(self, policy: LoadedPolicy) -> None:
        """Put another policy in force, in one step; what was done and begun so far still counts.

        Raises PolicyError if only the cluster tells that it cannot be: the old one stays in force.
        """
        try:
            classes = await priority_classes_for(policy, self._connection, clock=self._clock)
        except ClientError as error:
            problem = Problem("", None, f"priority classes cannot be read: {error}", error.hint)
            raise PolicyError(policy.source, [problem]) from error
        await self._watch_more(policy)
        if not self._put_in_force(policy, classes):
            return
        log.info("Policy reloaded", source=policy.source, profiles=len(policy.profiles))
        warn(policy)
        self._metrics.policy_reloads.labels("ok").inc()
        self._tell("PolicyReloaded", f"the policy {policy.source} is in force", warning=False)

    async def _watch_more(self, policy: LoadedPolicy) -> None:
        """Watch what this policy needs and the last one did not; return once it is synced."""
        missing = [kind for kind in needed_kinds(policy) if kind not in self._streams]
        for kind in missing:
            self._streams.add(self._source_of(kind))
        with anyio.move_on_after(SYNC_WITHIN):
            await self._streams.wait_synced()
        if not_synced := self._streams.not_synced():
            problem = Problem("", None, f"what it needs is not synced: {', '.join(not_synced)}")
            for kind in missing:
                self._streams.remove(kind)
            raise PolicyError(policy.source, [problem])

    def _refuse(self, error: OSError | PolicyError) -> None:
        message = "Policy refused; the last good one stays in force"
        if isinstance(error, PolicyError):
            log.error(message, source=error.source, mistakes=len(error.problems))
            for problem in error.problems:
                log.error("Mistake in the policy", **_told(problem))
        else:
            log.error(message, error=error)
        self._metrics.policy_reloads.labels("refused").inc()
        note = f"policy refused, the last good one stays in force: {error}"
        self._tell("PolicyRefused", note, warning=True)


def warn(policy: LoadedPolicy) -> None:
    """Log everything that is odd about a policy."""
    for problem in all_warnings(policy):
        log.warning("Warning about the policy", **_told(problem))


def _told(problem: Problem) -> dict[str, object]:
    """Return a problem as fields of a log line, without those that say nothing."""
    fields = {
        "path": problem.path,
        "line": problem.line,
        "problem": problem.message,
        "hint": problem.hint,
    }
    return {name: value for name, value in fields.items() if value}


async def priority_classes_for(
    policy: LoadedPolicy, connection: KubeConnection, *, clock: Clock
) -> Mapping[str, int]:
    """Return the values of PriorityClasses by name; none where no threshold goes by name.

    Raises ClientError if they cannot be read.
    """
    if not needs_priority_classes(policy):
        return {}
    return await read_priority_classes(connection, clock=clock)
