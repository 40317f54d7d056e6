"""docs/cli.md says what the commands say."""

from __future__ import annotations

from tests.unit.cli.cli_reference import PAGE, commands, documented, written


def test_the_page_agrees_with_the_commands() -> None:
    """If not: `python tests/unit/cli/cli_reference.py` writes its tables anew."""
    page = PAGE.read_text(encoding="utf-8")
    assert page == written(page)


def test_every_command_with_options_has_its_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert set(documented(page)) | {"version", "schema"} == set(commands())
