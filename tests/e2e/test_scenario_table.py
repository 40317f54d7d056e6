"""docs/e2e.md tells what is tested end to end; the tests that exist are those that it names."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
TABLE = HERE.parents[1] / "docs" / "e2e.md"
UPSTREAM = 38
"""How many end-to-end tests upstream has."""


def collected() -> set[str]:
    """The end-to-end tests as pytest names them, from their file on."""
    printed = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "e2e"),
            *("-p", "no:cacheprovider", str(HERE)),
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=HERE.parents[1],
        timeout=20,
    ).stdout
    return {line.removeprefix("tests/e2e/") for line in printed.splitlines() if "::" in line}


def upstream_rows() -> list[tuple[int, str]]:
    """Number and last column of each row of upstream's table."""
    table = re.search(r"<!-- table: upstream -->(.*?)<!-- end -->", TABLE.read_text(), re.DOTALL)
    assert table is not None
    rows = re.findall(r"^\| (\d+) \| .*? \| (.*) \|$", table[1], re.MULTILINE)
    return [(int(number), last) for number, last in rows]


def test_each_of_upstreams_scenarios_has_a_test_or_a_reason_to_wait() -> None:
    rows = upstream_rows()
    named = {last.strip("`") for _, last in rows if last.startswith("`")}

    assert [number for number, _ in rows] == list(range(1, UPSTREAM + 1))
    assert all(last.startswith(("`test_upstream_", "waits: ")) for _, last in rows)
    assert named <= collected()


def test_every_test_stands_in_the_document() -> None:
    named = set(re.findall(r"`(test_[^`]*)`", TABLE.read_text()))
    missing = {
        test
        for test in collected()
        if not named & {test, test.partition("[")[0], test.partition("::")[0]}
    }

    assert missing == set()
    assert named <= {
        part for test in collected() for part in (test, test.split("::")[0], test.split("[")[0])
    }
