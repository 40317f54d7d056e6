"""Documents become plain data whose places are known."""

from __future__ import annotations

import math
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reactive_descheduler.config.yaml_lines import JsonValue, UnreadableError, read_document


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("", None),
        ("# nothing", None),
        ("---\na: 1\n---\na: 2", {"a": 1}),
        ("a: 1\n---\n]:[", {"a": 1}),
        ('{"a": [1, 2.0, null, true]}', {"a": [1, 2.0, None, True]}),
        ('{\n\t"a": "x"}', {"a": "x"}),
        (r'{"a": "\ud83d\ude00\/"}', {"a": "😀/"}),
        ("a: [y, n, Yes, off, 'y']", {"a": [True, False, True, False, "y"]}),
        ("[1:30, 2024-01-01, 1.2.3]", ["1:30", "2024-01-01", "1.2.3"]),
        ("[0x1f, 017, 1_000]", [31, 15, 1000]),
        ("a: [1e3, 1.5E-1, .5, +4, -0]", {"a": [1000.0, 0.15, 0.5, 4, 0]}),
        ("1: a\ntrue: b\nnull: c\n1.5: d", {"1": "a", "true": "b", "null": "c", "1.5": "d"}),
        ("[&x {k: 1, z: 2}, {<<: *x, k: 3}]", [{"k": 1, "z": 2}, {"k": 3, "z": 2}]),
        ("a: &x [1]\nb: *x", {"a": [1], "b": [1]}),
    ],
    ids=repr,
)
def test_a_document_is_read(text: str, data: JsonValue) -> None:
    assert read_document(text).data == data


def test_infinity_and_nan_are_read() -> None:
    data = read_document("[.inf, -.inf, .nan]").data
    assert isinstance(data, list)
    assert data[:2] == [math.inf, -math.inf]
    assert str(data[2]) == "nan"


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("a: 1\nb: [", "expected", 2),
        ("a: *x", "undefined alias", 1),
        ("a: &x\n  - *x", "inside its own anchor", 1),
        ("a:\n  ? {b: c}\n  : d", "a key must be text", 2),
        ("a:\n - !!binary aGk=", "binary", 2),
        ("a: !!python/object:os.system x", "constructor", 1),
        ("a: !!int ''", "cannot be read", 1),
        ("a: !!bool maybe", "cannot be read", 1),
        ("a: " + "9" * 5000, "cannot be read", 1),
        ("<<: 5", "<<", 1),
        (r'a: "\ud83d"', "half a character", 1),
        ("a: \x00", "unacceptable character", None),
        (b"a: \xff", "UTF-8", None),
        ("[" * 5000, "nested too deeply", None),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_what_is_no_document_is_refused_with_its_line(
    text: str | bytes, message: str, line: int | None
) -> None:
    with pytest.raises(UnreadableError, match=message) as refusal:
        read_document(text)
    assert refusal.value.line == line


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        pytest.param("a:\n\t- b", "indent with spaces, not tabs", id="tab"),
        pytest.param("a: @b", "text that begins so has to be in quotes", id="sign"),
        pytest.param("- a: b\n   c: d", "text with a colon has to be in quotes", id="too deep"),
        pytest.param("a: {b: 1 c: 2}", "or a comma", id="comma"),
        pytest.param("a: b: c", "text with a colon has to be in quotes", id="colon"),
        pytest.param("a:\n  b: {c: [d]\n", "the bracket of line 2 lacks its end", id="bracket"),
        pytest.param("a: [\n", "a bracket lacks its end", id="end"),
        pytest.param("a: 1\nb: 'c\nd: e", "the quote of line 2 lacks its end", id="quote"),
        pytest.param("a:\n  b: 1\n c: 2", "indent it like its neighbours", id="not deep enough"),
    ],
)
def test_a_slip_is_refused_with_what_may_mend_it(text: str, hint: str) -> None:
    with pytest.raises(UnreadableError, match="is not YAML: ") as refusal:
        read_document(text)
    assert hint in refusal.value.hint


def test_aliases_cannot_fill_the_memory() -> None:
    text = "a0: &a0 [x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
    )
    with pytest.raises(UnreadableError, match="more than"):
        read_document(text)


def test_every_value_knows_its_line() -> None:
    document = read_document("a:\n  b:\n  - c: 1\n  - d:\n      e: 2\n")
    assert [
        document.line(("a",)),
        document.line(("a", "b", 0)),
        document.line(("a", "b", 1, "d", "e")),
        document.line(("a", "b", 1, "d", "not there", 7)),
    ] == [1, 3, 5, 4]


def test_a_key_written_twice_is_found_and_the_last_counts() -> None:
    document = read_document("a:\n  b: 1\n  c: 2\n  b: 3\n")
    assert document.data == {"a": {"b": 3, "c": 2}}
    assert [(found.path, found.hint) for found in document.duplicates] == [
        (("a", "b"), "first on line 2")
    ]


def test_a_merged_key_written_again_is_no_duplicate() -> None:
    assert not read_document("a: &x {k: 1}\nb: {<<: *x, k: 2}").duplicates


@given(st.one_of(st.text(), st.binary(), st.text("{}[]&*!<:-?,|>'\"#%@` \n\tab01.~", max_size=30)))
@example("!<tag:yaml.org,2002:float> ''")
@example("!!timestamp x")
@example("? ")
def test_any_text_is_read_or_refused(text: str | bytes) -> None:
    with suppress(UnreadableError):
        read_document(text)
