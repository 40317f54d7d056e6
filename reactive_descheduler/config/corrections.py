"""Where we differ from upstream, by name.

Upstream's behaviour is the default reading of a policy; each deliberate difference is a member
here, one `if` where it acts, and a test each way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from .findings import brief, close_match


class Correction(StrEnum):
    """A difference that can be switched off; the value is its name in files and flags."""

    upstream: str
    """What upstream does, which is also what happens without the correction."""
    ours: str
    """What happens with it."""

    def __new__(cls, name: str, upstream: str, ours: str) -> Correction:
        """Make a member that carries both outcomes."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.upstream = upstream
        member.ours = ours
        return member

    STRICT_DOCUMENTS = (
        "strictDocuments",
        "Unknown keys outside args, duplicate keys and unknown metrics sources are ignored; a"
        " document without apiVersion is read as an empty policy.",
        "Unknown keys, duplicate keys, unknown metrics sources and a missing apiVersion are"
        " refused, with path, line and hint.",
    )
    MISSING_PLUGIN_CONFIG = (
        "missingPluginConfig",
        "A plugin enabled without an entry in pluginConfig stops the process.",
        "A plugin enabled without an entry in pluginConfig runs with its default arguments.",
    )
    EVICT_ANNOTATION = (
        "evictAnnotation",
        "The evict annotation lifts everything, whatever its value.",
        'The evict annotation lifts only with the value "true", and only protections; facts stay'
        " (mirror, static, place, terminating).",
    )
    ONE_OFFER_PER_PASS = (
        "oneOfferPerPass",
        "A Pod can be asked for again by a later strategy of the same pass, and counts again.",
        "A Pod is offered once per pass.",
    )
    CORDON_ALONE = (
        "cordonAlone",
        "The taint that a cordon puts on a node counts like any other: the node's Pods are"
        " evicted.",
        "A cordon alone is no drain: the node's Pods stay.",
    )
    NODE_FIT_FALSE = (
        "nodeFitFalse",
        "Some strategies look for room on other nodes even where nodeFit is off.",
        "Where nodeFit: false is written, no other node is looked at.",
    )
    PODS_WITHOUT_PDB = (
        "podsWithoutPDB",
        "PodsWithoutPDB protects every Pod, since the cache of budgets it asks is always empty.",
        "PodsWithoutPDB protects the Pods that no PodDisruptionBudget selects.",
    )
    UTILIZATION_TOLERATIONS = (
        "utilizationTolerations",
        "For a destination of the utilization strategies a Pod needs as many tolerations as the"
        " node has taints, soft ones among them.",
        "A destination's NoSchedule and NoExecute taints are tolerated as the scheduler reads"
        " tolerations; soft taints do not keep a Pod away.",
    )
    UTILIZATION_PLACEMENT = (
        "utilizationPlacement",
        "The utilization strategies reckon with the sum of what their destinations have left.",
        "A victim has to fit one destination, and must not make it a node to evict from.",
    )
    UTILIZATION_RESOURCES = (
        "utilizationResources",
        "cpu, memory and Pods say when the utilization strategies stop, with or without"
        " thresholds; a node that lacks what has thresholds is used least.",
        "Only resources that have thresholds say when the utilization strategies stop, and which"
        " Pods and nodes they look at.",
    )
    SPREAD_MIN_DOMAINS = (
        "spreadMinDomains",
        "minDomains of a topology spread constraint is not read.",
        "With fewer domains than minDomains the least of them counts as empty, as for the"
        " scheduler.",
    )
    SPREAD_ALL_PODS = (
        "spreadAllPods",
        "Topology spread counts only Pods that may be evicted and are in the plugin's scope.",
        "Topology spread counts every Pod that the constraint selects, as the scheduler does.",
    )
    SPREAD_FEWEST_MOVES = (
        "spreadFewestMoves",
        "Topology spread moves Pods towards the average of the domains, of high priority first.",
        "Topology spread evicts no more Pods than it takes to come within maxSkew, of those that"
        " carry the constraint and of low priority first.",
    )
    DUPLICATES_COUNTING = (
        "duplicatesCounting",
        "RemoveDuplicates counts only Pods that may be evicted and, with nodeFit, would fit another"
        " node.",
        "RemoveDuplicates counts every Pod of an owner: protection and fit limit who goes, not who"
        " is counted.",
    )
    DUPLICATES_ROOM = (
        "duplicatesRoom",
        "RemoveDuplicates spreads Pods over cordoned and full nodes too.",
        "RemoveDuplicates leaves cordoned nodes out, and evicts no more Pods than the nodes with"
        " fewer of them have room for.",
    )
    ANTI_AFFINITY_SCOPE = (
        "antiAffinityScope",
        "Anti-affinity ignores namespaceSelector, takes Pods of one name in two namespaces for the"
        " same, and Pods of one node for together whatever its labels.",
        "Anti-affinity honours namespaceSelector, tells a Pod from others by its UID, and knows no"
        " domain of a node without the topology key.",
    )
    ANTI_AFFINITY_FEWEST = (
        "antiAffinityFewest",
        "Of Pods that must not be together the first listed goes first, node by node; one that"
        " terminates is still in the way.",
        "Over all nodes the lowest priority goes first, and within it the Pod whose leaving ends"
        " most conflicts; one that terminates is no longer in the way.",
    )
    PREFERRED_AFFINITY_FITS = (
        "preferredAffinityFits",
        "Preferred affinity compares with every node of the cycle, full and tainted ones too.",
        "Preferred affinity compares with nodes that would take the Pod.",
    )
    NODE_FIT_ANTI_AFFINITY = (
        "nodeFitAntiAffinity",
        "Node fit reads only the Pod's own anti-affinity, and only on the very node.",
        "Node fit reads the anti-affinity of the Pod and of those already there, over the whole"
        " topology domain.",
    )
    NODE_FIT_POD_AFFINITY = (
        "nodeFitPodAffinity",
        "Node fit does not read Pod affinity.",
        "A node without the Pods near it that the Pod's required Pod affinity asks for does not"
        " fit.",
    )
    NODE_FIT_SPREAD = (
        "nodeFitSpread",
        "Node fit does not read topology spread constraints.",
        "A node where the Pod would break a hard topology spread constraint of its own does not"
        " fit.",
    )
    NODE_FIT_VOLUMES = (
        "nodeFitVolumes",
        "Node fit does not read volumes.",
        "A node that the Pod's bound volumes cannot be reached from does not fit.",
    )
    NODE_FIT_HOST_PORTS = (
        "nodeFitHostPorts",
        "Node fit does not read host ports.",
        "A node where a host port of the Pod is taken does not fit.",
    )
    BOOKING = (
        "booking",
        "Several Pods may be evicted for the same room on a node.",
        "Room promised to earlier victims counts as taken until their replacements are bound.",
    )
    CLAIMED_NODES = (
        "claimedNodes",
        "Nodes that another drainer has claimed are treated like others.",
        "Nodes that another drainer has claimed (cluster-autoscaler, Karpenter) are left to it.",
    )
    EXIT_CODES = (
        "exitCodes",
        "A pass in which evictions or plugins failed ends with exit code 0.",
        "A pass in which evictions or plugins failed ends with an exit code that says so.",
    )


Corrections = frozenset[Correction]
"""The corrections in force."""
ALL: Corrections = frozenset(Correction)
NONE: Corrections = frozenset()


def parse_corrections(setting: object) -> Corrections:
    """Read `all`, `none`, one name, names with commas between (as a flag has them), or a list.

    Raises:
        ValueError: a name is unknown, or the setting is of another type.
    """
    names = [part.strip() for part in setting.split(",")] if isinstance(setting, str) else setting
    if names == ["all"]:
        return ALL
    if names == ["none"]:
        return NONE
    if not isinstance(names, Iterable) or isinstance(names, Mapping):
        raise ValueError(f"must be all, none or a list of names, not {brief(setting)}")  # noqa: TRY004
    return frozenset(_correction(name) for name in names)


_BY_NAME: Mapping[object, Correction] = {correction.value: correction for correction in Correction}


def _correction(name: object) -> Correction:
    if isinstance(name, str) and name in _BY_NAME:
        return _BY_NAME[name]
    hint = close_match(str(name), Correction) if isinstance(name, str) else ""
    known = f"known are {', '.join(Correction)}"
    raise ValueError(f"unknown correction {brief(name)}; {hint or known}")
