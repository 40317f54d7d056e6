"""Plays the cases of a file, each as it stands and once more for each variant; one JSON line, the
observation, for each time. Cases that cannot be right yet are named on standard error.

Usage: python tests/reported/run.py FILE.jsonl [FILE.jsonl ...]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from reactive_descheduler.sandbox.documents import JsonObject, mapping, objects
from tests.reported.player import Case, Play, play

WAITING = {
    "react-mass-taint-brake": "brakes",
    "loop-same-node-again": "cooldown",
    "plugins-fight": "cooldown",
    "window-closed": "time windows",
    "lease-lost-mid-batch": "leader election",
    "standby-takes-over": "leader election",
}
"""Cases that cannot be right yet: what they need is not built. A test fails once one of them is."""


def cases(path: Path) -> Iterator[Case]:
    """Yield the cases of a file, without what is expected of them."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield without_expectations(json.loads(line))


def without_expectations(case: Case) -> Case:
    """Return a case as the runner may see it."""
    hidden: Case = {name: value for name, value in case.items() if name != "expect"}
    if "variants" in case:
        hidden["variants"] = [{"under": under} for under in _variants(case)]
    return hidden


def plays(case: Case) -> Iterator[Play]:
    """Play a case as it stands and under each of its variants."""
    yield play(case, {})
    for under in _variants(case):
        yield play(case, under)


def _variants(case: Case) -> list[JsonObject]:
    return [mapping(variant, "under") for variant in objects(case, "variants")]


def main() -> int:
    """Play every case of the files named on the command line."""
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    for path in sys.argv[1:]:
        for case in cases(Path(path)):
            for observed in plays(case):
                print(json.dumps(observed), flush=True)
            if missing := WAITING.get(str(case["id"])):
                print(f"{case['id']} waits for {missing}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
