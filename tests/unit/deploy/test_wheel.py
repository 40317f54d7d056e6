"""The built wheel: an installed program has all that it reads beside its code."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from reactive_descheduler.cli.demo_stage import POLICY

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "reactive_descheduler"


def test_the_wheel_holds_every_file_of_the_package(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", tmp_path],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    there = {path.relative_to(ROOT) for path in PACKAGE.rglob("*") if path.is_file()}
    caches = {path for path in there if any(part[0] in "._" for part in path.parent.parts)}
    assert POLICY.relative_to(ROOT) in there
    assert {str(path) for path in there - caches} <= held
