"""DefaultEvictor: who may be evicted at all, composed of one filter per protection.

To add one: a file with a Filter, and its line in `build_evictor_filter`, cheapest first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from reactive_descheduler.api.changes import Action, Never, On
from reactive_descheduler.api.eviction import Rejection
from reactive_descheduler.api.pod import EVICT_ANNOTATION, Pod
from reactive_descheduler.config.corrections import Correction, Corrections
from reactive_descheduler.config.evictor import DefaultEvictorArguments, Protection
from reactive_descheduler.config.reactive import DRAINERS_TAINTS
from reactive_descheduler.framework.filter import EvictorFilter, Filter, Reading
from reactive_descheduler.framework.fitting import fit_rules
from reactive_descheduler.framework.pod_filter import PodFilter

from .bare_pods import FailedBarePods
from .claimed_node import ClaimedNode
from .daemon_set import DaemonSetPods
from .local_storage import PodsWithLocalStorage
from .min_pod_age import MinPodAge
from .min_replicas import MinReplicas
from .mirror_pod import MirrorPod
from .namespace_selector import NamespaceSelector
from .no_eviction_policy import NoEvictionPolicy
from .node_fit import NodeFit
from .opaque import Opaque
from .pod_selector import PodSelector
from .priority_threshold import PriorityThreshold
from .resource_claims import PodsWithResourceClaims
from .static_pod import StaticPod
from .system_critical import SystemCriticalPods
from .terminating import Terminating
from .volume_claims import PodsWithPVC
from .without_budget import PodsWithoutPDB


def build_evictor_filter(
    arguments: DefaultEvictorArguments,
    *,
    priority_threshold: int,
    corrections: Corrections,
    drainers_taints: Iterable[str] = DRAINERS_TAINTS,
) -> EvictorFilter:
    """Compose both steps of DefaultEvictor for one profile.

    `priority_threshold` is the resolved one (spec/evictor 2.4). Whether the evict annotation lifts
    facts too, and whatever its value, is the correction `evictAnnotation`.
    """
    facts: list[Filter] = [MirrorPod(), StaticPod(), Terminating()]
    if Correction.CLAIMED_NODES in corrections:
        facts.append(ClaimedNode(drainers_taints))
    protections = list(
        _protections(arguments, priority_threshold=priority_threshold, corrections=corrections)
    )
    if Correction.EVICT_ANNOTATION in corrections:
        immovable, liftable, lifts = [Opaque(), *facts], protections, is_annotated_true
    else:
        immovable, liftable, lifts = [Opaque()], [*facts, *protections], _is_present
    return _DefaultEvictor(
        immovable=immovable,
        liftable=liftable,
        placed=list(_placed(arguments, corrections)),
        lifts=lifts,
    )


def _protections(
    arguments: DefaultEvictorArguments, *, priority_threshold: int, corrections: Corrections
) -> Iterator[Filter]:
    """Yield what the annotation can lift: first what needs the Pod alone, then what is looked up.

    Upstream asks all of them and joins what they say, so their order decides nothing but which
    reason is told.
    """
    on = arguments.protections
    if arguments.no_eviction_policy == "Mandatory":
        yield NoEvictionPolicy()
    if Protection.SYSTEM_CRITICAL in on:
        yield SystemCriticalPods()
        yield PriorityThreshold(priority_threshold)  # switched off with it, as upstream
    yield FailedBarePods(spare_failed=Protection.FAILED_BARE in on)
    if Protection.LOCAL_STORAGE in on:
        yield PodsWithLocalStorage()
    if Protection.DAEMON_SET in on:
        yield DaemonSetPods()
    if Protection.RESOURCE_CLAIMS in on:
        yield PodsWithResourceClaims()
    selector = arguments.label_selector
    if selector is not None and (selector.match_labels or selector.match_expressions):
        yield PodSelector(selector)
    if arguments.min_pod_age is not None:
        yield MinPodAge(arguments.min_pod_age)
    if arguments.min_replicas > 1:
        yield MinReplicas(arguments.min_replicas)
    if Protection.PVC in on:
        yield PodsWithPVC(arguments.protected_storage_classes)
    if Protection.WITHOUT_PDB in on:
        yield PodsWithoutPDB(sees_budgets=Correction.PODS_WITHOUT_PDB in corrections)


def _placed(arguments: DefaultEvictorArguments, corrections: Corrections) -> Iterator[Filter]:
    """Yield what the second step asks; node fit last, for it is the dearest."""
    selector = arguments.namespace_label_selector
    if selector is not None and (selector.match_labels or selector.match_expressions):
        yield NamespaceSelector(selector)
    if arguments.node_fit:
        yield NodeFit(arguments.node_selector, fit_rules(corrections))


def _is_present(pod: Pod) -> bool:
    return EVICT_ANNOTATION in pod.annotations


def is_annotated_true(pod: Pod) -> bool:
    """Say whether the evict annotation asks for the eviction of this Pod, as we read it."""
    return pod.annotations.get(EVICT_ANNOTATION, "").lower() == "true"


class _DefaultEvictor:
    """Asks filters in order; the first that refuses is the one that is told."""

    def __init__(
        self,
        *,
        immovable: Sequence[Filter],
        liftable: Sequence[Filter],
        placed: Sequence[Filter],
        lifts: Callable[[Pod], bool],
    ) -> None:
        self._immovable = immovable
        self._liftable = liftable
        self._placed = placed
        self._lifts = lifts

    def filter(self, pod: Pod, reading: Reading, /) -> Rejection | None:
        refused = _first(self._immovable, pod, reading)
        if refused is not None or self._lifts(pod):
            return refused
        refused = _first(self._liftable, pod, reading)
        return None if refused is None else _liftable(refused, pod)

    def pre_eviction(self, pod: Pod, reading: Reading, /) -> Rejection | None:
        return _first(self._placed, pod, reading)

    def depends(
        self, pod: Pod, reading: Reading, refused: Rejection | None, /, *, placed: bool
    ) -> Iterable[On]:
        """Return what could end the passes that stand before a refusal, or all of them."""
        liftable = () if self._lifts(pod) else self._liftable
        for each in (*self._immovable, *liftable, *(self._placed if placed else ())):
            if refused is not None and refused.by == each.NAME:
                return
            if not isinstance(each, PodFilter):  # its answer can end by nothing but the Pod
                yield from each.depends(pod, reading)


def _first(filters: Iterable[Filter], pod: Pod, reading: Reading) -> Rejection | None:
    for each in filters:
        refused = each.check(pod, reading)
        if refused is not None:
            return refused
    return None


def _liftable(refused: Rejection, pod: Pod) -> Rejection:
    """Add the annotation to what lifts a refusal; nothing is for ever then."""
    others = (wake for wake in refused.wakes if not isinstance(wake, Never))
    return refused._replace(wakes=(On(Action.POD_ANNOTATIONS, pod.ref), *others))
