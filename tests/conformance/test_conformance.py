"""Holds the full pass to what upstream evicts, on every case that asks for nothing unbuilt."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import cast

import pytest

from tests.conformance import judge, run

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*.jsonl"))
BEYOND = Counter(
    missing[0] for file in FILES for case in run.cases(file) if (missing := run.beyond(case))
)
"""How many cases ask for what is not built, by the first thing of theirs that is missing."""


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_decides_as_upstream(file: Path) -> None:
    wrong = {
        case["name"]: complaints
        for case in judge.cases(file)
        if not run.beyond(cast(run.Case, case)) and (complaints := _complaints(case))
    }
    assert wrong == {}


def _complaints(case: judge.Case) -> list[str]:
    return judge.complaints(case, dict(run.answer(cast(run.Case, case))))


@pytest.mark.parametrize("missing", sorted(BEYOND))
def test_cases_beyond_what_is_built(missing: str) -> None:
    pytest.skip(f"{missing}: {BEYOND[missing]} cases")


def test_runs_as_a_program_and_answers_in_the_order_of_the_file() -> None:
    """Also the cases that it cannot run: their answer names what is missing."""
    file = FOLDER / "mixedprofiles.jsonl"
    done = subprocess.run(
        [sys.executable, FOLDER / "run.py", file], capture_output=True, check=True, text=True
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    cases = list(run.cases(file))
    assert [answer["name"] for answer in answers] == [case["name"] for case in cases]
    for case, answer in zip(cases, answers, strict=True):
        assert all(name in answer["error"] for name in run.beyond(case)), case["name"]
