"""Node selectors and node affinity (spec/strategies 2.4)."""

from __future__ import annotations

from functools import lru_cache

from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod, PodTemplate, Shape, shape
from reactive_descheduler.api.selectors import flaw, holds
from reactive_descheduler.api.terms import NodeSelector, NodeSelectorTerm, Requirement


class AffinityError(ValueError):
    """Raised when no term matched and at least one is malformed: neither yes nor no.

    Each caller decides what that means to it (spec/strategies 2.4). No retry helps.
    """


def matches_node(template: PodTemplate, node: Node) -> bool:
    """Say whether `nodeSelector` and required node affinity both accept the node.

    Raises:
        AffinityError: the affinity neither accepts it nor can be read in full.
    """
    labels = node.labels
    if any(labels.get(key) != value for key, value in template.node_selector.items()):
        return False
    required = template.required_node_affinity
    return required is None or accepts_node(required, node)


def accepts(template: PodTemplate, node: Node) -> bool:
    """Say the same as `matches_node`, taking what cannot be read as no."""
    try:
        return matches_node(template, node)
    except AffinityError:
        return False


def preferred_weight(template: PodTemplate, node: Node) -> int:
    """Sum the weights of the preferences that match the node; malformed ones are passed over."""
    return sum(
        term.weight
        for term in template.preferred_node_affinity
        if not _term_flaw(term.preference) and _term_matches(term.preference, node)
    )


def preferring_shape(pod: Pod) -> Shape:
    """Return the Pod's shape, narrowed to nodes that some preference of it matches."""
    return shape(pod)._replace(required_node_affinity=_preferring(pod.template))


@lru_cache(maxsize=10_000)
def _preferring(template: PodTemplate) -> NodeSelector:
    required = template.required_node_affinity
    wanted = (NodeSelectorTerm(),) if required is None else required.node_selector_terms or ()
    preferences = (term.preference for term in template.preferred_node_affinity)
    return NodeSelector(
        tuple(
            NodeSelectorTerm(
                (*(left.match_expressions or ()), *(right.match_expressions or ())),
                (*(left.match_fields or ()), *(right.match_fields or ())),
            )
            for right in preferences
            for left in wanted
        )
    )


def label_keys(template: PodTemplate) -> frozenset[str]:
    """Return the keys of node labels that selector, affinity and preferences look at."""
    required = template.required_node_affinity
    terms = [*(required.node_selector_terms or ())] if required is not None else []
    terms += [term.preference for term in template.preferred_node_affinity]
    expressions = (each for term in terms for each in term.match_expressions or ())
    return frozenset(template.node_selector) | {each.key for each in expressions}


def accepts_node(selector: NodeSelector, node: Node) -> bool:
    """Say whether one of the terms matches.

    Raises:
        AffinityError: none does, and not all of them can be read.
    """
    mistake = ""
    for term in selector.node_selector_terms or ():
        found = _term_flaw(term)
        if found:
            mistake = mistake or found
        elif _term_matches(term, node):
            return True
    if mistake:
        raise AffinityError(mistake)
    return False


@lru_cache(maxsize=4096)
def _term_flaw(term: NodeSelectorTerm) -> str:
    flaws = (
        *(flaw(each) for each in term.match_expressions or ()),
        *(_field_flaw(each) for each in term.match_fields or ()),
    )
    return next(filter(None, flaws), "")


def _field_flaw(field: Requirement) -> str:
    if field.operator in ("In", "NotIn") and len(field.values or ()) == 1:
        return ""
    return (
        f"a field takes In or NotIn and one value, not {field.operator} {list(field.values or ())}"
    )


def _term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    expressions, fields = term.match_expressions or (), term.match_fields or ()
    if not expressions and not fields:
        return False
    return all(holds(each, node.labels) for each in expressions) and all(
        _field_holds(each, node) for each in fields
    )


def _field_holds(field: Requirement, node: Node) -> bool:
    # A node has this one field; any other reads as the empty text.
    found = node.name if field.key == "metadata.name" else ""
    return (found in (field.values or ())) == (field.operator == "In")
