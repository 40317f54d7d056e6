"""Which resources the embedded API server serves, as data.

The same table drives routing, discovery, storage and the sandbox's own client.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Resource:
    """One served resource.

    `has_status` separates spec from status: the main endpoint keeps the stored status, and
    `/status` changes nothing else. `has_generation` counts changes of the spec.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    has_status: bool = False
    has_generation: bool = False
    short_names: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()

    @cached_property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def root(self) -> str:
        """The path of the group and version, without a slash at the end."""
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"

    @cached_property
    def qualified(self) -> str:
        """The name that error messages use: `deployments.apps`, `pods`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of a collection, an object or a subresource."""
        parts = [self.root]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/".join(parts)


RESOURCES: tuple[Resource, ...] = (
    Resource("", "v1", "nodes", "Node", False, has_status=True, short_names=("no",)),
    Resource(
        "", "v1", "pods", "Pod", has_status=True, has_generation=True, short_names=("po",),
        subresources=("binding", "eviction"),
    ),
    Resource("", "v1", "namespaces", "Namespace", False, has_status=True, short_names=("ns",)),
    Resource("", "v1", "events", "Event", short_names=("ev",)),
    Resource(
        "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", has_status=True,
        short_names=("pvc",),
    ),
    Resource(
        "", "v1", "persistentvolumes", "PersistentVolume", False, has_status=True,
        short_names=("pv",),
    ),
    Resource("", "v1", "configmaps", "ConfigMap", short_names=("cm",)),
    Resource("", "v1", "secrets", "Secret"),
    Resource("", "v1", "serviceaccounts", "ServiceAccount", short_names=("sa",)),
    Resource("", "v1", "services", "Service", has_status=True, short_names=("svc",)),
    Resource(
        "apps", "v1", "deployments", "Deployment", short_names=("deploy",),
        subresources=("scale",), has_status=True, has_generation=True,
    ),
    Resource(
        "apps", "v1", "replicasets", "ReplicaSet", short_names=("rs",), subresources=("scale",),
        has_status=True, has_generation=True,
    ),
    Resource(
        "apps", "v1", "daemonsets", "DaemonSet", short_names=("ds",),
        has_status=True, has_generation=True,
    ),
    Resource(
        "apps", "v1", "statefulsets", "StatefulSet", short_names=("sts",),
        subresources=("scale",), has_status=True, has_generation=True,
    ),
    Resource("batch", "v1", "jobs", "Job", has_status=True, has_generation=True),
    Resource(
        "policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", short_names=("pdb",),
        has_status=True, has_generation=True,
    ),
    Resource("coordination.k8s.io", "v1", "leases", "Lease"),
    Resource(
        "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False, short_names=("pc",)
    ),
    Resource("events.k8s.io", "v1", "events", "Event", short_names=("ev",)),
)  # fmt: skip

# Questions that are answered and not stored.
REVIEWS: tuple[Resource, ...] = (
    Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False),
    Resource(
        "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False
    ),
    Resource(
        "authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", False
    ),
)

# What a metrics-server, where there is one, answers for the API server; read and never stored.
MEASURED: tuple[Resource, ...] = (
    Resource("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", False),
    Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics"),
)

BY_PATH = {(r.group, r.version, r.plural): r for r in (*RESOURCES, *MEASURED)}
GROUP_VERSIONS = {(r.group, r.version) for r in (*RESOURCES, *MEASURED)}
BY_KIND = {(r.api_version, r.kind): r for r in RESOURCES}

# The first resource of a name wins, so "events" is the core one.
BY_PLURAL = {r.plural: r for r in reversed(RESOURCES)}

NODES = BY_PLURAL["nodes"]
PODS = BY_PLURAL["pods"]
NAMESPACES = BY_PLURAL["namespaces"]
LEASES = BY_PLURAL["leases"]
JOBS = BY_PLURAL["jobs"]
BUDGETS = BY_PLURAL["poddisruptionbudgets"]
PRIORITY_CLASSES = BY_PLURAL["priorityclasses"]
