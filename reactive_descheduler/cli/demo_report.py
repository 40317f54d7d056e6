"""What the demo prints: timelines and a table for people, one document for programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from rich.console import Console
from rich.table import Table

from reactive_descheduler.cli.demo_play import Played
from reactive_descheduler.cli.demo_timeline import Step

_WIDTH = 100


def timeline(played: Played) -> str:
    """One line a step, in milliseconds since the change."""
    lines = [f"{played.milliseconds(step):+12,.1f} ms  {_told(step)}" for step in played.steps]
    return "\n".join(lines)


def table(all_played: Sequence[Played]) -> str:
    """One row a scene."""
    found = Table(caption="ms since the change, or since a Pod was due or its budget was opened")
    for heading in ("scene", "strategy: runs"):
        found.add_column(heading)
    for heading in ("evicted", "seen", "evicted at", "Ready at"):
        found.add_column(heading, justify="right", no_wrap=True)
    found.add_column("result")
    for played in all_played:
        runs = played.evaluations.get(played.scene.strategy, 0)
        found.add_row(
            played.scene.title,
            f"{played.scene.strategy}: {runs}",
            f"{_evicted(played)} of {len(played.expected)}",
            _milliseconds(played.first("seen")),
            _span(played.first("evicted"), played.last("evicted")),
            _milliseconds(played.last("ready")),
            "\n".join(played.problems) or "right",
        )
    # Not as wide as the terminal: a recorded session looks the same everywhere.
    console = Console(width=_WIDTH, color_system=None)
    with console.capture() as capture:
        console.print(found)
    return capture.get().rstrip("\n")


def document(all_played: Sequence[Played], *, set_up: float, seconds: float) -> dict[str, object]:
    """Everything as data. `set_up`: seconds until the first scene; `seconds`: in all."""
    return {
        "ok": not any(played.problems for played in all_played),
        "setUpSeconds": round(set_up, 3),
        "seconds": round(seconds, 3),
        "scenes": [_scene(played) for played in all_played],
    }


def live_lines(print_line: Callable[[str], object]) -> Callable[[Step], None]:
    """Return a listener that prints each step, in milliseconds since the last change seen."""
    seen: datetime | None = None

    def listen(step: Step) -> None:
        nonlocal seen
        if step.kind == "seen":
            seen = step.time
        since = "" if seen is None else f"{(step.time - seen).total_seconds() * 1000:+,.1f} ms"
        print_line(f"{step.time:%T.%f}"[:-3] + f"{since:>15}  {_told(step)}")

    return listen


def _told(step: Step) -> str:
    return f"{step.kind:8}  " + " ".join(filter(None, (step.pod, step.text)))


def _scene(played: Played) -> dict[str, object]:
    return {
        "name": played.scene.name,
        "title": played.scene.title,
        "strategy": played.scene.strategy,
        "ok": not played.problems,
        "problems": list(played.problems),
        "since": played.since,
        "expected": list(played.expected),
        "evaluations": dict(played.evaluations),
        "seenMs": _rounded(played.first("seen")),
        "firstEvictedMs": _rounded(played.first("evicted")),
        "lastEvictedMs": _rounded(played.last("evicted")),
        "readyMs": _rounded(played.last("ready")),
        "timeline": [
            {"ms": _rounded(played.milliseconds(step)), **step._asdict()} for step in played.steps
        ],
    }


def _evicted(played: Played) -> int:
    return sum(step.kind == "evicted" for step in played.steps)


def _span(first: float | None, last: float | None) -> str:
    if first is None or first == last:
        return _milliseconds(first)
    return f"{_milliseconds(first)} - {_milliseconds(last)}"


def _milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
