"""The demo as a stranger runs it; and the session in the README is what it prints."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(100)]

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "reactive_descheduler", "demo")
SESSION = re.compile(r"^\$ \./scripts/demo --unattended\n(.+?)^```$", re.MULTILINE | re.DOTALL)
KINDS = ("change", "to go", "evicted", "ready", "runs")
"""Steps that each run has. Whether a settle time is still on when somebody looks is up to the
machine."""


def shape(session: str) -> dict[str, set[str]]:
    """Return what is said in each scene, and under "" around them, less names and numbers."""
    heading, scenes = "", {"": set[str]()}
    for line in session.splitlines():
        if line[:1].isdigit():
            heading = line
            scenes[heading] = set()
        elif step := re.match(r"[ +\-,.\d]+ ms  (.*)| +(runs .*)", line):
            told = step[1] or step[2]
            if told.startswith(KINDS):
                scenes[heading].add(_without_particulars(told))
        else:
            scenes[""].add(_without_particulars(line))
    return scenes


def _without_particulars(text: str) -> str:
    text = re.sub(r"\b[a-z]+-[0-9a-z]{10}-[0-9a-z]{5}\b", "POD", text)
    text = re.sub(r"\d[\d.,:TZ-]*", "0", text)
    return re.sub(r"[─ ]+", " ", text).replace("0 - 0", "0").strip()


def test_unattended_it_ends_well_and_the_readme_shows_it() -> None:
    done = subprocess.run(
        [*COMMAND, "--unattended"], capture_output=True, text=True, timeout=90, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    session = SESSION.search((ROOT / "README.md").read_text())
    assert session is not None
    assert shape(session[1]) == shape(done.stdout)


@pytest.fixture
def by_hand(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    environment = os.environ | {"TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True, env=environment) as process:
        yield process
        process.kill()


def test_by_hand_it_invites_and_leaves_nothing_behind(
    by_hand: subprocess.Popen[str], tmp_path: Path
) -> None:
    assert by_hand.stdout is not None
    invitation = ""
    for line in by_hand.stdout:
        invitation += line
        if "Ctrl-C" in line:
            break
    kubeconfig = re.search(r"export KUBECONFIG=(\S+)", invitation)
    assert kubeconfig is not None
    assert Path(kubeconfig[1]).is_relative_to(tmp_path)
    assert Path(kubeconfig[1]).stat().st_mode & 0o077 == 0
    by_hand.send_signal(signal.SIGINT)
    rest, _ = by_hand.communicate(timeout=20)
    assert by_hand.returncode == 0
    assert rest.endswith("Stopped; nothing is left behind.\n")
    assert list(tmp_path.iterdir()) == []
