"""Says in words what would wake a key, and what became of it: for people who read `plan`."""

from __future__ import annotations

from collections.abc import Mapping

from reactive_descheduler.api.changes import Action, At, Never, Wake
from reactive_descheduler.api.meta import Ref

HAPPENINGS: Mapping[Action, str] = {
    Action.NODE_ADDED: "is added",
    Action.NODE_REMOVED: "is removed",
    Action.NODE_TAINTS: "gets other taints",
    Action.NODE_LABELS: "gets other labels",
    Action.NODE_ALLOCATABLE: "gets other allocatable resources",
    Action.NODE_SCHEDULABLE: "is cordoned or uncordoned",
    Action.NODE_READY: "becomes ready or not ready",
    Action.NODE_OPAQUE: "becomes readable or unreadable",
    Action.POD_ADDED: "is added",
    Action.POD_BOUND: "is bound to a node",
    Action.POD_LABELS: "gets other labels",
    Action.POD_ANNOTATIONS: "gets other annotations",
    Action.POD_OWNERS: "gets other owners",
    Action.POD_PHASE: "changes its phase",
    Action.POD_STATES: "changes a container's state",
    Action.POD_RESTARTS: "restarts a container",
    Action.POD_CONDITIONS: "changes a condition",
    Action.POD_STARTED: "starts",
    Action.POD_TOLERATIONS: "gets other tolerations",
    Action.POD_RESOURCES: "gets other resources",
    Action.POD_SPEC: "gets another spec",
    Action.POD_READY: "becomes ready or not ready",
    Action.POD_TERMINATING: "starts to terminate",
    Action.POD_GONE: "finishes or is deleted",
    Action.POD_DELETED: "is deleted",
    Action.POD_OPAQUE: "becomes readable or unreadable",
    Action.NAMESPACE_LABELS: "comes, goes or gets other labels",
    Action.BUDGET_SELECTION: "comes, goes or selects other Pods",
    Action.BUDGET_STATUS: "gets another status",
    Action.BUDGET_ROSE: "allows more disruptions",
    Action.CLAIM: "comes, goes or gets another storage class or volume",
    Action.VOLUME: "comes, goes or can be reached from other nodes",
    Action.LIMIT_FREED: "has room again",
    Action.LANE_FREE: "has its request answered",
    Action.BUCKET_FILLED: "fills up",
    Action.STREAM_FRESH: "speaks again",
    Action.REPLACED: "is replaced",
    Action.USAGE: "is measured",
    Action.CAUSE_BROKE: "ends its cause for a moment",
}
"""What each action is, as what its object does."""

_SUBJECTS: Mapping[str, tuple[str, str]] = {
    "NODE": ("Node", "node"),
    "POD": ("Pod", "Pod"),
    "NAMESPACE": ("Namespace", "namespace"),
    "BUDGET": ("PodDisruptionBudget", "budget"),
    "CLAIM": ("PersistentVolumeClaim", "claim"),
    "VOLUME": ("PersistentVolume", "volume"),
    "LIMIT": ("", "limit"),
    "LANE": ("PodDisruptionBudget", "budget"),
    "BUCKET": ("", "token bucket"),
    "STREAM": ("", "watch stream"),
    "REPLACED": ("", "evicted Pod"),
    "USAGE": ("", "usage"),
    "CAUSE": ("", "change"),
}
"""Kind and word for what an action happens to, by the first part of the action's name."""


def describe_wake(wake: Wake) -> str:
    """Return what has to happen, as the rest of a sentence that starts with "look again when"."""
    if isinstance(wake, At):
        return f"it is {wake.time:%Y-%m-%dT%H:%M:%SZ}"
    if isinstance(wake, Never):
        return "never: only another Pod in its place can go"
    groups: dict[str, list[str]] = {}
    for action in wake.action:
        groups.setdefault(_subject(action, wake.ref), []).append(HAPPENINGS[action])
    told = ", or ".join(f"{subject} {_either(what)}" for subject, what in groups.items())
    return f"{told}, and could take the Pod then" if wake.shape is not None else told


def describe_action(action: Action) -> str:
    """Return an action, or several, without an object: `node gets other taints`."""
    groups: dict[str, list[str]] = {}
    for each in action:
        groups.setdefault(_word(each), []).append(HAPPENINGS[each])
    return "; ".join(f"{word} {_either(what)}" for word, what in groups.items())


def describe_ref(ref: Ref) -> str:
    """Return an object as people write it: `Pod default/web-1`."""
    kind, namespace, name = ref
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def _subject(action: Action, ref: Ref | None) -> str:
    kind, word = _SUBJECTS[str(action.name).partition("_")[0]]
    if ref is None:
        return f"any {word}" if kind else f"the {word}"
    if ref[0] == kind:
        return describe_ref(ref)
    if ref[0] == "Owner":
        return f"a {word} of its owner"
    if ref[0] == "AntiAffinity":
        whom = f"namespace {ref[2]}" if ref[2] else "namespaces by their labels"
        return f"a {word} with anti-affinity that looks into {whom}"
    place = {"Node": "on node", "Namespace": "in namespace"}.get(ref[0], "of")
    return f"a {word} {place} {ref[2]}"


def _word(action: Action) -> str:
    return _SUBJECTS[str(action.name).partition("_")[0]][1]


def _either(parts: list[str]) -> str:
    parts = list(dict.fromkeys(parts))
    if len(parts) == 1:
        return parts[0]
    last = ", or" if any(" or " in part for part in parts) else " or"
    return f"{', '.join(parts[:-1])}{last} {parts[-1]}"
