"""The parts of a Pod or Node spec that the scheduler reads: taints, tolerations, selectors, terms.

All are decoded straight from JSON (camel case there, snake case here). They are frozen and outside
the garbage collector, which is safe only because they never form cycles. An absent list is `()`, an
absent object is None where upstream tells absent from empty.
"""

from __future__ import annotations

import msgspec


class Taint(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    key: str = ""
    value: str | None = ""
    effect: str = ""


class Toleration(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    key: str | None = ""
    operator: str | None = ""
    value: str | None = ""
    effect: str | None = ""


class Requirement(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One expression of a label selector or of a node selector term."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = ()


class LabelSelector(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A selector object: everything in it must hold; an empty one matches all."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[Requirement, ...] | None = ()


class NodeSelectorTerm(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    match_expressions: tuple[Requirement, ...] | None = ()
    match_fields: tuple[Requirement, ...] | None = ()


class NodeSelector(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Required node affinity: one of the terms must match; no usable term matches no node."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = ()


class PreferredSchedulingTerm(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class PodAffinityTerm(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = ()
    mismatch_label_keys: tuple[str, ...] | None = ()


class TopologySpreadConstraint(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    topology_key: str = ""
    max_skew: int = 1
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] | None = ()
