"""Node selectors and node affinity."""

from __future__ import annotations

import pytest

from reactive_descheduler.api.pod import PodTemplate
from reactive_descheduler.api.scheduling.node_affinity import (
    AffinityError,
    accepts,
    label_keys,
    matches_node,
    preferred_weight,
)
from reactive_descheduler.api.terms import (
    NodeSelector,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    Requirement,
)
from tests.builders import make_node, node_view

NODE = node_view(make_node("n1", labels={"zone": "a", "cores": "16"}))
ZONE_A = Requirement("zone", "In", ("a",))
ZONE_B = Requirement("zone", "In", ("b",))
MALFORMED = Requirement("zone", "In")


def terms(*alternatives: tuple[Requirement, ...]) -> NodeSelector:
    return NodeSelector(tuple(NodeSelectorTerm(match_expressions=each) for each in alternatives))


def field(key: str, operator: str, *values: str) -> NodeSelector:
    return NodeSelector((NodeSelectorTerm(match_fields=(Requirement(key, operator, values),)),))


def template(
    required: NodeSelector | None = None,
    *,
    selector: dict[str, str] | None = None,
    preferred: tuple[PreferredSchedulingTerm, ...] = (),
) -> PodTemplate:
    return PodTemplate(
        labels={},
        owners=(),
        node_selector=selector or {},
        required_node_affinity=required,
        preferred_node_affinity=preferred,
        requests={},
    )


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(template(), True, id="nothing-asked"),
        pytest.param(template(selector={"zone": "a"}), True, id="selector"),
        pytest.param(template(selector={"zone": "b"}), False, id="selector-differs"),
        pytest.param(template(terms((ZONE_A,))), True, id="term"),
        pytest.param(template(terms((ZONE_B,), (ZONE_A,))), True, id="terms-are-alternatives"),
        pytest.param(template(terms((ZONE_A, ZONE_B))), False, id="expressions-are-joined"),
        pytest.param(template(terms((ZONE_A,)), selector={"zone": "b"}), False, id="both"),
        pytest.param(template(terms(())), False, id="empty-term"),
        pytest.param(template(NodeSelector(())), False, id="no-terms"),
        pytest.param(template(NodeSelector(None)), False, id="null-terms"),
        pytest.param(template(terms((MALFORMED,), (ZONE_A,))), True, id="a-later-term-matches"),
        pytest.param(
            template(terms((Requirement("cores", "Gt", ("8",)),))), True, id="greater-than"
        ),
        pytest.param(template(terms((Requirement("cores", "Lt", ("8",)),))), False, id="less-than"),
        pytest.param(
            template(terms((Requirement("zone", "Gt", ("8",)),))), False, id="label-no-number"
        ),
        pytest.param(template(field("metadata.name", "In", "n1")), True, id="field"),
        pytest.param(template(field("metadata.name", "NotIn", "n1")), False, id="field-not-in"),
        pytest.param(template(field("metadata.uid", "NotIn", "n1")), True, id="unknown-field"),
        pytest.param(template(field("metadata.uid", "In", "")), True, id="unknown-field-is-empty"),
    ],
)
def test_selector_and_required_affinity_accept_a_node(found: PodTemplate, expected: bool) -> None:
    assert matches_node(found, NODE) is expected
    assert accepts(found, NODE) is expected


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(template(terms((MALFORMED,))), id="no-values"),
        pytest.param(template(terms((MALFORMED,), (ZONE_B,))), id="and-no-other-term-matches"),
        pytest.param(template(terms((Requirement("zone", "Like", ("a",)),))), id="operator"),
        pytest.param(template(terms((Requirement("cores", "Gt", ("-8",)),))), id="negative"),
        pytest.param(template(terms((Requirement("cores", "Gt", ("1", "2")),))), id="two-bounds"),
        pytest.param(template(field("metadata.name", "Exists")), id="field-operator"),
        pytest.param(template(field("metadata.name", "In", "n1", "n2")), id="field-values"),
    ],
)
def test_malformed_affinity_is_neither_yes_nor_no(found: PodTemplate) -> None:
    with pytest.raises(AffinityError):
        matches_node(found, NODE)
    assert not accepts(found, NODE)


def test_selector_that_refuses_goes_before_a_malformed_affinity() -> None:
    assert matches_node(template(terms((MALFORMED,)), selector={"zone": "b"}), NODE) is False


def preference(weight: int, *expressions: Requirement) -> PreferredSchedulingTerm:
    return PreferredSchedulingTerm(weight, NodeSelectorTerm(match_expressions=expressions))


@pytest.mark.parametrize(
    ("preferred", "expected"),
    [
        pytest.param((), 0, id="none"),
        pytest.param((preference(3, ZONE_A), preference(5, ZONE_A)), 8, id="weights-add-up"),
        pytest.param((preference(3, ZONE_B), preference(5, ZONE_A)), 5, id="those-that-match"),
        pytest.param((preference(3),), 0, id="empty-matches-nothing"),
        pytest.param((preference(3, MALFORMED), preference(1, ZONE_A)), 1, id="malformed-skipped"),
    ],
)
def test_weight_of_a_node_is_the_sum_of_matching_preferences(
    preferred: tuple[PreferredSchedulingTerm, ...], expected: int
) -> None:
    assert preferred_weight(template(preferred=preferred), NODE) == expected


def test_keys_that_are_read_come_from_selector_terms_and_preferences() -> None:
    found = template(
        terms((ZONE_A,)),
        selector={"pool": "x"},
        preferred=(preference(1, Requirement("disk", "Exists")),),
    )

    assert label_keys(found) == {"zone", "pool", "disk"}
