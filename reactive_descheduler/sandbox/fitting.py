"""Whether a Pod may run on a node: the sandbox's own reading of the scheduler's rules.

Written apart from the predicates that the descheduler uses, so that one is a check on the other.
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING

from reactive_descheduler.sandbox.apiserver.selectors import matches_labels
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    labels,
    lookup,
    mapping,
    name_of,
    namespace_of,
    objects,
    string_map,
    strings,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_UNITS = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"),
    "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40),
}  # fmt: skip


@lru_cache(maxsize=1_024)
def quantity(value: object) -> Decimal:
    """A Kubernetes quantity such as `500m`, `1.5Gi` or 2."""
    source = str(value)
    for length in (2, 1):
        unit = _UNITS.get(source[-length:])
        if unit is not None:
            return Decimal(source[:-length]) * unit
    return Decimal(source)


def requests_of(pod: JsonObject) -> dict[str, Decimal]:
    """What the Pod asks of its node: the sum of its containers or the largest init one; a place."""
    wanted: dict[str, Decimal] = {"pods": Decimal(1)}
    for container in objects(pod, "spec", "containers"):
        for name, value in mapping(container, "resources", "requests").items():
            wanted[name] = wanted.get(name, Decimal(0)) + quantity(value)
    for container in objects(pod, "spec", "initContainers"):
        for name, value in mapping(container, "resources", "requests").items():
            wanted[name] = max(wanted.get(name, Decimal(0)), quantity(value))
    return wanted


def has_room(wanted: Mapping[str, Decimal], node: JsonObject, taken: Mapping[str, Decimal]) -> bool:
    """Whether requests fit beside what is taken of the node's allocatable."""
    allocatable = mapping(node, "status", "allocatable")
    return all(
        amount <= quantity(allocatable.get(name, 0)) - taken.get(name, 0)
        for name, amount in wanted.items()
        if amount
    )


def tolerates(pod: JsonObject, taint: JsonObject) -> bool:
    """Whether one of the Pod's tolerations matches the taint."""
    for toleration in objects(pod, "spec", "tolerations"):
        if text(toleration, "effect") not in ("", text(taint, "effect")):
            continue
        key, operator = text(toleration, "key"), text(toleration, "operator") or "Equal"
        if key not in ("", text(taint, "key")):
            continue
        if operator == "Exists":
            return True
        if key and text(toleration, "value") == text(taint, "value"):
            return True
    return False


def repelling_taints(pod: JsonObject, node: JsonObject, *effects: str) -> list[JsonObject]:
    """The node's taints of these effects that the Pod does not tolerate."""
    return [
        taint
        for taint in objects(node, "spec", "taints")
        if text(taint, "effect") in effects and not tolerates(pod, taint)
    ]


def is_attracted(pod: JsonObject, node: JsonObject) -> bool:
    """Whether the node selector and the required node affinity match."""
    values = labels(node)
    wanted = string_map(pod, "spec", "nodeSelector")
    if any(values.get(key) != value for key, value in wanted.items()):
        return False
    path = ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    required = lookup(pod, *path)
    if required is None:
        return True
    return any(_term(term, node) for term in objects(required, "nodeSelectorTerms"))


def _term(term: JsonObject, node: JsonObject) -> bool:
    by_label, by_field = objects(term, "matchExpressions"), objects(term, "matchFields")
    if not by_label and not by_field:
        return False
    fields = {"metadata.name": name_of(node)}
    return all(_requirement(entry, labels(node)) for entry in by_label) and all(
        _requirement(entry, fields) for entry in by_field
    )


def _requirement(entry: JsonObject, values: dict[str, str]) -> bool:
    operator, present = text(entry, "operator"), values.get(text(entry, "key"))
    if operator not in ("Gt", "Lt"):
        return matches_labels({"matchExpressions": [entry]}, values)
    bounds = strings(entry, "values")
    if present is None or len(bounds) != 1:
        return False
    try:
        difference = int(present) - int(bounds[0])
    except ValueError:
        return False
    return difference > 0 if operator == "Gt" else difference < 0


def is_apart(
    pod: JsonObject, node: JsonObject, others: Iterable[tuple[JsonObject, JsonObject]]
) -> bool:
    """Whether required anti-affinity holds, the Pod's own and that of the others.

    `others` are Pods with the nodes that they are on.
    """
    own = _anti_affinity(pod)
    for other, other_node in others:
        if any(_repels(term, pod, other, node, other_node) for term in own):
            return False
        if any(_repels(term, other, pod, node, other_node) for term in _anti_affinity(other)):
            return False
    return True


def has_anti_affinity(pod: JsonObject) -> bool:
    """Whether the Pod has required terms of its own."""
    return bool(_anti_affinity(pod))


def has_affinity(pod: JsonObject) -> bool:
    """Whether the Pod has to be near others."""
    return bool(_affinity(pod))


def is_near(
    pod: JsonObject, node: JsonObject, others: Iterable[tuple[JsonObject, JsonObject]]
) -> bool:
    """Whether required Pod affinity holds: in each domain someone whom all terms choose.

    `others` are Pods with the nodes that they are on. A Pod that its own terms choose may be the
    first, where the node is in a domain of each term.
    """
    terms = _affinity(pod)
    if not terms:
        return True
    keys = [text(term, "topologyKey") for term in terms]
    if any(key not in labels(node) for key in keys):
        return False
    chosen = [
        labels(place)
        for other, place in others
        if all(_chooses(term, pod, other) for term in terms)
        and any(key in labels(place) for key in keys)
    ]
    if not chosen and all(_chooses(term, pod, pod) for term in terms):
        return True
    return all(any(place.get(key) == labels(node)[key] for place in chosen) for key in keys)


def _anti_affinity(pod: JsonObject) -> list[JsonObject]:
    return _required(pod, "podAntiAffinity")


def _affinity(pod: JsonObject) -> list[JsonObject]:
    return _required(pod, "podAffinity")


def _required(pod: JsonObject, kind: str) -> list[JsonObject]:
    return objects(pod, "spec", "affinity", kind, "requiredDuringSchedulingIgnoredDuringExecution")


def _repels(
    term: JsonObject,
    holder: JsonObject,
    other: JsonObject,
    node: JsonObject,
    other_node: JsonObject,
) -> bool:
    """Whether a term of the holder's forbids the other in its topology domain."""
    key = text(term, "topologyKey")
    domain = labels(node).get(key)
    if domain is None or labels(other_node).get(key) != domain:
        return False
    return _chooses(term, holder, other)


def _chooses(term: JsonObject, holder: JsonObject, other: JsonObject) -> bool:
    """Whether a term of the holder's means the other; `namespaceSelector` is not read."""
    namespaces = strings(term, "namespaces") or [namespace_of(holder)]
    if namespace_of(other) not in namespaces:
        return False
    return matches_labels(lookup(term, "labelSelector"), labels(other))


def admits(node: JsonObject, pod: JsonObject) -> bool:
    """Whether the node would take the Pod, were it empty: taints, cordon, selectors, affinity."""
    return (
        not repelling_taints(pod, node, "NoSchedule", "NoExecute")
        and _is_open(pod, node)
        and is_attracted(pod, node)
    )


def _is_open(pod: JsonObject, node: JsonObject) -> bool:
    """A cordon holds before its taint stands, save for Pods that tolerate that taint."""
    if lookup(node, "spec", "unschedulable") is not True:
        return True
    return tolerates(pod, {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
