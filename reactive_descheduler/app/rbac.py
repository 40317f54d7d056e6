"""What a policy needs to be allowed, as RBAC objects: each rule with its reason, and nothing else.

Cluster-wide, since the cache holds the whole cluster, but for the Secret of a token. What the
program asks for stands in `client/`; an end-to-end test runs it with these rules, and without one
of them at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from reactive_descheduler.app.policy import (
    ask_for_usage,
    name_priority_classes,
    needed_kinds,
    read_claims,
    read_volumes,
    wanted_usage,
)
from reactive_descheduler.cache.usage import METRICS_SERVER, PROMETHEUS
from reactive_descheduler.client.resources import METRICS_GROUP, RESOURCES
from reactive_descheduler.config.loaded import LoadedPolicy

RBAC_GROUP = "rbac.authorization.k8s.io"


class Rule(NamedTuple):
    """One permission."""

    group: str
    """Of the API; empty for the core."""
    resource: str
    verbs: tuple[str, ...]
    why: str
    namespace: str = ""
    """Where it holds; empty for everywhere."""
    name: str = ""
    """Of the one object that it is about; empty for all."""
    asked_by: tuple[str, ...] = ()
    """Paths in the policy of what needs it; empty for what every policy needs."""

    @property
    def reason(self) -> str:
        """Return why it is needed, and by which settings."""
        return f"{self.why}: {', '.join(self.asked_by)}" if self.asked_by else self.why

    def document(self) -> dict[str, object]:
        """Return the rule as a role lists it."""
        named: dict[str, object] = {"resourceNames": [self.name]} if self.name else {}
        return {
            "apiGroups": [self.group],
            "resources": [self.resource],
            **named,
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
    """Return the rules; that for evictions stands first, so that an overlay finds it, and one that
    holds in a namespace only stands last."""
    rules = [] if dry_run else [EVICT]
    volumes = tuple(read_volumes(policy))
    asked_by = {"PersistentVolumeClaim": (*read_claims(policy), *volumes)}
    asked_by["PersistentVolume"] = volumes
    for kind in needed_kinds(policy):
        rule = _rule(kind, "list", "watch", why=WHY_WATCHED[kind])
        rules.append(rule._replace(asked_by=asked_by.get(kind, ())))
    if by_name := tuple(name_priority_classes(policy)):
        rule = _rule("PriorityClass", "list", why="to read, once, the value that a name has")
        rules.append(rule._replace(asked_by=by_name))
    rules += _usage(policy)
    return (*rules, LOOK, TELL, *_token(policy))


def cluster_role(rules: Iterable[Rule], *, name: str) -> dict[str, object]:
    """Return the rules that hold everywhere."""
    return _object("ClusterRole", name) | {
        "rules": [r.document() for r in rules if not r.namespace]
    }


def cluster_role_binding(*, name: str, namespace: str) -> dict[str, object]:
    """Return what gives the ClusterRole to the service account of the same name."""
    return _object("ClusterRoleBinding", name) | _bound("ClusterRole", name, namespace)


def roles(rules: Iterable[Rule], *, name: str, namespace: str) -> Iterator[dict[str, object]]:
    """Yield a Role for each rule that holds in one namespace, and its binding to the account that
    `namespace` has."""
    for rule in rules:
        if rule.namespace:
            metadata = {"metadata": {"name": name, "namespace": rule.namespace}}
            yield _object("Role", name) | metadata | {"rules": [rule.document()]}
            yield _object("RoleBinding", name) | metadata | _bound("Role", name, namespace)


def _usage(policy: LoadedPolicy) -> Iterator[Rule]:
    if not wanted_usage(policy).metrics_server:
        return
    for plural in ("nodes", "pods"):
        why = f"to ask a metrics-server what {plural} use"
        asked_by = tuple(ask_for_usage(policy, METRICS_SERVER))
        yield Rule(METRICS_GROUP, plural, ("list",), why, asked_by=asked_by)


def _token(policy: LoadedPolicy) -> Iterator[Rule]:
    prometheus = wanted_usage(policy).prometheus
    token = prometheus.auth_token if prometheus is not None else None
    if token is not None and (secret := token.secret_reference) is not None:
        why = "to read the token for Prometheus"
        asked_by = tuple(ask_for_usage(policy, PROMETHEUS))
        yield Rule("", "secrets", ("get",), why, secret.namespace, secret.name, asked_by)


def _bound(kind: str, name: str, namespace: str) -> dict[str, object]:
    return {
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }


def _rule(kind: str, *verbs: str, why: str) -> Rule:
    found = RESOURCES[kind]
    return Rule(found.group, found.plural, verbs, why)


def _object(kind: str, name: str) -> dict[str, object]:
    return {"apiVersion": f"{RBAC_GROUP}/v1", "kind": kind, "metadata": {"name": name}}
