"""Label selectors as objects and as text."""

from __future__ import annotations

import pytest

from reactive_descheduler.api.selectors import (
    Selector,
    SelectorError,
    check_selector,
    matches,
    parse_selector,
)
from reactive_descheduler.api.terms import LabelSelector, Requirement
from reactive_descheduler.config.args import LabelSelector as PolicySelector

WEB = {"app": "web", "tier": "front", "size": "7"}


def expressions(*requirements: Requirement) -> LabelSelector:
    return LabelSelector(match_expressions=requirements)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(None, False, id="absent-matches-nothing"),
        pytest.param(LabelSelector(), True, id="empty-matches-everything"),
        pytest.param(LabelSelector(match_labels=None, match_expressions=None), True, id="nulls"),
        pytest.param(LabelSelector(match_labels={"app": "web"}), True, id="label"),
        pytest.param(LabelSelector(match_labels={"app": "db"}), False, id="label-differs"),
        pytest.param(LabelSelector(match_labels={"app": "web", "x": ""}), False, id="all-labels"),
        pytest.param(expressions(Requirement("app", "In", ("db", "web"))), True, id="in"),
        pytest.param(expressions(Requirement("none", "In", ("web",))), False, id="in-absent"),
        pytest.param(expressions(Requirement("app", "NotIn", ("web",))), False, id="not-in"),
        pytest.param(expressions(Requirement("none", "NotIn", ("web",))), True, id="not-in-absent"),
        pytest.param(expressions(Requirement("app", "Exists")), True, id="exists"),
        pytest.param(expressions(Requirement("none", "DoesNotExist")), True, id="does-not-exist"),
        pytest.param(
            expressions(Requirement("app", "Exists"), Requirement("tier", "DoesNotExist")),
            False,
            id="all-expressions",
        ),
        pytest.param(
            PolicySelector.read(
                {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}
            ),
            True,
            id="of-a-policy",
        ),
    ],
)
def test_selector_matches_when_all_of_it_holds(selector: Selector | None, expected: bool) -> None:
    assert matches(selector, WEB) is expected


@pytest.mark.parametrize(
    ("selector", "named"),
    [
        pytest.param(expressions(Requirement("app", "Gt", ("1",))), "Gt", id="operator"),
        pytest.param(expressions(Requirement("app", "In")), "at least one", id="no-values"),
        pytest.param(expressions(Requirement("app", "Exists", ("a",))), "no values", id="values"),
        pytest.param(expressions(Requirement("a b", "Exists")), "a b", id="key"),
        pytest.param(expressions(Requirement("app", "In", ("-x",))), "-x", id="value"),
        pytest.param(LabelSelector(match_labels={"app": "x" * 64}), "xxx", id="long-value"),
        pytest.param(LabelSelector(match_labels={"UP/app": "x"}), "UP/app", id="prefix"),
    ],
)
def test_malformed_selector_is_an_error_that_names_the_part(
    selector: LabelSelector, named: str
) -> None:
    with pytest.raises(SelectorError, match=named):
        check_selector(selector)
    with pytest.raises(SelectorError, match=named):
        matches(selector, {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("  ", True),
        ("app=web", True),
        ("app==web", True),
        ("app = web , tier=front", True),
        ("app!=web", False),
        ("none!=web", True),
        ("app in (db, web)", True),
        ("app notin (db,web)", False),
        ("none notin (db)", True),
        ("app", True),
        ("!app", False),
        ("! none", True),
        ("size>6", True),
        ("size>7", False),
        ("size<8", True),
        ("app>1", False),
        ("none<1", False),
        ("app=", False),
        ("app in ()", False),
        ("app in (,web)", True),
        ("example.com/app=web", False),
        ("in in (notin)", False),
    ],
)
def test_text_is_read_as_upstream_reads_it(text: str, expected: bool) -> None:
    assert parse_selector(text).matches(WEB) is expected


@pytest.mark.parametrize(
    "text",
    [
        ",app",
        "app,",
        "app web",
        "app in web",
        "app in (web",
        "app=(web)",
        "=web",
        "!",
        "!app=web",
        "app>x",
        "app>",
        "a b=c",
        "-app",
        "app=-web",
        "app in (a b)",
    ],
)
def test_malformed_text_is_an_error_that_quotes_it(text: str) -> None:
    with pytest.raises(SelectorError, match="selector"):
        parse_selector(text)
