"""The strategy: what it reads, and its keys.

A key is a group of constraints of one namespace that hang together (`cache.spread_groups`): all
that some Pod is counted by or carries, so that no Pod is in two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain, starmap
from typing import ClassVar

from reactive_descheduler.api.changes import Action, Change, Key
from reactive_descheduler.api.eviction import Cause, Pause, Stop
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.scheduling.spread import DomainShape
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.spread_groups import SpreadGroup
from reactive_descheduler.config.corrections import Correction, Corrections
from reactive_descheduler.config.evictor import DefaultEvictorArguments
from reactive_descheduler.framework.fitting import fit_rules
from reactive_descheduler.framework.strategy import (
    Evaluation,
    Holds,
    Phase,
    Scope,
    Step,
    Subscription,
    View,
)

from .arguments import TopologySpreadArguments
from .domains import CycleDomains
from .fewest import even_out
from .survey import Rules, Survey, constraints_of
from .upstream import Chosen, choose, offer

_POD_MATTERS = (
    Action.POD_BOUND
    | Action.POD_GONE
    | Action.POD_DELETED
    | Action.POD_TERMINATING
    | Action.POD_PHASE
    | Action.POD_LABELS
    | Action.POD_ANNOTATIONS
    | Action.POD_OWNERS
    | Action.POD_TOLERATIONS
    | Action.POD_RESOURCES
    | Action.POD_SPEC
    | Action.POD_STARTED
    | Action.POD_OPAQUE
)
"""What on a Pod decides who counts, who may go, and where to."""
_NODE_MATTERS = (
    Action.NODE_ADDED
    | Action.NODE_REMOVED
    | Action.NODE_READY
    | Action.NODE_LABELS
    | Action.NODE_TAINTS
    | Action.NODE_OPAQUE
)
"""What on a node makes or ends a domain. What it can take is another matter: an uneven group waits
for that."""


class RemovePodsViolatingTopologySpreadConstraint:
    NAME: ClassVar[str] = "RemovePodsViolatingTopologySpreadConstraint"
    PHASE: ClassVar[Phase] = Phase.BALANCE
    HOLDS: ClassVar[Holds] = Holds.COUNTED
    EVENTS: ClassVar[tuple[Subscription, ...]] = (
        Subscription(_POD_MATTERS | _NODE_MATTERS, Scope.CONSTRAINT),
    )

    def __init__(
        self,
        arguments: TopologySpreadArguments,
        *,
        profile: int,
        corrections: Corrections,
        evictor: DefaultEvictorArguments | None = None,
    ) -> None:
        # The evictor's nodeFit is another question: this strategy has a switch of its own.
        self._profile = profile
        self._looks_into = arguments.namespaces.choice()
        self._fewest = Correction.SPREAD_FEWEST_MOVES in corrections
        self._domains = CycleDomains()
        self._rules = Rules(
            kinds=arguments.kinds,
            label_selector=arguments.label_selector,
            only_fitting=arguments.topology_balance_node_fit,
            counts_all=Correction.SPREAD_ALL_PODS in corrections,
            reads_min_domains=Correction.SPREAD_MIN_DOMAINS in corrections,
            books=Correction.BOOKING in corrections,
            fit=fit_rules(corrections),
        )

    def keys_of(self, lister: Lister, /) -> Iterable[Key]:
        groups = lister.spread_groups
        return [
            self._key(namespace, group.name)
            for namespace in groups.namespaces()
            for group in groups.of_namespace(namespace)
        ]

    def keys_for(self, scope: Scope, change: Change, lister: Lister, /) -> Iterable[Key]:
        groups, old, new = lister.spread_groups, change.old, change.new
        if scope is not Scope.CONSTRAINT:
            return self.keys_of(lister)
        if isinstance(old, Node) or isinstance(new, Node):
            # A constraint is looked at only if somebody carries it who may go: that may hang on the
            # node that one stands on, be it in no domain.
            standing = lister.pods_on(change.object.name) if _cycle_differs(old, new) else ()
            own = dict.fromkeys(
                (pod.namespace, group.name)
                for pod in standing
                if (group := groups.of_template(pod.namespace, pod.template)) is not None
            )
            return starmap(self._key, chain(own, groups.reading(_reads(old, new))))
        templates = [
            side.template for side in (old, new) if isinstance(side, Pod) and side.node_name
        ]
        namespace = change.object.namespace
        return [self._key(namespace, name) for name in groups.touched(namespace, templates)]

    def evaluate(self, view: View, key: Key, /) -> Evaluation:
        namespace, name = key.unit
        group = view.lister.spread_groups.named(namespace, name)
        if group is None or not view.nodes:
            return
        survey = yield from self._survey(view, namespace, group, set())
        if self._fewest:
            yield from even_out(survey)
        else:
            chosen = yield from choose(survey)
            yield from offer([chosen])

    def sweep(self, view: View, /) -> Evaluation:
        groups = view.lister.spread_groups
        left: set[str] = set()
        chosen: list[Chosen] = []
        for namespace in groups.namespaces() if view.nodes else ():
            for group in groups.of_namespace(namespace):
                survey = yield from self._survey(view, namespace, group, left)
                if not self._fewest:
                    chosen.append((yield from choose(survey)))
                elif (yield from even_out(survey)) is Stop.ALL:
                    return
                yield Pause()
        yield from offer(chosen)

    def counts(self, key: Key, pod: Pod, lister: Lister, /) -> bool:
        if pod.namespace != key.unit[0]:
            return False
        group = lister.spread_groups.of_template(pod.namespace, pod.template)
        return group is not None and group.name == key.unit[1]

    def breaks(self, _cause: Cause, _change: Change, /) -> bool:
        return False

    def _key(self, namespace: str, name: str) -> Key:
        return Key(self._profile, self.NAME, (namespace, name))

    def _survey(
        self, view: View, namespace: str, group: SpreadGroup, left: set[str]
    ) -> Step[Survey]:
        in_scope = self._looks_into(namespace)
        survey = Survey(
            rules=self._rules,
            view=view,
            namespace=namespace,
            key=self._key(namespace, group.name),
            left=left,
            constraints=constraints_of(group, self._rules) if in_scope else {},
            templates=group.templates,
            domains=self._domains,
        )
        if self._rules.counts_all or not survey.constraints:
            return survey
        listed = yield from survey.evictable(group.templates)
        return replace(survey, listed=listed)


def _cycle_differs(old: object, new: object) -> bool:
    """Say whether a change of a node may take it in or out of the cycle."""
    if not isinstance(old, Node) or not isinstance(new, Node):
        return True
    return (old.labels, old.ready, old.opaque) != (new.labels, new.ready, new.opaque)


def _reads(old: object, new: object) -> Callable[[DomainShape], bool]:
    """Return which domains a node's change may move: as they are, or by its coming and going.

    Any label may take a node in or out of the cycle, where it has the topology key.
    """
    sides = [side for side in (old, new) if isinstance(side, Node)]
    cycle_differs = _cycle_differs(old, new)

    def reads(shape: DomainShape) -> bool:
        if not any(shape.topology_key in side.labels for side in sides):
            return False
        return cycle_differs or shape.value(sides[0]) != shape.value(sides[1])

    return reads
