"""Where an ideal scheduler puts the replacements of evicted Pods.

On a node that node fit accepts with all corrections, that the strategy counted as an improvement,
and from which no strategy of the policy would take it away at once. If there is none, on no node.
A careful one also minds those that it placed before: none of them may be wanted gone for who comes.
What a balance strategy counts as an improvement is said here anew, from its reason and arguments.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from random import Random
from typing import NamedTuple, cast

from reactive_descheduler.api.eviction import Candidate
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.quantity import NANOS
from reactive_descheduler.api.scheduling.fit import misfit
from reactive_descheduler.api.scheduling.spread import Spread, selects, spreads
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.config.args import Arguments
from reactive_descheduler.config.corrections import ALL
from reactive_descheduler.config.doubts import SPREADING
from reactive_descheduler.framework.fitting import fit_rules
from reactive_descheduler.framework.pod_strategy import PodStrategy
from reactive_descheduler.strategies.node_utilization import (
    HighNodeUtilizationArguments,
    LowNodeUtilizationArguments,
)
from reactive_descheduler.strategies.remove_pods_violating_topology_spread_constraint import (
    TopologySpreadArguments,
)
from tests.property.cluster_model import FRESH, Event, Name
from tests.property.running_core import RunningCore

_RULES = fit_rules(ALL)
_TRIES = 20


class Replaced(NamedTuple):
    placed: dict[str, str]
    """UIDs of replacements that are on a node, with the strategy that moved each."""
    pending: list[Candidate]
    """Whose replacement is on none."""


class IdealScheduler:
    """Made before a pass, for some strategies count nodes as they are then."""

    def __init__(self, run: RunningCore, random: Random, *, careful: bool = False) -> None:
        self._run = run
        self._random = random
        self._careful = careful
        self._one_by_one = random.random() < 0.5
        """Each is replaced before the next one goes; only if that does not do, all at once."""
        self._placed: set[str] = set()
        self._lister = run.core.lister
        self._before = {
            node.name: {name: _share(name, node, self._lister) for name in ("cpu", "pods")}
            for node in self._lister.nodes()
        }

    def have_places(self, victims: Sequence[Candidate]) -> bool:
        """Say whether there is a place for each replacement, by what their strategy looks at.

        Of several keys of a balance strategy each finds places, and booking need not mean the same.
        For one that has ended none is looked for: its owner has made another already. Where the
        number of Pods in a domain decides, the later ones must not go before the first is placed.
        """
        if not all(each.pod.active for each in victims):
            return False
        if not self._one_by_one and any(each.pod.template.spread_constraints for each in victims):
            return False
        candidate = victims[0]
        arguments = self._arguments(candidate)
        if candidate.key.strategy in SPREADING and len({each.key for each in victims}) > 1:
            return False
        if isinstance(arguments, TopologySpreadArguments):
            return arguments.topology_balance_node_fit
        return self._run.policy.profiles[candidate.key.profile].evictor.node_fit

    def replace(self, victims: Sequence[Candidate]) -> Replaced:
        """Delete the victims, and place those that come in their place: all, if it can find how.

        Who has least choice goes first; then any order is tried.
        """
        if self._one_by_one:
            self._placed.clear()
            replaced = _as_replaced(
                [(each, self._place(each)) for each in victims if self._renew(each.pod)]
            )
            if not replaced.pending and not self._are_wanted_gone(self._placed):
                return replaced
        came = [each for each in victims if self._renew(each.pod)]
        came.sort(key=self._choices)
        replaced = self._place_all(came)
        for _ in range(_TRIES):
            if not replaced.pending:
                break
            for candidate in came:
                self._renew(candidate.pod)
            self._random.shuffle(came)
            replaced = self._place_all(came)
        return replaced

    def _place_all(self, came: Sequence[Candidate]) -> Replaced:
        self._placed.clear()
        return _as_replaced([(each, self._place(each)) for each in came])

    def _renew(self, pod: Pod) -> bool:
        """Delete a Pod; say whether another comes, which is not bound yet."""
        owners = pod.template.owners
        comes = any(owner.kind == "ReplicaSet" for owner in owners)
        self._run.cluster.tell(Event("Pod", _name(pod), FRESH if comes else "gone"))
        return comes

    def _choices(self, candidate: Candidate) -> int:
        pod = self._pending(candidate)
        return sum(
            self._takes(node, pod) and self._improves(candidate, pod, node)
            for node in self._lister.nodes()
        )

    def _pending(self, candidate: Candidate) -> Pod:
        pod = self._lister.pod_named(*_name(candidate.pod))
        assert pod is not None
        return pod

    def _place(self, candidate: Candidate) -> str | None:
        for node in self._in_order():
            pod = self._pending(candidate)
            if not self._takes(node, pod) or not self._improves(candidate, pod, node):
                continue
            self._run.cluster.tell(Event("Pod", _name(pod), "node", node.name))
            if not self._are_wanted_gone({pod.uid, *(self._placed if self._careful else ())}):
                self._placed.add(pod.uid)
                return pod.uid
            self._run.cluster.tell(Event("Pod", _name(pod), FRESH))
        return None

    def _in_order(self) -> list[Node]:
        """Shuffle the nodes; under HighNodeUtilization the fuller come first, as it needs it."""
        nodes = list(self._lister.nodes())
        self._random.shuffle(nodes)
        if any(strategy.NAME == "HighNodeUtilization" for _, strategy in self._run.strategies):
            nodes.sort(key=lambda node: -_share("pods", node, self._lister))
        return nodes

    def _takes(self, node: Node, pod: Pod) -> bool:
        return node.ready and misfit(pod, node, self._lister, _RULES) is None

    def _are_wanted_gone(self, uids: Container[str]) -> bool:
        """Say whether any strategy would evict any of them."""
        return any(
            found.pod.uid in uids
            for profile, strategy in self._run.strategies
            for key in strategy.keys_of(self._run.core.live)
            if not isinstance(strategy, PodStrategy) or key.unit[0] in uids
            for found in self._run.evaluated(profile, strategy, key).offered
        )

    def _improves(self, candidate: Candidate, pod: Pod, node: Node) -> bool:
        arguments = self._arguments(candidate)
        match candidate.key.strategy:
            case "RemoveDuplicates":
                return self._is_spread(candidate, pod, node)
            case "RemovePodsViolatingTopologySpreadConstraint":
                kinds = cast(TopologySpreadArguments, arguments).kinds
                return all(
                    self._stays_even(spread, pod, node) for spread in self._spreads(pod, kinds)
                )
            case "LowNodeUtilization":
                return self._is_relief(cast(LowNodeUtilizationArguments, arguments), pod, node)
            case "HighNodeUtilization":
                low = cast(HighNodeUtilizationArguments, arguments).thresholds
                return any(self._before[node.name][name] > most for name, most in low.items())
        return True  # what else there is to say, the strategy itself says

    def _arguments(self, candidate: Candidate) -> Arguments:
        profile = self._run.policy.profiles[candidate.key.profile]
        named = {plugin.name: plugin for plugin in (*profile.deschedule, *profile.balance)}
        return named[candidate.key.strategy].arguments

    def _is_spread(self, candidate: Candidate, pod: Pod, node: Node) -> bool:
        """Say whether the node then has at most as many Pods of the owner as the reason says."""
        said = re.search(r"Pods of (\S+) (\S+), (\d+) would do", candidate.reason)
        assert said is not None, candidate.reason
        kind, name, level = said.groups()
        there = [
            each
            for each in self._lister.pods_on(node.name)
            if each.namespace == pod.namespace
            and each.active
            and each.deleted is None
            and sorted(each.template.images) == sorted(pod.template.images)
            and any((owner.kind, owner.name) == (kind, name) for owner in each.template.owners)
        ]
        return len(there) < int(level)

    def _spreads(self, pod: Pod, kinds: Iterable[str]) -> Iterable[Spread]:
        """Return the constraints of the namespace that count the Pod, whoever carries them."""
        return {
            spread
            for each in self._lister.pods_in(pod.namespace)
            for kind in kinds
            for spread in spreads(each.template, kind)
            if selects(spread, pod.template)
        }

    def _stays_even(self, spread: Spread, pod: Pod, node: Node) -> bool:
        counted = self._lister.spread_counts(pod.namespace, spread)
        domain = counted.domains.of_node.get(node.name)
        if domain is None:
            return True
        return counted.counts.get(domain, 0) + 1 - (counted.least or 0) <= spread.max_skew

    def _is_relief(self, arguments: LowNodeUtilizationArguments, pod: Pod, node: Node) -> bool:
        """Say whether the node was underutilized, and is not overutilized then."""
        low, high = arguments.thresholds, arguments.target_thresholds
        if node.unschedulable:
            return False
        for name in low:
            least, most = low[name], high[name]
            if arguments.use_deviation_thresholds:
                mean = self._mean(name)
                least, most = max(0.0, mean - least), min(100.0, mean + most)
            more = pod.template.requests.get(name, 0) if name != "pods" else NANOS
            after = _share(name, node, self._lister, more)
            if self._before[node.name][name] > least or after > most:
                return False
        return True

    def _mean(self, name: str) -> float:
        nodes = [node for node in self._run.core.cycle.values() if node.allocatable.get(name)]
        return sum(self._before[node.name][name] for node in nodes) / len(nodes)


def _as_replaced(found: Sequence[tuple[Candidate, str | None]]) -> Replaced:
    return Replaced(
        {uid: candidate.key.strategy for candidate, uid in found if uid is not None},
        [candidate for candidate, uid in found if uid is None],
    )


def _share(name: str, node: Node, lister: Lister, more: int = 0) -> float:
    used = lister.requests_on(node.name).get(name, 0)
    if name == "pods":
        used = lister.active_pods_on(node.name) * NANOS
    capacity = node.allocatable.get(name, 0)
    return 100.0 * (used + more) / capacity if capacity else 0.0


def _name(pod: Pod) -> Name:
    return pod.namespace, pod.name
