"""Whom a required anti-affinity term keeps away, as the scheduler reads it.

Upstream reads less of a term (`fit`): no `namespaceSelector`, and a Pod tells itself by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.selectors import matches
from reactive_descheduler.api.terms import PodAffinityTerm

LabelsOf = Callable[[str], Mapping[str, str] | None]
"""Returns the labels of a namespace; None if it is not known."""


def keeps_away(term: PodAffinityTerm, owner: Pod, other: Pod, labels_of: LabelsOf) -> bool:
    """Say whether a term of `owner` keeps `other` out of the topology domain that it stands in.

    Raises:
        SelectorError: a selector of the term is malformed.
    """
    return (
        other.uid != owner.uid
        and looks_into(term, owner.namespace, other.namespace, labels_of)
        and matches(term.label_selector, other.template.labels)
        and _label_keys_agree(term, owner.template.labels, other.template.labels)
    )


def looks_into(term: PodAffinityTerm, own: str, namespace: str, labels_of: LabelsOf) -> bool:
    """Say whether a term of a Pod in namespace `own` looks at the Pods of `namespace`.

    Raises:
        SelectorError: its namespaceSelector is malformed.
    """
    if namespace in (term.namespaces or ()):
        return True
    if term.namespace_selector is None:
        return not term.namespaces and namespace == own
    labels = labels_of(namespace)
    return labels is not None and matches(term.namespace_selector, labels)


def _label_keys_agree(
    term: PodAffinityTerm, own: Mapping[str, str], other: Mapping[str, str]
) -> bool:
    """Read `matchLabelKeys` and `mismatchLabelKeys`; a key that the owner lacks says nothing.

    The API server writes them into the selector too, where its version does so.
    """
    return all(
        other.get(key) == own[key] for key in term.match_label_keys or () if key in own
    ) and all(other.get(key) != own[key] for key in term.mismatch_label_keys or () if key in own)
