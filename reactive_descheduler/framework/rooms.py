"""Where the Pods that are to come in place of evicted ones would find room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from reactive_descheduler.api.eviction import Candidate
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod, controller
from reactive_descheduler.api.scheduling.fit import FitRules
from reactive_descheduler.api.selectors import Requirements, SelectorError, parse_selector
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.config.loaded import LoadedProfile
from reactive_descheduler.framework.fitting import Fitting

_STAY_PUT = frozenset({"DaemonSet", "Node"})
"""Kinds of owners whose new Pod comes to the very node of the old one."""


class Targets(NamedTuple):
    """The nodes on which the evictor looks for room; the policy's selector plays no part."""

    selector: Requirements

    def has(self, node: Node) -> bool:
        return node.ready and self.selector.matches(node.labels)

    def room(self, pod: Pod, fitting: Fitting, lister: Lister) -> Node | None:
        """Return one of them, other than the Pod's own, that it fits."""
        return fitting.elsewhere(pod, filter(self.has, lister.nodes()), lister, among=self.has)


class _Search(NamedTuple):
    fitting: Fitting
    targets: Targets


class Rooms:
    """Finds room for the replacement of a victim: on some node that would take it.

    Which node the scheduler will choose is not known; what counts is that two victims never have
    the same room. Where node fit is on, the evictor's own selector says which nodes are looked at.
    """

    def __init__(self, profiles: Sequence[LoadedProfile], rules: FitRules) -> None:
        self._anywhere = _Search(Fitting(rules), Targets(Requirements(())))
        self._searches = {
            index: _Search(Fitting(rules), Targets(_selector(profile.evictor.node_selector)))
            for index, profile in enumerate(profiles)
            if profile.evictor.node_fit
        }

    def of(self, candidate: Candidate, lister: Lister) -> Node | None:
        """Return the node; None if nobody is to come, or no other node would take it now."""
        pod = candidate.pod
        owner = controller(pod)
        if owner is None or owner.kind in _STAY_PUT or not pod.active:
            return None
        search = self._searches.get(candidate.key.profile, self._anywhere)
        return search.targets.room(pod, search.fitting, lister)


def _selector(text: str) -> Requirements:
    try:
        return parse_selector(text)
    except SelectorError:
        return Requirements(())  # node fit refuses every Pod for it
