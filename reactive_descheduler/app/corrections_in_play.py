"""Which corrections can decide anything in a pass of this policy over this cluster.

Only saves passes that would tell nothing: what is told in doubt costs time, what is left out in
error hides a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from reactive_descheduler.api.pod import EVICT_ANNOTATION, Pod, PodTemplate
from reactive_descheduler.app.policy import SEEK_ROOM
from reactive_descheduler.app.snapshot import Snapshot
from reactive_descheduler.config.corrections import Correction
from reactive_descheduler.config.evictor import Protection
from reactive_descheduler.config.loaded import LoadedPolicy
from reactive_descheduler.strategies.remove_pods_violating_node_taints import CORDON_TAINT


def in_play(policy: LoadedPolicy, snapshot: Snapshot) -> tuple[Correction, ...]:
    """Return them in the order in which they are declared, whether in force or not."""
    facts = _Facts(
        policy,
        frozenset(
            plugin.name
            for profile in policy.profiles
            for plugin in (*profile.deschedule, *profile.balance)
        ),
        frozenset(taint.key for node in snapshot.lister.nodes() for taint in node.taints),
        {id(pod.template): pod.template for pod in snapshot.lister.pods()},
        snapshot.store.pods(),
    )
    return tuple(each for each in Correction if each in _RULES and _RULES[each](facts))


class _Facts(NamedTuple):
    policy: LoadedPolicy
    strategies: frozenset[str]
    taints: frozenset[str]
    """Keys of the taints of all nodes."""
    templates: Mapping[int, PodTemplate]
    """Each once, by its identity."""
    pods: Mapping[str, Pod]

    def any_template(self, matters: Callable[[PodTemplate], object]) -> bool:
        return any(map(matters, self.templates.values()))

    @property
    def seeks_room(self) -> bool:
        return bool(self.strategies & SEEK_ROOM) or any(
            profile.evictor.node_fit for profile in self.policy.profiles
        )

    @property
    def node_fit_is_written_false(self) -> bool:
        return any(profile.evictor.node_fit_is_written_false for profile in self.policy.profiles)


_Rule = Callable[[_Facts], object]


def _enabled(*strategies: str) -> _Rule:
    return lambda facts: not facts.strategies.isdisjoint(strategies)


def _node_fit(reads: Callable[[PodTemplate], object]) -> _Rule:
    return lambda facts: facts.seeks_room and facts.any_template(reads)


def _has_min_domains(template: PodTemplate) -> bool:
    return any((each.min_domains or 1) > 1 for each in template.spread_constraints)


_UTILIZATION = _enabled("LowNodeUtilization", "HighNodeUtilization")
_SPREAD = _enabled("RemovePodsViolatingTopologySpreadConstraint")
_DUPLICATES = _enabled("RemoveDuplicates")
_ANTI_AFFINITY = _enabled("RemovePodsViolatingInterPodAntiAffinity")
_RULES: Mapping[Correction, _Rule] = {
    Correction.EVICT_ANNOTATION: lambda facts: any(
        EVICT_ANNOTATION in pod.annotations for pod in facts.pods.values()
    ),
    Correction.ONE_OFFER_PER_PASS: lambda facts: facts.strategies,
    Correction.CORDON_ALONE: lambda facts: (
        "RemovePodsViolatingNodeTaints" in facts.strategies and CORDON_TAINT in facts.taints
    ),
    Correction.NODE_FIT_FALSE: lambda facts: (
        facts.node_fit_is_written_false and facts.strategies & SEEK_ROOM
    ),
    Correction.PODS_WITHOUT_PDB: lambda facts: any(
        Protection.WITHOUT_PDB in profile.evictor.protections for profile in facts.policy.profiles
    ),
    Correction.UTILIZATION_TOLERATIONS: lambda facts: _UTILIZATION(facts) and facts.taints,
    Correction.UTILIZATION_PLACEMENT: _UTILIZATION,
    Correction.UTILIZATION_RESOURCES: _UTILIZATION,
    Correction.SPREAD_MIN_DOMAINS: lambda facts: (
        _SPREAD(facts) and facts.any_template(_has_min_domains)
    ),
    Correction.SPREAD_ALL_PODS: _SPREAD,
    Correction.SPREAD_FEWEST_MOVES: _SPREAD,
    Correction.DUPLICATES_COUNTING: _DUPLICATES,
    Correction.DUPLICATES_ROOM: _DUPLICATES,
    Correction.ANTI_AFFINITY_SCOPE: _ANTI_AFFINITY,
    Correction.ANTI_AFFINITY_FEWEST: _ANTI_AFFINITY,
    Correction.PREFERRED_AFFINITY_FITS: lambda facts: (
        "RemovePodsViolatingNodeAffinity" in facts.strategies
        and facts.any_template(lambda pod: pod.preferred_node_affinity)
    ),
    Correction.NODE_FIT_ANTI_AFFINITY: _node_fit(lambda pod: pod.anti_affinity),
    Correction.NODE_FIT_POD_AFFINITY: _node_fit(lambda pod: pod.pod_affinity),
    Correction.NODE_FIT_SPREAD: _node_fit(lambda pod: pod.spread_constraints),
    Correction.NODE_FIT_VOLUMES: _node_fit(lambda pod: pod.claims),
    Correction.NODE_FIT_HOST_PORTS: _node_fit(lambda pod: pod.host_ports),
    Correction.BOOKING: lambda facts: facts.seeks_room,
    Correction.CLAIMED_NODES: lambda facts: facts.taints.intersection(
        facts.policy.reactive.drainers.taints
    ),
}
"""What is not in it decides nothing in a pass: how documents are read, and exit codes."""
