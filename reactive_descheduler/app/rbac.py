"""What a policy needs to be allowed, as RBAC objects: each rule with its reason, and nothing else.

Cluster-wide, since the cache holds the whole cluster. What the program asks for stands in
`client/`; an end-to-end test runs it with these rules, and without one of them at a time.
"""

from __future__ import annotations

from typing import NamedTuple

from reactive_descheduler.app.policy import needed_kinds, needs_priority_classes
from reactive_descheduler.client.resources import RESOURCES
from reactive_descheduler.config.loaded import LoadedPolicy

RBAC_GROUP = "rbac.authorization.k8s.io"


class Rule(NamedTuple):
    """One permission."""

    group: str
    """Of the API; empty for the core."""
    resource: str
    verbs: tuple[str, ...]
    why: str

    def document(self) -> dict[str, object]:
        """Return the rule as a ClusterRole lists it."""
        return {
            "apiGroups": [self.group],
            "resources": [self.resource],
            "verbs": list(self.verbs),
        }


WHY_WATCHED = {
    "Node": "to see their taints, labels and room",
    "Pod": "to see who is where, and what becomes of the evicted",
    "Namespace": "to match their labels",
    "PodDisruptionBudget": "to ask only for evictions that a budget allows",
    "PersistentVolumeClaim": "to see what storage Pods use",
    "PersistentVolume": "to see from which nodes it can be reached",
}
EVICT = Rule("", "pods/eviction", ("create",), "to evict; a dry run goes without")
LOOK = Rule("", "pods", ("get",), "to look up a Pod when the answer to its eviction was lost")
TELL = Rule("events.k8s.io", "events", ("create", "patch"), "to tell what was done to a Pod")


def needed_rules(policy: LoadedPolicy, *, dry_run: bool = False) -> tuple[Rule, ...]:
    """Return the rules; that for evictions stands first, so that an overlay finds it."""
    rules = [] if dry_run else [EVICT]
    rules += [_rule(kind, "list", "watch", why=WHY_WATCHED[kind]) for kind in needed_kinds(policy)]
    if needs_priority_classes(policy):
        rules.append(_rule("PriorityClass", "list", why="to read, once, the value that a name has"))
    return (*rules, LOOK, TELL)


def cluster_role(rules: tuple[Rule, ...], *, name: str) -> dict[str, object]:
    return _object("ClusterRole", name) | {"rules": [rule.document() for rule in rules]}


def cluster_role_binding(*, name: str, namespace: str) -> dict[str, object]:
    """Return what gives the ClusterRole to the service account of the same name."""
    return _object("ClusterRoleBinding", name) | {
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }


def _rule(kind: str, *verbs: str, why: str) -> Rule:
    found = RESOURCES[kind]
    return Rule(found.group, found.plural, verbs, why)


def _object(kind: str, name: str) -> dict[str, object]:
    return {"apiVersion": f"{RBAC_GROUP}/v1", "kind": kind, "metadata": {"name": name}}
