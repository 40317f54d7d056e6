"""Small clusters and policies on which corrections differ, and one full pass over them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from reactive_descheduler.api.errors import PolicyError
from reactive_descheduler.app.booking import rooms_of
from reactive_descheduler.app.pass_driver import Refusal, run_pass
from reactive_descheduler.app.policy import in_tree_registry, pass_limits
from reactive_descheduler.app.snapshot import Manifest, snapshot_of
from reactive_descheduler.config.corrections import Correction, Corrections
from reactive_descheduler.config.load import load_policy
from reactive_descheduler.framework.cycle import CycleNodes
from reactive_descheduler.strategies import PLUGINS
from tests.builders import make_node, taint

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
TAINTS = "RemovePodsViolatingNodeTaints"
RESTARTS = "RemovePodsHavingTooManyRestarts"
AFFINITY = "RemovePodsViolatingNodeAffinity"
DUPLICATES = "RemoveDuplicates"
ANTI_AFFINITY = "RemovePodsViolatingInterPodAntiAffinity"
SPREAD = "RemovePodsViolatingTopologySpreadConstraint"
LOW = "LowNodeUtilization"
HIGH = "HighNodeUtilization"


def policy(
    strategies: dict[str, dict[str, object] | None],
    *,
    evictor: dict[str, object] | None = None,
    **extra: object,
) -> dict[str, object]:
    configured: list[dict[str, object]] = [
        {"name": name, "args": args} for name, args in strategies.items() if args is not None
    ]
    if evictor is not None:
        configured.append({"name": "DefaultEvictor", "args": evictor})
    enabled: dict[str, list[str]] = {}
    for name in strategies:
        (phase,) = PLUGINS[name].extension_points
        enabled.setdefault(phase, []).append(name)
    profile = {
        "name": "p",
        "pluginConfig": configured,
        "plugins": {phase: {"enabled": names} for phase, names in enabled.items()},
    }
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "profiles": [profile],
        **extra,
    }


TAINTED = make_node("n1", taints=[taint("gone")])
CORDONED = make_node("n1", taints=[taint("node.kubernetes.io/unschedulable")], unschedulable=True)
OTHER = make_node("n2")
ZONED = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
            ]
        }
    }
}
PREFERRED_B: dict[str, object] = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 1,
                "preference": {
                    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]
                },
            }
        ]
    }
}


def kept_away(app: str, **term: object) -> dict[str, object]:
    """Return the affinity of a Pod that keeps Pods of an app off its node."""
    return {"podAntiAffinity": _required(app, term)}


def kept_near(app: str, **term: object) -> dict[str, object]:
    """Return the affinity of a Pod that has to be on a node with Pods of an app."""
    return {"podAffinity": _required(app, term)}


def _required(app: str, term: Mapping[str, object]) -> dict[str, object]:
    full = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": app}},
        **term,
    }
    return {"requiredDuringSchedulingIgnoredDuringExecution": [full]}


PLACE = "topology.kubernetes.io/zone"
CLAIMING = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
LISTENING = {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]}
HARD_SPREAD = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
ZONES = [make_node(f"{zone}1", labels={"zone": zone}) for zone in "abc"]
OVER_ZONES = {
    "topologyKey": "zone",
    "maxSkew": 1,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
EVICT = "descheduler.alpha.kubernetes.io/evict"
REFUSED = "refused"


def asked(
    document: dict[str, object],
    objects: Sequence[Manifest],
    corrections: Corrections,
    *,
    granted: bool,
) -> list[str] | str:
    """Return whom a full pass asks for.

    `granted`: whether the API server grants what is asked for; else it refuses every request.
    """
    try:
        loaded = load_policy(
            json.dumps(document), source="p.yaml", plugins=PLUGINS, corrections=corrections
        )
    except PolicyError:
        return REFUSED
    snapshot = snapshot_of(objects, source="objects")
    nodes = {node.name: node for node in snapshot.lister.nodes()}
    report = run_pass(
        in_tree_registry().profiles(loaded, priority_classes={}),
        store=snapshot.store,
        nodes=CycleNodes(loaded.node_selector, nodes),
        now=NOW,
        limits=pass_limits(loaded),
        ask=lambda _: None if granted else Refusal(429, "its budget is used up"),
        one_offer=Correction.ONE_OFFER_PER_PASS in corrections,
        rooms=rooms_of(loaded),
    )
    if granted:
        return [each.pod.name for each in report.evicted]
    return [each.candidate.pod.name for each in report.refused]
