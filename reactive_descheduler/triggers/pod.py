"""What changed on a Pod, seen for itself and from the node that it is on.

Templates are interned, so most comparisons end at their identity.
"""

from __future__ import annotations

from collections.abc import Callable

from reactive_descheduler.api.changes import Action
from reactive_descheduler.api.pod import ContainerStatus, Pod, PodTemplate


def presence(old: Pod | None, new: Pod | None) -> Action:
    if old is None:
        return Action.POD_ADDED
    return Action.POD_DELETED if new is None else Action(0)


def bound(old: Pod | None, new: Pod | None) -> Action:
    before = old.node_name if old else ""
    return Action.POD_BOUND if new and new.node_name not in ("", before) else Action(0)


def gone(old: Pod | None, new: Pod | None) -> Action:
    if old is None:
        return Action(0)
    freed = new is None or (old.active and not new.active)
    # Only an object that became opaque can lose its node.
    left = new is not None and old.node_name not in ("", new.node_name)
    return Action.POD_GONE if freed or left else Action(0)


def labels(old: Pod | None, new: Pod | None) -> Action:
    differ = _templates_differ(old, new, lambda template: template.labels)
    return Action.POD_LABELS if differ else Action(0)


def owners(old: Pod | None, new: Pod | None) -> Action:
    differ = _templates_differ(old, new, lambda template: template.owners)
    return Action.POD_OWNERS if differ else Action(0)


def tolerations(old: Pod | None, new: Pod | None) -> Action:
    differ = _templates_differ(old, new, lambda template: template.tolerations)
    return Action.POD_TOLERATIONS if differ else Action(0)


def resources(old: Pod | None, new: Pod | None) -> Action:
    differ = _templates_differ(old, new, lambda template: (template.requests, template.requested))
    return Action.POD_RESOURCES if differ else Action(0)


def spec(old: Pod | None, new: Pod | None) -> Action:
    differ = _templates_differ(old, new, _other_spec)
    return Action.POD_SPEC if differ else Action(0)


def annotated(old: Pod | None, new: Pod | None) -> Action:
    differ = old and new and old.annotations != new.annotations
    return Action.POD_ANNOTATIONS if differ else Action(0)


def phase(old: Pod | None, new: Pod | None) -> Action:
    differ = old and new and old.phase != new.phase
    return Action.POD_PHASE if differ else Action(0)


def states(old: Pod | None, new: Pod | None) -> Action:
    differ = old and new and (old.reason, _states(old)) != (new.reason, _states(new))
    return Action.POD_STATES if differ else Action(0)


def restarts(old: Pod | None, new: Pod | None) -> Action:
    differ = old and new and _restarts(old) != _restarts(new)
    return Action.POD_RESTARTS if differ else Action(0)


def conditions(old: Pod | None, new: Pod | None) -> Action:
    differ = old and new and old.conditions != new.conditions
    return Action.POD_CONDITIONS if differ else Action(0)


def started(old: Pod | None, new: Pod | None) -> Action:
    differ = old and new and old.started != new.started
    return Action.POD_STARTED if differ else Action(0)


def ready(old: Pod | None, new: Pod | None) -> Action:
    differ = old and new and old.ready != new.ready
    return Action.POD_READY if differ else Action(0)


def terminating(old: Pod | None, new: Pod | None) -> Action:
    differ = old and new and (old.deleted is None) != (new.deleted is None)
    return Action.POD_TERMINATING if differ else Action(0)


def opaque(old: Pod | None, new: Pod | None) -> Action:
    """One that comes or goes unreadable counts too: to its namespace, not to itself."""
    differ = (old.opaque if old else "") != (new.opaque if new else "")
    return Action.POD_OPAQUE if differ else Action(0)


def _templates_differ(
    old: Pod | None, new: Pod | None, part: Callable[[PodTemplate], object]
) -> bool:
    if old is None or new is None or old.template is new.template:
        return False
    return part(old.template) != part(new.template)


def _other_spec(template: PodTemplate) -> object:
    return (
        template.node_selector,
        template.required_node_affinity,
        template.preferred_node_affinity,
        template.pod_affinity,
        template.anti_affinity,
        template.spread_constraints,
        template.priority,
        template.computed_qos,
        template.images,
        template.local_storage,
        template.claims,
        template.resource_claims,
        template.host_ports,
    )


def _all_containers(pod: Pod) -> tuple[tuple[ContainerStatus, ...], ...]:
    return (pod.containers, pod.init_containers, pod.ephemeral_containers)


def _states(pod: Pod) -> list[list[tuple[str, str, int | None]]]:
    return [
        [(each.waiting, each.terminated, each.exit_code) for each in group]
        for group in _all_containers(pod)
    ]


def _restarts(pod: Pod) -> list[list[int]]:
    return [[each.restarts for each in group] for group in _all_containers(pod)]


EXTRACTORS: tuple[Callable[[Pod | None, Pod | None], Action], ...] = (
    presence,
    bound,
    gone,
    labels,
    owners,
    tolerations,
    resources,
    spec,
    annotated,
    phase,
    states,
    restarts,
    conditions,
    started,
    ready,
    terminating,
    opaque,
)
