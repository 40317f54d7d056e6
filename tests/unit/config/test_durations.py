"""Durations are Go's, both ways."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive_descheduler.config.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("0s", 0),
        ("100ms", 0.1),
        ("90s", 90),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("1h1h", 7200),
        (".5s", 0.5),
        ("2.s", 2),
        ("+5m", 300),
        ("-5m", -300),
        ("7us", 7e-6),
        ("7µs", 7e-6),
        ("7μs", 7e-6),
        ("1500ns", 2e-6),
        ("2562047h", 2562047 * 3600),
    ],
)
def test_a_go_duration_is_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    [
        *("", "5", "1d", "1w", "1h ", " 1h", "1 h", "h", ".s", "-", "+", "1e3s", "--1s", "٣s"),
        *("2562048h", "9" * 5000 + "s", "1h\n"),
    ],
    ids=repr,
)
def test_what_go_refuses_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|292 years|digits"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(), "0s"),
        (timedelta(microseconds=7), "7us"),
        (timedelta(milliseconds=100), "100ms"),
        (timedelta(microseconds=1500), "1.5ms"),
        (timedelta(seconds=1.5), "1.5s"),
        (timedelta(seconds=60), "1m"),
        (timedelta(hours=1, minutes=30), "1h30m"),
        (timedelta(hours=25, seconds=1), "25h1s"),
        (timedelta(minutes=-5), "-5m"),
    ],
)
def test_a_duration_is_written_shortly(duration: timedelta, text: str) -> None:
    assert format_duration(duration) == text


@given(st.timedeltas(timedelta(days=-100_000), timedelta(days=100_000)))
def test_what_is_written_reads_back(duration: timedelta) -> None:
    assert parse_duration(format_duration(duration)) == duration
