"""The demo by hand: in a terminal, with a real kubectl; and the screen in the README is its own."""

from __future__ import annotations

import fcntl
import os
import re
import select
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import orjson
import pytest

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(100)]
needs_kubectl = pytest.mark.skipif(
    shutil.which("kubectl") is None, reason="kubectl is not installed"
)

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "reactive_descheduler", "demo")
README_SCREEN = re.compile(r"^\$ \./scripts/demo\n(5 nodes, .+?)^```$", re.MULTILINE | re.DOTALL)
WIDTH, HEIGHT = 100, 32
CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
HOME = "\x1b[H"
"""Each drawing of the screen starts with it."""


class Terminal:
    """A pseudo-terminal with the demo in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._ours, theirs = os.openpty()
        self._text = ""
        self.resize(WIDTH, HEIGHT)
        # A test runner with several workers tells them a width of its own, which would go before
        # the terminal's.
        environment = {
            name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")
        } | {"TMPDIR": str(directory), "TERM": "xterm-256color"}
        self.process = subprocess.Popen(
            COMMAND,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
            start_new_session=True,
        )
        os.close(theirs)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def resize(self, width: int, height: int) -> None:
        self._size = width, height
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def until(self, wanted: Callable[[list[str]], bool], *, seconds: float = 30) -> list[str]:
        """Return the first drawing that is wanted, less colours and blanks at the lines' ends."""
        deadline = time.monotonic() + seconds
        lines: list[str] = []
        while self._read() and time.monotonic() < deadline:
            lines = CONTROL.sub("", self._text.rpartition(HOME)[2]).split("\r\n")
            stripped = [line.rstrip() for line in lines]
            if (len(lines[-1]), len(lines)) == self._size and wanted(stripped):
                return stripped
        pytest.fail("\n".join(["not seen on the screen:", *lines]))

    @property
    def drawings(self) -> int:
        return self._text.count(HOME)

    def rest(self) -> str:
        """Wait for the end; return what was left on the terminal's own screen."""
        while self._read():
            pass
        self.process.wait(timeout=20)
        return CONTROL.sub("", self._text.rpartition("\x1b[?1049l")[2]).replace("\r\n", "\n")

    def _read(self) -> bool:
        if not select.select([self._ours], [], [], 0.1)[0]:
            return True
        try:
            block = os.read(self._ours, 1 << 16)
        except OSError:  # the other side is closed
            return False
        self._text += block.decode(errors="ignore")
        return bool(block)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    # pytest's own directories have longer names than lines have room for.
    with TemporaryDirectory(prefix="demo-") as directory:
        terminal = Terminal(Path(directory))
        yield terminal
        terminal.close()


def is_calm(lines: list[str]) -> bool:
    return lines[0].startswith("5 nodes, 17 of 17 Pods Ready")


def kubectl(export: str, *arguments: str) -> None:
    kubeconfig = shlex.split(export)[1].removeprefix("KUBECONFIG=")
    subprocess.run(
        ["kubectl", *arguments],
        env=os.environ | {"KUBECONFIG": kubeconfig},
        check=True,
        capture_output=True,
        timeout=30,
    )


def shape(screen: list[str]) -> set[str]:
    """Return what stands on a screen, less names, numbers, and who is where at the moment.

    Whether a settle time is still on when somebody looks is up to the machine.
    """
    lines = {re.sub(r" [●○✗].*", "", line) for line in screen if " held " not in line}
    lines = {re.sub(r"\b[a-z]+-[0-9a-z]{5}\b", "POD", line) for line in lines}
    lines = {re.sub(r"KUBECONFIG=.*", "KUBECONFIG", line) for line in lines}
    lines = {re.sub(r"[+\d][\d.,:]*", "0", line) for line in lines}
    return {" ".join(line.split()) for line in lines if line}


@needs_kubectl
def test_on_the_screen_pods_move_as_the_readme_shows(terminal: Terminal) -> None:
    lines = terminal.until(is_calm)
    export, *tries = lines[1:5]
    assert [line.rpartition("#")[0].split()[:2] for line in tries] == [
        ["kubectl", "taint"],
        ["kubectl", "label"],
        ["kubectl", "scale"],
    ]
    for number, line in enumerate(tries[:2], start=1):
        _, *arguments = shlex.split(line, comments=True)
        kubectl(export, *arguments)

        def is_over(screen: list[str], number: int = number) -> bool:
            last = next(line for line in reversed(screen) if line)
            changes = sum(" change " in line for line in screen)
            return is_calm(screen) and changes == number and " ready " in last

        lines = terminal.until(is_over)
    tainted = next(line for line in lines if "retiring=yes:NoSchedule   " in line)
    assert re.findall(r"[●○✗]\S+", tainted) == ["●agent"]
    shown = README_SCREEN.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert shown is not None
    assert shape(shown[1].splitlines()) == shape(lines)


@needs_kubectl
def test_whatever_is_changed_by_hand_is_told_and_drawn_at_ease(terminal: Terminal) -> None:
    export = terminal.until(is_calm)[1]
    began, before = time.monotonic(), terminal.drawings
    for arguments, told in (
        ("cordon node-3", "node-3 is cordoned"),
        ("uncordon node-3", "node-3 is uncordoned"),
        ("label node node-3 rack=7", "node-3 gets the label rack=7"),
        ("scale deployment web --replicas=30", "web is scaled from 4 to 30"),
        ("drain node-4 --ignore-daemonsets", "not by the descheduler, from node-4"),
        ("label pod -l app=batch renew=soon", "PodLifeTime: older than 6 s"),
        ("delete deployment batch", "deployment batch is deleted"),
    ):
        kubectl(export, *arguments.split())
        terminal.until(lambda lines, told=told: any(told in line for line in lines))  # type: ignore[misc]
    assert terminal.drawings - before <= 8 * (time.monotonic() - began) + 1


def test_a_terminal_may_change_its_size(terminal: Terminal) -> None:
    terminal.until(is_calm)
    for width, height in ((80, 24), (40, 10), (160, 50)):
        terminal.resize(width, height)
        terminal.process.send_signal(signal.SIGWINCH)
        terminal.until(lambda lines: lines[0].startswith("5 nodes"))


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda each: each.name
)
def test_the_end_leaves_nothing_behind(terminal: Terminal, number: signal.Signals) -> None:
    export = terminal.until(is_calm)[1]
    (kubeconfig,) = terminal.directory.glob("*/kubeconfig")
    assert export == f"export KUBECONFIG={kubeconfig}"
    server = urlsplit(orjson.loads(kubeconfig.read_bytes())["clusters"][0]["cluster"]["server"])
    terminal.process.send_signal(number)
    assert terminal.rest() == "Stopped; nothing is left behind.\n"
    assert terminal.process.returncode == 0
    assert list(terminal.directory.iterdir()) == []
    with socket.socket() as probe:
        assert probe.connect_ex((server.hostname, server.port)) != 0
