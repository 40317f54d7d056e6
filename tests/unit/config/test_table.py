"""The configuration page is written out of the models."""

from __future__ import annotations

from pathlib import Path

import pytest

from reactive_descheduler.config.reactive import ReactiveSettings
from reactive_descheduler.config.table import TABLES, fill_in, rows

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_the_page_agrees_with_the_models() -> None:
    # To write it anew: PAGE.write_text(fill_in(PAGE.read_text()))
    page = PAGE.read_text(encoding="utf-8")
    assert fill_in(page) == page


@pytest.mark.parametrize("name", TABLES)
def test_the_page_has_every_table(name: str) -> None:
    assert f"<!-- table: {name} -->" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("path", "kind", "default"),
    [
        ("debounce.quiet", "duration", "100ms"),
        ("rateLimit.evictionsPerSecond", "number", "5"),
        ("rateLimit.adaptive", "boolean", "true"),
        ("pacing.maxUnavailable", "integer or percentage", "25%"),
        ("limits.perWorkload", "integer", "10"),
        ("strategies.<name>.settle", "duration", ""),
        ("strategies.<name>.mode", "`act`, `observe`", "act"),
        ("corrections", "`all`, `none` or list of names", "all"),
    ],
)
def test_a_setting_has_a_row(path: str, kind: str, default: str) -> None:
    found = {row.path: row for row in rows(ReactiveSettings)}
    assert (found[path].type, found[path].default) == (kind, default)


def test_every_setting_says_what_it_is_for() -> None:
    assert [row.path for row in rows(ReactiveSettings) if not row.meaning] == []
