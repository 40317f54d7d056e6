"""Assembles the profiles of a loaded policy from the tables of strategies and filters.

The tables are handed in: strategies and filters are a layer above.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from reactive_descheduler.config.args import Arguments
from reactive_descheduler.config.corrections import Corrections
from reactive_descheduler.config.evictor import (
    THRESHOLD_NAME,
    DefaultEvictorArguments,
    resolve_priority_threshold,
)
from reactive_descheduler.config.loaded import LoadedPolicy, LoadedProfile
from reactive_descheduler.framework.filter import EvictorFilter
from reactive_descheduler.framework.profile import Profile
from reactive_descheduler.framework.strategy import Strategies, Strategy

StrategyClass = Callable[..., Strategy]
"""Called as `(arguments, *, profile, corrections, evictor)`."""


class FilterBuilder(Protocol):
    def __call__(
        self,
        arguments: DefaultEvictorArguments,
        *,
        priority_threshold: int,
        corrections: Corrections,
        drainers_taints: Iterable[str],
    ) -> EvictorFilter: ...


class Registry:
    """What a policy can name. Nothing can be added once it is made."""

    def __init__(
        self, strategies: Mapping[str, StrategyClass], build_filter: FilterBuilder
    ) -> None:
        self._strategies = dict(strategies)
        self._build_filter = build_filter

    def profiles(
        self, policy: LoadedPolicy, *, priority_classes: Mapping[str, int]
    ) -> tuple[Profile, ...]:
        """Build every profile in the order of the file.

        `priority_classes`: values by name; only needed where a threshold goes by name.

        Raises:
            PolicyError: a priority class is missing, or its value is too high (spec/evictor 2.4).
        """
        return tuple(
            self._profile(index, profile, policy, priority_classes)
            for index, profile in enumerate(policy.profiles)
        )

    def _profile(
        self,
        index: int,
        profile: LoadedProfile,
        policy: LoadedPolicy,
        priority_classes: Mapping[str, int],
    ) -> Profile:
        path = f"profiles[{index}].{THRESHOLD_NAME}"
        threshold = resolve_priority_threshold(
            profile.evictor,
            priority_classes,
            source=policy.source,
            path=path,
            line=policy.line(path),
        )
        built: dict[str, Strategy] = {}

        def strategy(name: str, arguments: Arguments) -> Strategy:
            # One instance per plugin and profile, also where one is listed twice (spec 1.5).
            if name not in built:
                built[name] = self._strategies[name](
                    arguments,
                    profile=index,
                    corrections=policy.corrections,
                    evictor=profile.evictor,
                )
            return built[name]

        def of(phase: str) -> Strategies:
            plugins = profile.deschedule if phase == "deschedule" else profile.balance
            return tuple(strategy(plugin.name, plugin.arguments) for plugin in plugins)

        return Profile(
            index=index,
            name=profile.name,
            deschedule=of("deschedule"),
            balance=of("balance"),
            evictor=self._build_filter(
                profile.evictor,
                priority_threshold=threshold,
                corrections=policy.corrections,
                drainers_taints=policy.reactive.drainers.taints,
            ),
        )
