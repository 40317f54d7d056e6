"""LowNodeUtilization: moves Pods from nodes that are used too much to others, used little."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from reactive_descheduler.api.eviction import Pause
from reactive_descheduler.config.corrections import Corrections
from reactive_descheduler.config.evictor import DefaultEvictorArguments

from .arguments import LowNodeUtilizationArguments
from .ceiling import Ceiling, FixedCeiling, MeanCeiling
from .sources import Reading, source_of
from .sums import Amounts, NodeUse, Shares, clamped, is_over, is_under, mean_shares
from .utilization import NodeUtilization, Sorted, Sorting


class LowNodeUtilization(NodeUtilization):
    NAME: ClassVar[str] = "LowNodeUtilization"
    UNREADABLE: ClassVar[str] = "it takes no Pods in"

    def __init__(
        self,
        arguments: LowNodeUtilizationArguments,
        *,
        profile: int,
        corrections: Corrections,
        evictor: DefaultEvictorArguments | None = None,
    ) -> None:
        super().__init__(
            arguments,
            profile=profile,
            corrections=corrections,
            evictor=evictor,
            source=source_of(arguments.metrics_utilization, arguments.thresholds),
            limit=arguments.eviction_limits.node,
        )
        self._low = arguments.thresholds
        self._high = arguments.target_thresholds
        self._deviates = self.needs_all = arguments.use_deviation_thresholds

    def has_enough(self, source: NodeUse, high: Shares) -> bool:
        return not any(self._exceeds(name, source, high) for name in self.counted)

    def helps(self, amounts: Amounts, source: NodeUse, high: Shares) -> bool:
        return not self.only_named or any(
            amounts.get(name, 0) and self._exceeds(name, source, high) for name in self.counted
        )

    def _exceeds(self, name: str, source: NodeUse, high: Shares) -> bool:
        # Of what a node does not have, such as GPUs whose driver is away, no share is too much.
        if self.only_named and not source.capacity.get(name, 0):
            return False
        return source.used.get(name, 0) > source.limit(name, high)

    def reason(self, source: NodeUse, high: Shares) -> str:
        over = [
            f"{name} {found:.0f}% over {high[name]:.0f}%"
            for name in sorted(high)
            if (found := source.shares.get(name, 0.0)) > high[name]
        ]
        return f"node {source.node.name} is overutilized: {', '.join(over)}"

    def _sorted(self, uses: Sequence[NodeUse], reading: Reading) -> Sorting:
        low, high, ceiling = self._bounds(uses)
        yield Pause()
        under, over = [], []
        for use in uses:
            if not self.judges(use):
                continue
            if not use.node.unschedulable and is_under(use.shares, low):
                if use.unreadable is None:  # or it may be fuller than it looks
                    under.append(use)
            elif is_over(use.shares, high) and self._was_over(use, high, reading.samples):
                over.append(use)
        yield Pause()
        return Sorted(
            sources=sorted(over, key=lambda use: -use.weight),
            destinations=sorted(
                under, key=lambda use: max((use.shares.get(n, 0.0) for n in low), default=0.0)
            ),
            high=high,
            ceiling=ceiling,
            why_not=self._why_not(len(under)),
        )

    def _was_over(self, use: NodeUse, high: Shares, samples: int) -> bool:
        """Say whether the node was over by as many samples before as are asked for."""
        return len(use.before) + 1 >= samples and all(is_over(each, high) for each in use.before)

    def _why_not(self, under: int) -> str:
        if not under:
            return "no node is underutilized"
        if under <= self._least:
            return f"{under} underutilized are not more than numberOfNodes, which is {self._least}"
        return ""

    def _bounds(self, uses: Sequence[NodeUse]) -> tuple[Shares, Shares, Ceiling]:
        if not self._deviates:
            return self._low, self._high, FixedCeiling(self._high)
        means, nodes = mean_shares(uses, self._named)
        low = {name: clamped(means[name] - self._low[name]) for name in means}
        high = {name: clamped(means[name] + self._high[name]) for name in means}
        return low, high, MeanCeiling(means, nodes, self._high)
