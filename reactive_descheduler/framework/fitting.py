"""Where a Pod would find room, remembered for as long as nothing moves; and what would change that.

Pods of one shape fit the same nodes, so one search answers for all of them. Of Pods about which
more is asked than their shape (affinity to Pods, spread, ports, volumes), one answers for those
that are `alike`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from reactive_descheduler.api.changes import Action, On
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Kin, Pod, Shape, kin, shape
from reactive_descheduler.api.scheduling.anti_affinity import neighbours
from reactive_descheduler.api.scheduling.fit import UPSTREAM, FitRules, misfit
from reactive_descheduler.api.scheduling.pod_affinity import needed_by
from reactive_descheduler.api.scheduling.pod_terms import ANY_NAMESPACE, namespaces_of
from reactive_descheduler.api.scheduling.spread import HARD, hard_keys, spreads
from reactive_descheduler.api.terms import PodAffinityTerm
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.config.corrections import Correction, Corrections

from .alike import likeness

NODE_FIT = (
    Action.NODE_TAINTS
    | Action.NODE_LABELS
    | Action.NODE_ALLOCATABLE
    | Action.NODE_SCHEDULABLE
    | Action.NODE_READY
    | Action.NODE_OPAQUE
)
"""What on a node that stays can turn its fit, either way."""
_TOPOLOGY = Action.NODE_ADDED | Action.NODE_REMOVED | Action.NODE_LABELS | Action.NODE_OPAQUE
"""What on any node moves it from one domain to another."""
_STANDS = (
    Action.POD_BOUND
    | Action.POD_GONE
    | Action.POD_PHASE
    | Action.POD_LABELS
    | Action.POD_SPEC
    | Action.POD_OPAQUE
)
"""What on a Pod elsewhere in the domain counts."""


def fit_rules(corrections: Corrections) -> FitRules:
    """Return what node fit looks at under these corrections."""
    return FitRules(
        anti_affinity=Correction.NODE_FIT_ANTI_AFFINITY in corrections,
        pod_affinity=Correction.NODE_FIT_POD_AFFINITY in corrections,
        host_ports=Correction.NODE_FIT_HOST_PORTS in corrections,
        volumes=Correction.NODE_FIT_VOLUMES in corrections,
        spread=Correction.NODE_FIT_SPREAD in corrections,
    )


_MOST_REMEMBERED = 10_000


class _Found(NamedTuple):
    witness: Node | None
    left_out: str
    """Without a witness: the only node that was not tried, or none."""


class Fitting:
    """Finds a node for a Pod, with a memory of one state of the cluster."""

    def __init__(self, rules: FitRules = UPSTREAM) -> None:
        self.rules = rules
        self._lister: Lister | None = None
        self._version = -1
        self._memory: dict[Hashable, _Found] = {}
        self._last: dict[Shape | Kin, str] = {}
        """Where there was room last, by what was asked: most likely there still is."""

    def misfit(self, pod: Pod, node: Node, lister: Lister) -> str | None:
        """Return why the Pod does not fit the node; None if it does."""
        return misfit(pod, node, lister, self.rules)

    def alike(self, pod: Pod, lister: Lister) -> Hashable:
        """Return the same for Pods that fit the same nodes, but for their own."""
        if not self._is_special(pod, lister):
            return shape(pod)
        return likeness(pod, lister, self.rules)

    def elsewhere(
        self,
        pod: Pod,
        nodes: Iterable[Node],
        lister: Lister,
        *,
        among: Callable[[Node], bool] | None = None,
    ) -> Node | None:
        """Return one of the nodes, other than the Pod's own, that it fits.

        `nodes` has to be the same for one state of the lister; it may be lazy. `among` says whether
        a node is one of them: then the one that was found last is tried first.
        """
        if lister is not self._lister or lister.version != self._version:
            self._lister, self._version = lister, lister.version
            self._memory.clear()
        key = self.alike(pod, lister)
        asked = key if isinstance(key, Shape) else kin(pod)
        known = self._memory.get(key)
        if known is None or (known.witness is not None and known.witness.name == pod.node_name):
            witness = self._find(asked, pod, nodes, lister, among)
            self._memory[key] = _Found(witness, "" if witness else pod.node_name)
            return witness
        if known.witness is not None or known.left_out in ("", pod.node_name):
            return known.witness
        untried = (node for node in nodes if node.name == known.left_out)
        self._memory[key] = _Found(self._first(pod, untried, lister), "")
        return self._memory[key].witness

    def room_wakes(
        self, pod: Pod, lister: Lister, *, on: Shape | None = None
    ) -> tuple[On, *tuple[On, ...]]:
        """Return what could make room for a Pod that fits nowhere: a better node, or less on one,
        or in the way elsewhere. `on`: its shape, made narrower, where only some nodes matter."""
        wanted = on or shape(pod)
        # A node that comes to suit it wakes nobody while its room is promised: the promise's end
        # has to, also of one that is not made yet.
        freed = Action.POD_GONE | Action.POD_RESOURCES | Action.POD_OPAQUE | Action.REPLACED
        if pod.template.anti_affinity:
            freed |= Action.POD_LABELS
        less = On(freed, None, wanted)
        others = (less, *self._far_wakes(pod, lister))
        return (On(Action.NODE_ADDED | NODE_FIT, None, wanted), *others)

    def own_room_wake(self, pod: Pod, node: Node) -> On:
        """Return what could let a Pod fit its own node again, beside what could make room.

        Its shape alone does not tell: on its own node it has its room, and meets itself.
        """
        freed = Action.POD_GONE | Action.POD_LABELS
        near = pod.template.anti_affinity or pod.template.host_ports
        return On(NODE_FIT | freed if near else NODE_FIT, node.ref)

    def loss_wakes(self, pod: Pod, node: Node, lister: Lister) -> tuple[On, ...]:
        """Return what could end the Pod's fit on this node."""
        filled = Action.POD_BOUND | Action.POD_RESOURCES | Action.POD_PHASE | Action.POD_OPAQUE
        if pod.template.anti_affinity:
            filled |= Action.POD_LABELS
        return (
            On(Action.NODE_REMOVED | NODE_FIT | filled, node.ref),
            *self._far_wakes(pod, lister),
        )

    def _is_special(self, pod: Pod, lister: Lister) -> bool:
        """Say whether more than the Pod's shape decides where it fits."""
        template, rules = pod.template, self.rules
        if rules.anti_affinity:
            found = neighbours(pod, lister)
            apart = bool(found.taken or found.flaw)
        else:
            apart = bool(template.anti_affinity)
        return (
            apart
            or lister.has_promise(pod.uid)
            or (rules.pod_affinity and bool(_kept_near(pod, lister)))
            or (rules.host_ports and bool(template.host_ports))
            or (rules.volumes and bool(template.claims))
            or (rules.spread and bool(hard_keys(template)))
        )

    def _find(
        self,
        what: Shape | Kin,
        pod: Pod,
        nodes: Iterable[Node],
        lister: Lister,
        among: Callable[[Node], bool] | None,
    ) -> Node | None:
        last = lister.node(self._last.get(what, "")) if among is not None else None
        if among is not None and last is not None and among(last):
            nodes = chain((last,), nodes)
        found = self._first(pod, nodes, lister)
        if among is not None and found is not None:
            if len(self._last) >= _MOST_REMEMBERED:
                self._last.clear()
            self._last[what] = found.name
        return found

    def _first(self, pod: Pod, nodes: Iterable[Node], lister: Lister) -> Node | None:
        return next(
            (
                node
                for node in nodes
                if node.name != pod.node_name and misfit(pod, node, lister, self.rules) is None
            ),
            None,
        )

    def _far_wakes(self, pod: Pod, lister: Lister) -> Iterator[On]:
        """Yield what can turn the fit, either way, though it is not on the node itself."""
        template, rules = pod.template, self.rules
        near = _kept_near(pod, lister) if rules.pod_affinity else ()
        apart = rules.anti_affinity and _kept_apart(pod, lister)
        spread = rules.spread and bool(spreads(template, HARD))
        if rules.anti_affinity:
            yield On(_STANDS, ("AntiAffinity", "", pod.namespace))
            yield On(_STANDS, ("AntiAffinity", "", ANY_NAMESPACE))
            yield from _chosen(_STANDS, template.anti_affinity, pod)
        if apart:
            yield On(Action.NAMESPACE_LABELS, ("Namespace", "", pod.namespace))
        for each in near:
            yield from _chosen(_STANDS | Action.POD_TERMINATING, each.template.pod_affinity, each)
        if spread:
            yield On(_STANDS | Action.POD_TERMINATING, ("Namespace", "", pod.namespace))
            yield On(Action.NODE_TAINTS, None)
        if near or apart or spread:
            yield On(_TOPOLOGY, None)
            if lister.has_promises():
                yield On(Action.REPLACED, None)
        if rules.volumes:
            for name in template.claims:
                claim = lister.claim(pod.namespace, name)
                yield On(Action.CLAIM, ("PersistentVolumeClaim", pod.namespace, name))
                if claim is not None and claim.volume:
                    yield On(Action.VOLUME, ("PersistentVolume", "", claim.volume))


def _kept_near(pod: Pod, lister: Lister) -> Sequence[Pod]:
    """Return whose Pod affinity decides where a Pod may go: its own, and of one that is to come to
    it."""
    found = [pod] if pod.template.pod_affinity else []
    coming = needed_by(pod, lister)
    return found if coming is None else [*found, coming]


def _kept_apart(pod: Pod, lister: Lister) -> bool:
    """Say whether anti-affinity over topology domains may decide where a Pod may go."""
    namespace = pod.namespace
    return bool(
        pod.template.anti_affinity
        or lister.kept_apart(namespace)
        or lister.promised_apart(namespace)
    )


def _chosen(action: Action, terms: Iterable[PodAffinityTerm], pod: Pod) -> Iterator[On]:
    """Yield this, of Pods that terms of a Pod may choose, and what lets them choose others."""
    terms = tuple(terms)
    for name in sorted(namespaces_of(terms, pod.namespace)):
        if name == ANY_NAMESPACE:
            yield On(action | Action.NAMESPACE_LABELS, None)
        else:
            yield On(action, ("Namespace", "", name))
    if any(term.match_label_keys or term.mismatch_label_keys for term in terms):
        yield On(Action.POD_LABELS, pod.ref)
