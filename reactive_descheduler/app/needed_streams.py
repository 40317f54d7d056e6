"""What gates ask about the streams that the policy in force needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Self

from reactive_descheduler.app.policy import budgets_decide, needed_kinds
from reactive_descheduler.app.streams import BUDGETS, Streams
from reactive_descheduler.config.loaded import LoadedPolicy


class _Kinds(NamedTuple):
    """The kinds that a policy needs."""

    policy: LoadedPolicy
    needed: frozenset[str]
    deciding: frozenset[str]
    """Those that decisions rest on."""

    @classmethod
    def of(cls, policy: LoadedPolicy) -> Self:
        needed = frozenset(needed_kinds(policy))
        # A stale budget stream only makes its lanes ask the server, unless a verdict rests on it.
        return cls(policy, needed, needed if budgets_decide(policy) else needed - {BUDGETS})


class NeededStreams:
    """Both are asked for anew each time: a policy may be reloaded, and streams come later."""

    def __init__(self, policy: Callable[[], LoadedPolicy], streams: Callable[[], Streams]) -> None:
        self._policy = policy
        self._streams = streams
        self._last: _Kinds | None = None

    def missing(self) -> list[str]:
        """Return the kinds that are not synced, each with what stands in the way."""
        return self._streams().not_synced(self._kinds().needed)

    def ages(self) -> Mapping[str, float]:
        """Return for how many seconds what decisions rest on may be outdated, by kind."""
        return self._streams().ages(self._kinds().deciding)

    def cut_off(self) -> set[str]:
        """Return the kinds that decisions rest on whose watch has not caught up."""
        return self._streams().cut_off(self._kinds().deciding)

    def budgets_stale(self) -> bool:
        max_age = self._policy().reactive.staleness.max_age.total_seconds()
        return self._streams().ages((BUDGETS,)).get(BUDGETS, 0.0) > max_age

    def _kinds(self) -> _Kinds:
        """Return what the policy needs, worked out once: gates ask before each request."""
        policy = self._policy()
        if self._last is None or self._last.policy is not policy:
            self._last = _Kinds.of(policy)
        return self._last
