"""HighNodeUtilization: empties nodes that are used little, so that they can be taken away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from reactive_descheduler.api.eviction import Pause
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.config.corrections import Corrections
from reactive_descheduler.config.evictor import DefaultEvictorArguments

from .arguments import ONLY_THRESHOLDING, HighNodeUtilizationArguments
from .ceiling import FixedCeiling
from .sources import Reading, source_of
from .sums import NodeUse, Shares, is_under
from .utilization import NodeUtilization, Sorted, Sorting


class HighNodeUtilization(NodeUtilization):
    """Cordoned nodes are emptied too; what is left on a destination is all that stops it."""

    NAME: ClassVar[str] = "HighNodeUtilization"
    UNREADABLE: ClassVar[str] = "it neither gives Pods away nor takes any in"

    def __init__(
        self,
        arguments: HighNodeUtilizationArguments,
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
            source=source_of(None, arguments.thresholds),
        )
        self._low = arguments.thresholds
        self._only_named = ONLY_THRESHOLDING in arguments.eviction_modes

    def has_enough(self, _source: NodeUse, _high: Shares) -> bool:
        return False

    def reason(self, source: NodeUse, _high: Shares) -> str:
        under = ", ".join(
            f"{name} {source.shares.get(name, 0.0):.0f}% of {most:g}%"
            for name, most in sorted(self._low.items())
        )
        return f"node {source.node.name} is underutilized: {under}"

    def moves(self, pod: Pod) -> bool:
        requested = pod.template.requested
        return not self._only_named or any(name in requested for name in self._low)

    def _sorted(self, uses: Sequence[NodeUse], _reading: Reading) -> Sorting:
        under, rest = [], []
        for use in uses:
            if use.unreadable is not None or not self.judges(use):
                continue
            if is_under(use.shares, self._low):
                under.append(use)
            elif not use.node.unschedulable:
                rest.append(use)
        yield Pause()
        full = dict.fromkeys(self._low, 100.0)
        return Sorted(
            sources=sorted(under, key=lambda use: use.weight),
            destinations=sorted(
                rest, key=lambda use: -max(use.shares.get(name, 0.0) for name in self._low)
            ),
            high=full,
            ceiling=FixedCeiling(full),
            why_not=self._why_not(len(under), len(rest)),
        )

    def _why_not(self, under: int, destinations: int) -> str:
        if under <= self._least:
            return f"{under} underutilized are not more than numberOfNodes, which is {self._least}"
        return "" if destinations else "no node is used enough to take Pods in"
