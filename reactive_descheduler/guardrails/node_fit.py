"""Pods that no other node would take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from reactive_descheduler.api.changes import Never, On
from reactive_descheduler.api.eviction import Rejection
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.scheduling.fit import UPSTREAM, FitRules
from reactive_descheduler.api.selectors import Requirements, SelectorError, parse_selector
from reactive_descheduler.framework.filter import Reading
from reactive_descheduler.framework.fitting import Fitting
from reactive_descheduler.framework.rooms import Targets


class NodeFit:
    """Looks at ready nodes that match the evictor's own selector; the policy's plays no part.

    The dearest filter, so it stands last. A selector that cannot be read refuses every Pod, as
    upstream finds out only here.
    """

    NAME: ClassVar[str] = "nodeFit"

    def __init__(self, node_selector: str, rules: FitRules = UPSTREAM) -> None:
        self._flaw = ""
        self._targets = Targets(Requirements(()))
        try:
            self._targets = Targets(parse_selector(node_selector))
        except SelectorError as error:
            self._flaw = f"nodeSelector of the evictor: {error}"
        self._fitting = Fitting(rules)

    def check(self, pod: Pod, reading: Reading, /) -> Rejection | None:
        if self._flaw:
            return Rejection(self.NAME, self._flaw, (Never(pod.uid),), pod.ref)
        if self._witness(pod, reading) is not None:
            return None
        wakes = self._fitting.room_wakes(pod, reading.lister)
        return Rejection(self.NAME, "it fits no other node", wakes, pod.ref)

    def depends(self, pod: Pod, reading: Reading, /) -> Iterable[On]:
        witness = None if self._flaw else self._witness(pod, reading)
        if witness is None:
            return ()
        return self._fitting.loss_wakes(pod, witness, reading.lister)

    def _witness(self, pod: Pod, reading: Reading) -> Node | None:
        return self._targets.room(pod, self._fitting, reading.lister)
