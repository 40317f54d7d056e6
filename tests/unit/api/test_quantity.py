"""Quantities: the API's grammar, exact to a billionth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive_descheduler.api.quantity import LARGEST, NANOS, milli_value, parse_quantity, value


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("0", 0),
        ("1", NANOS),
        ("500m", NANOS // 2),
        ("1.5", 3 * NANOS // 2),
        (".5", NANOS // 2),
        ("5.", 5 * NANOS),
        ("+1", NANOS),
        ("-1", -NANOS),
        (" 1 ", NANOS),
        ("1Ki", 1024 * NANOS),
        ("1.5Gi", 3 * 2**29 * NANOS),
        ("0.1Ki", 102_400_000_000),
        ("1k", 1000 * NANOS),
        ("2M", 2_000_000 * NANOS),
        ("1e3", 1000 * NANOS),
        ("1E3", 1000 * NANOS),
        ("1E", 10**18 * NANOS),
        ("1e-3", NANOS // 1000),
        ("100u", 100_000),
        ("7n", 7),
        ("0.1n", 1),
        ("-0.1n", -1),
        ("1e-999999999", 1),
        ("0e999999999", 0),
        ("1e999999999", LARGEST),
        ("8Ei", LARGEST),
        (2, 2 * NANOS),
        (0.5, NANOS // 2),
        (1e16, 10**16 * NANOS),
    ],
    ids=str,
)
def test_quantity_is_read_exactly(text: str | float, nanos: int) -> None:
    assert parse_quantity(text) == nanos


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "m",
        "1KI",
        "1ki",
        "1mm",
        "1 Gi",
        "1e",
        "1e1.5",
        "0x10",
        "1_000",
        "nan",
        "\u0661",
        "--1",
    ],
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(text)


def test_truth_is_no_quantity() -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(True)


@pytest.mark.parametrize(
    ("nanos", "milli", "whole"),
    [
        (0, 0, 0),
        (1, 1, 1),
        (10**6, 1, 1),
        (10**6 + 1, 2, 1),
        (NANOS, 1000, 1),
        (NANOS + 1, 1001, 2),
        (-1, -1, -1),
        (-NANOS, -1000, -1),
    ],
)
def test_values_round_away_from_zero(nanos: int, milli: int, whole: int) -> None:
    assert (milli_value(nanos), value(nanos)) == (milli, whole)


@given(st.integers(min_value=0, max_value=2**62))
def test_nanos_survive_being_written_and_read(nanos: int) -> None:
    assert parse_quantity(f"{nanos}n") == nanos
