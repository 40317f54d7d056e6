"""Arguments of DefaultEvictor, which decides who may be evicted at all."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from reactive_descheduler.api.errors import PolicyError, Problem

from .args import Arguments, Duration, Int32, LabelSelector, Listed, Unsigned
from .corrections import Correction, Corrections
from .findings import close_match

HIGHEST_THRESHOLD = 2_000_000_000
"""Priority of system-cluster-critical: the default threshold and the highest one allowed."""


class Protection(StrEnum):
    """Why a Pod is left alone; the values are upstream's names."""

    LOCAL_STORAGE = "PodsWithLocalStorage"
    DAEMON_SET = "DaemonSetPods"
    SYSTEM_CRITICAL = "SystemCriticalPods"
    FAILED_BARE = "FailedBarePods"
    PVC = "PodsWithPVC"
    WITHOUT_PDB = "PodsWithoutPDB"
    RESOURCE_CLAIMS = "PodsWithResourceClaims"


DEFAULT_PROTECTIONS = frozenset(
    {
        Protection.LOCAL_STORAGE,
        Protection.DAEMON_SET,
        Protection.SYSTEM_CRITICAL,
        Protection.FAILED_BARE,
    }
)

_Default = Literal["PodsWithLocalStorage", "SystemCriticalPods", "FailedBarePods", "DaemonSetPods"]
_Extra = Literal["PodsWithPVC", "PodsWithoutPDB", "PodsWithResourceClaims"]


class PriorityThreshold(Arguments):
    """Priority from which on Pods are protected; at most one of the two fields."""

    value: Annotated[
        Int32 | None,
        Field(le=HIGHEST_THRESHOLD, description="The priority itself; at most 2000000000."),
    ] = None
    name: Annotated[
        str, Field(description="PriorityClass to take it from; it must exist in the cluster.")
    ] = ""

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if self.value is not None and self.name:
            raise ValueError("only one of value and name may be set in priorityThreshold")
        return self


class ProtectedStorageClass(Arguments):
    """A storage class, by name."""

    name: Annotated[str, Field(description="Name of the StorageClass.")] = ""


class PvcProtection(Arguments):
    """Narrows PodsWithPVC."""

    protected_storage_classes: Annotated[
        Listed[ProtectedStorageClass],
        Field(description="Only claims of these classes protect; empty means all classes."),
    ] = ()


class ProtectionConfig(Arguments):
    """Configuration of protections; only one has any."""

    pods_with_pvc: Annotated[
        PvcProtection, Field(alias="PodsWithPVC", description="Configures PodsWithPVC.")
    ] = PvcProtection()


