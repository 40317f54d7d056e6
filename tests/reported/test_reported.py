"""Holds the whole daemon to what is right in cases that people reported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from reactive_descheduler.sandbox.documents import JsonObject, objects
from tests.reported import judge, player, run

FOLDER = Path(__file__).parent
FILES = (FOLDER / "cases.jsonl", FOLDER / "more_cases.jsonl")
CASES = {str(case["id"]): case for file in FILES for case in judge.cases(file)}


def complaints(case: judge.Case) -> list[str]:
    seen = run.without_expectations(cast(JsonObject, case))
    return judge.complaints(case, list(run.plays(seen)))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_does_what_is_right(case: judge.Case) -> None:
    if missing := run.WAITING.get(str(case["id"])):
        pytest.skip(f"waits for {missing}")
    assert complaints(case) == []


@pytest.mark.parametrize("name", run.WAITING)
def test_what_waits_is_still_wrong(name: str) -> None:
    assert complaints(CASES[name]) != []


def test_the_runner_cannot_see_what_is_expected() -> None:
    for file in FILES:
        for case in run.cases(file):
            assert "expect" not in case
            assert all("expect" not in variant for variant in objects(case, "variants"))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"settings": {"warp_s": 1}}, "warp_s"),
        ({"events": [{"at": 0, "op": "start"}, {"at": 1, "op": "explode"}]}, "explode"),
    ],
    ids=["setting", "op"],
)
def test_what_the_runner_does_not_know_it_names(change: JsonObject, named: str) -> None:
    case: JsonObject = {"id": "x", "objects": [], **change}
    assert named in str(player.play(case, {})["error"])


def test_runs_as_a_program_with_one_line_for_each_time(tmp_path: Path) -> None:
    file = tmp_path / "few.jsonl"
    name = "affinity-nodefit-false"
    file.write_text(json.dumps(CASES[name]))
    done = subprocess.run(
        [sys.executable, FOLDER / "run.py", file], capture_output=True, check=True, text=True
    )
    observed = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one.get("under") for one in observed] == [None, {"corrections": "none"}]
    assert all(one["id"] == name and "error" not in one for one in observed)
    assert judge.complaints(CASES[name], observed) == []
