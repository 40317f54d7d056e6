"""Defaults and checks of Deployments and the like, and of the Pod specs that they and Pods have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactive_descheduler.sandbox.apiserver.selectors import matches_labels
from reactive_descheduler.sandbox.apiserver.status import invalid
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    attach,
    labels,
    lookup,
    mapping,
    name_of,
    objects,
    text,
    uid_of,
)

if TYPE_CHECKING:
    from reactive_descheduler.sandbox.apiserver.resources import Resource

_DEFAULTS: dict[str, JsonObject] = {
    "deployments": {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
        "strategy": {"type": "RollingUpdate"},
    },
    "replicasets": {"replicas": 1},
    "daemonsets": {
        "revisionHistoryLimit": 10,
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0},
        },
    },
    "statefulsets": {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "podManagementPolicy": "OrderedReady",
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
    },
    "jobs": {
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "suspend": False,
        "manualSelector": False,
        "podReplacementPolicy": "TerminatingOrFailed",
    },
}
_JOB_UID_LABELS = ("batch.kubernetes.io/controller-uid", "controller-uid")
_JOB_NAME_LABELS = ("batch.kubernetes.io/job-name", "job-name")
_POD_DEFAULTS: JsonObject = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
}


def is_workload(resource: Resource) -> bool:
    return resource.plural in _DEFAULTS


def default_pod_spec(spec: JsonObject) -> None:
    """What a Pod and a Pod template alike get where it is missing."""
    for field, value in _POD_DEFAULTS.items():
        spec.setdefault(field, value)
    spec.setdefault("securityContext", {})
    for container in (*objects(spec, "containers"), *objects(spec, "initContainers")):
        tag = text(container, "image").rpartition("/")[2].partition(":")[2]
        container.setdefault("resources", {})
        always = tag in ("", "latest") and "@" not in text(container, "image")
        container.setdefault("imagePullPolicy", "Always" if always else "IfNotPresent")
        container.setdefault("terminationMessagePath", "/dev/termination-log")
        container.setdefault("terminationMessagePolicy", "File")


def default_workload(resource: Resource, document: JsonObject) -> None:
    """Fill in what the API types default; done at each write, as clients may leave it out."""
    spec = attach(document, "spec")
    for field, value in _DEFAULTS[resource.plural].items():
        if isinstance(value, dict):
            below = attach(spec, field)
            for name, default in value.items():
                below.setdefault(name, default)
        else:
            spec.setdefault(field, value)
    if resource.plural == "deployments" and text(spec, "strategy", "type") == "RollingUpdate":
        rolling = attach(spec, "strategy", "rollingUpdate")
        rolling.setdefault("maxSurge", "25%")
        rolling.setdefault("maxUnavailable", "25%")
    if resource.plural == "jobs" and "completions" not in spec:
        if "parallelism" not in spec:
            spec["completions"] = 1
        spec.setdefault("parallelism", 1)
    default_pod_spec(attach(spec, "template", "spec"))


def check_workload(resource: Resource, document: JsonObject) -> None:
    """Raises ApiError 422 for a selector that is missing or that its own Pods would not match."""
    name, spec = name_of(document), mapping(document, "spec")
    if resource.plural == "jobs":
        if text(spec, "template", "spec", "restartPolicy") not in ("OnFailure", "Never"):
            why = 'Required value: valid values: "OnFailure", "Never"'
            raise invalid(resource, name, "spec.template.spec.restartPolicy", why)
        return
    selector = mapping(spec, "selector")
    if not selector:
        raise invalid(resource, name, "spec.selector", "Required value")
    template = mapping(spec, "template")
    if not matches_labels(selector, labels(template)):
        why = "Invalid value: `selector` does not match template `labels`"
        raise invalid(resource, name, "spec.template.metadata.labels", why)


def check_fixed(resource: Resource, old: JsonObject, new: JsonObject) -> None:
    """Raises ApiError 422 if a write changes what never may: the selector, a Job's template."""
    fixed = ("selector", "template", "completions") if resource.plural == "jobs" else ("selector",)
    for field in fixed:
        if lookup(old, "spec", field) != lookup(new, "spec", field):
            why = "Invalid value: field is immutable"
            raise invalid(resource, name_of(old), f"spec.{field}", why)


def label_job(job: JsonObject) -> None:
    """Give a new Job, which has its uid by now, the selector and labels by which it finds Pods."""
    spec = attach(job, "spec")
    if spec.get("manualSelector") is True:
        return
    marks = dict.fromkeys(_JOB_UID_LABELS, uid_of(job))
    attach(spec, "selector", "matchLabels")[_JOB_UID_LABELS[0]] = uid_of(job)
    marks |= dict.fromkeys(_JOB_NAME_LABELS, name_of(job))
    attach(spec, "template", "metadata", "labels").update(marks)
    if not labels(job):
        attach(job, "metadata")["labels"] = dict(labels(mapping(spec, "template")))
