"""Holds the full pass to what upstream evicts, on every case of the corpus."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from tests.conformance import judge, run

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*.jsonl"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_decides_as_upstream(file: Path) -> None:
    wrong = {
        case["name"]: complaints for case in judge.cases(file) if (complaints := _complaints(case))
    }
    assert wrong == {}


def _complaints(case: judge.Case) -> list[str]:
    return judge.complaints(case, dict(run.answer(cast(run.Case, case))))


def test_runs_as_a_program_and_answers_in_the_order_of_the_file() -> None:
    file = FOLDER / "mixedprofiles.jsonl"
    done = subprocess.run(
        [sys.executable, FOLDER / "run.py", file], capture_output=True, check=True, text=True
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    cases = list(run.cases(file))
    assert [answer["name"] for answer in answers] == [case["name"] for case in cases]
