"""What README and docs say is true, as far as that is cheap to see. (What the demo prints is
compared in tests/demo.)"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import click
import pytest

from reactive_descheduler.cli import program
from reactive_descheduler.config.load import load_policy
from reactive_descheduler.evictor.gates import ORDER
from reactive_descheduler.strategies import PLUGINS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    return [dedent(text) for _, found, text in BLOCK.findall(README) if found == language]


def commands() -> Iterator[list[str]]:
    """Yield the words of each command line in the README, pipes taken apart."""
    for block in blocks("sh"):
        lines = re.sub(r"(\||\\)\n\s*", r"\1 ", block).splitlines()
        for line in lines:
            for part in line.split("|"):
                if words := shlex.split(part, comments=True):
                    yield words


OURS = [words for words in commands() if words[0] == "reactive-descheduler"]
SCRIPTS = sorted(set(re.findall(r"(?:scripts|\.ci)/[a-z-]+", README)))


def test_the_commands_were_found() -> None:
    assert {words[1] for words in OURS} >= {"validate", "plan", "run"}
    assert {"scripts/demo", "scripts/test", "scripts/check", ".ci/run"} <= set(SCRIPTS)


@pytest.mark.parametrize("words", OURS, ids=" ".join)
def test_a_command_line_is_one_that_the_program_takes(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    name, *arguments = words[1:]
    command = program.get_command(click.Context(program), name)
    assert command is not None
    command.make_context(name, list(arguments))
    for argument in arguments:
        if "/" in argument:
            assert Path(argument).is_file()


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_can_be_run(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)


@pytest.mark.parametrize("policy", blocks("yaml"))
def test_a_policy_is_valid(policy: str) -> None:
    assert load_policy(policy, source="README.md", plugins=PLUGINS).warnings == ()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    missing = [
        target for target in targets if "://" not in target and not (page.parent / target).exists()
    ]
    assert missing == []


def test_every_strategy_is_told_of() -> None:
    (section,) = re.findall(r"^## What it does\n(.*?)^## ", README, re.MULTILINE | re.DOTALL)
    assert [name for name in PLUGINS if name not in section] == []


def test_the_gates_stand_in_their_order() -> None:
    (diagram,) = blocks("text")
    told = diagram[diagram.index("gates: ") :]
    assert [word for word in re.findall(r"\w+", told) if word in ORDER] == list(ORDER)


MODULE = re.compile(
    r"`((?:cli|app|client|cache|triggers|controller|kit|strategies|guardrails|"
    r"framework|evictor|observability|api|config|docs|tests)/[\w/.]*)`"
)


def test_every_place_in_the_architecture_is_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    places = set(MODULE.findall(text)) - {
        "strategies/my_strategy.py",
        "guardrails/my_rule.py",
        "evictor/gates/my_gate.py",
    }
    package = ROOT / "reactive_descheduler"
    assert len(places) > 30
    assert [p for p in places if not ((package / p).exists() or (ROOT / p).exists())] == []
