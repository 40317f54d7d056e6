"""What the demo prints: timelines and a table for people, one document for programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from reactive_descheduler.cli.demo_play import Played
from reactive_descheduler.cli.demo_timeline import Step

_WIDTH = 100


def timeline(played: Played) -> str:
    """One line a step, in milliseconds since the change; then what ran."""
    own = played.evaluations.get(played.scene.strategy, 0)
    others = sum(played.evaluations.values()) - own
    lines = [
        f"{played.milliseconds(step):+10,.1f} ms  {_told(step, step.text)}" for step in played.steps
    ]
    ran = f"{'':15}{'runs':7}  {played.scene.strategy} {own}, other strategies {others}"
    return "\n".join([*lines, ran])


def table(all_played: Sequence[Played]) -> str:
    """One row a scene."""
    found = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        caption="ms since the change, since the Pod was due, since the budget opened",
        caption_justify="left",
    )
    found.add_column("scene", no_wrap=True)
    for heading in ("replaced", "seen", "evicted", "Ready"):
        found.add_column(heading, justify="right", no_wrap=True)
    found.add_column("right Pods only")
    for played in all_played:
        found.add_row(
            played.scene.title,
            str(sum(bool(step.replaces) for step in played.steps)),
            _milliseconds(played.first("seen")),
            _span(played.first("evicted"), played.last("evicted")),
            _span(played.first("ready"), played.last("ready")),
            "\n".join(played.problems) or "yes",
        )
    # Not as wide as the terminal: a recorded session looks the same everywhere.
    console = Console(width=_WIDTH, color_system=None)
    with console.capture() as capture:
        console.print(found)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()).strip("\n")


def document(all_played: Sequence[Played], *, set_up: float, seconds: float) -> dict[str, object]:
    """Everything as data. `set_up`: seconds until the first scene; `seconds`: in all."""
    return {
        "ok": not any(played.problems for played in all_played),
        "setUpSeconds": round(set_up, 3),
        "seconds": round(seconds, 3),
        "scenes": [_scene(played) for played in all_played],
    }


def live_lines(print_line: Callable[[str], object]) -> Callable[[Step], None]:
    """Return a listener that prints each step, in milliseconds since its change was seen."""

    def listen(step: Step) -> None:
        print_line(f"{clock_time(step)}{since_seen(step):>13}  {_told(step, live_text(step))}")

    return listen


def live_text(step: Step) -> str:
    """Name the strategy where it is news: with a change, or where time alone led to it."""
    if step.kind == "seen":
        return f"by the descheduler, for {step.strategy}"
    if step.strategy and step.seen is None and step.kind != "evicted":
        return f"{step.strategy}: {step.text}"
    return step.text


def clock_time(step: Step) -> str:
    """Return the time of day in UTC, to the millisecond."""
    return f"{step.time:%T.%f}"[:-3]


def since_seen(step: Step) -> str:
    """Return the milliseconds since the change that led there was seen; "" if none did."""
    if step.seen is None:
        return ""
    return f"{(step.time - step.seen).total_seconds() * 1000:+,.1f} ms"


def _told(step: Step, text: str) -> str:
    told = f"{step.pod:24}  {text}" if step.pod else text
    return f"{step.kind:7}  {told}"


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


def _span(first: float | None, last: float | None) -> str:
    if first is None or first == last:
        return _milliseconds(first)
    return f"{_milliseconds(first)} - {_milliseconds(last)}"


def _milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