class PodProtections(Arguments):
    """Protections, the new way. It excludes the old flags when a list in it has an entry."""

    default_disabled: Annotated[
        Listed[_Default], Field(description="Default protections that are switched off.")
    ] = ()
    extra_enabled: Annotated[
        Listed[_Extra], Field(description="Optional protections that are switched on.")
    ] = ()
    config: Annotated[ProtectionConfig, Field(description="Configuration of protections.")] = (
        ProtectionConfig()
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        mistakes = [
            f"{key} lists {name} twice"
            for key, names in (
                ("defaultDisabled", self.default_disabled),
                ("extraEnabled", self.extra_enabled),
            )
            for name in dict.fromkeys(name for name in names if names.count(name) > 1)
        ]
        if Protection.PVC in self.extra_enabled:
            classes = self.config.pods_with_pvc.protected_storage_classes
            mistakes += [
                f"config.PodsWithPVC.protectedStorageClasses[{index}].name must not be empty"
                for index, storage_class in enumerate(classes)
                if not storage_class.name
            ]
        if mistakes:
            raise ValueError("; ".join(mistakes))
        return self


class DefaultEvictorArguments(Arguments):
    """Arguments of the plugin DefaultEvictor."""

    node_selector: Annotated[
        str, Field(description="Selector of the nodes that nodeFit looks at; empty means all.")
    ] = ""
    label_selector: Annotated[
        LabelSelector | None, Field(description="Only Pods with matching labels are evicted.")
    ] = None
    namespace_label_selector: Annotated[
        LabelSelector | None,
        Field(description="Only Pods in namespaces with matching labels are evicted."),
    ] = None
    priority_threshold: Annotated[
        PriorityThreshold,
        Field(
            description="Pods of this priority or a higher one are protected; default 2000000000,"
            " the priority of system-cluster-critical."
        ),
    ] = PriorityThreshold()
    node_fit: Annotated[
        bool,
        Field(description="Evict only where another node would take the Pod; off as upstream."),
    ] = False
    min_replicas: Annotated[
        Unsigned,
        Field(description="Pods whose owner has fewer replicas are protected; acts from 2 on."),
    ] = 0
    min_pod_age: Annotated[Duration | None, Field(description="Younger Pods are protected.")] = None
    no_eviction_policy: Annotated[
        Literal["", "Preferred", "Mandatory"],
        Field(
            description="How the annotation prefer-no-eviction is taken: Mandatory protects the"
            " Pod; empty is Preferred."
        ),
    ] = ""
    pod_protections: Annotated[
        PodProtections, Field(description="Protections switched on and off.")
    ] = PodProtections()
    evict_local_storage_pods: Annotated[
        bool, Field(description="Old: switches PodsWithLocalStorage off.")
    ] = False
    evict_daemon_set_pods: Annotated[
        bool, Field(description="Old: switches DaemonSetPods off.")
    ] = False
    evict_system_critical_pods: Annotated[
        bool,
        Field(description="Old: switches SystemCriticalPods off, and with it priorityThreshold."),
    ] = False
    evict_failed_bare_pods: Annotated[
        bool, Field(description="Old: switches FailedBarePods off.")
    ] = False
    ignore_pvc_pods: Annotated[bool, Field(description="Old: switches PodsWithPVC on.")] = False
    ignore_pods_without_pdb: Annotated[
        bool,
        Field(alias="ignorePodsWithoutPDB", description="Old: switches PodsWithoutPDB on."),
    ] = False

    @model_validator(mode="after")
    def _old_or_new(self) -> Self:
        if self._new_style and (old := [key for key, is_on in self._old_flags().items() if is_on]):
            raise ValueError(_clash(old))
        return self

    @property
    def node_fit_is_written_false(self) -> bool:
        """Whether the document itself says `nodeFit: false`; see the correction `nodeFitFalse`."""
        return "node_fit" in self.model_fields_set and not self.node_fit

    def looks_elsewhere(self, corrections: Corrections) -> bool:
        """Whether strategies that ask for room on other nodes by themselves may do so."""
        return Correction.NODE_FIT_FALSE not in corrections or not self.node_fit_is_written_false

    @property
    def protections(self) -> frozenset[Protection]:
        """The protections in force, from the new lists or the old flags."""
        if self._new_style:
            disabled = set(map(Protection, self.pod_protections.default_disabled))
            return (DEFAULT_PROTECTIONS - disabled) | set(
                map(Protection, self.pod_protections.extra_enabled)
            )
        # An old flag turns round what holds without it, whichever way that is.
        turned = {_OLD_FLAGS[key] for key, is_on in self._old_flags().items() if is_on}
        return DEFAULT_PROTECTIONS ^ turned

    @property
    def protected_storage_classes(self) -> frozenset[str]:
        """Storage classes to which PodsWithPVC is narrowed; empty means every class.

        Honoured with the old flag `ignorePvcPods` too, as upstream does.
        """
        classes = self.pod_protections.config.pods_with_pvc.protected_storage_classes
        return frozenset(storage_class.name for storage_class in classes)

    @property
    def _new_style(self) -> bool:
        return bool(self.pod_protections.default_disabled or self.pod_protections.extra_enabled)

    def _old_flags(self) -> dict[str, bool]:
        return {
            "evictLocalStoragePods": self.evict_local_storage_pods,
            "evictDaemonSetPods": self.evict_daemon_set_pods,
            "evictSystemCriticalPods": self.evict_system_critical_pods,
            "evictFailedBarePods": self.evict_failed_bare_pods,
            "ignorePvcPods": self.ignore_pvc_pods,
            "ignorePodsWithoutPDB": self.ignore_pods_without_pdb,
        }


def clash_in(document: Mapping[str, object]) -> str:
    """Say whether a document mixes old flags and podProtections, whatever else is wrong with it.

    Its model says so only once each value is right by itself.
    """
    match document:
        case {"podProtections": {"defaultDisabled": [_, *_]} | {"extraEnabled": [_, *_]}}:
            old = [key for key in _OLD_FLAGS if document.get(key) is True]
            return _clash(old) if old else ""
    return ""


def _clash(old: list[str]) -> str:
    return (
        f"{', '.join(old)} and podProtections exclude each other; list the protection in"
        " podProtections.defaultDisabled or extraEnabled instead"
    )


_OLD_FLAGS = {
    "evictLocalStoragePods": Protection.LOCAL_STORAGE,
    "evictDaemonSetPods": Protection.DAEMON_SET,
    "evictSystemCriticalPods": Protection.SYSTEM_CRITICAL,
    "evictFailedBarePods": Protection.FAILED_BARE,
    "ignorePvcPods": Protection.PVC,
    "ignorePodsWithoutPDB": Protection.WITHOUT_PDB,
}


THRESHOLD_NAME = "DefaultEvictor.priorityThreshold.name"


def resolve_priority_threshold(
    arguments: DefaultEvictorArguments,
    classes: Mapping[str, int],
    *,
    source: str = "policy",
    path: str = THRESHOLD_NAME,
    line: int | None = None,
) -> int:
    """Return the priority from which on Pods are protected.

    `classes` are the cluster's PriorityClasses: value by name. `source`, `path` and `line` say
    where the name stands. It can fail even where SystemCriticalPods is off and the threshold is not
    used, as upstream's does.

    Raises:
        PolicyError: the named class is missing, or stands above 2000000000.
    """
    threshold = arguments.priority_threshold
    if threshold.value is not None:
        return threshold.value
    if not threshold.name:
        return HIGHEST_THRESHOLD
    if (value := classes.get(threshold.name)) is None:
        message = f"PriorityClass {threshold.name} does not exist"
        hint = close_match(threshold.name, classes) or "create it, or give a value in its place"
    elif value > HIGHEST_THRESHOLD:
        message = f"{value} of PriorityClass {threshold.name} is above {HIGHEST_THRESHOLD}"
        hint = "name one of a lower value"
    else:
        return value
    raise PolicyError(source, [Problem(path, line, message, hint)])
