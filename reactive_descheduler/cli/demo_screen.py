"""How the view of the demo looks: a renderable that fits itself into any terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from reactive_descheduler.cli.demo_board import Board, NodeRow, PodMark, State, folded, shortened
from reactive_descheduler.cli.demo_report import clock_time, live_text, since_seen
from reactive_descheduler.cli.demo_timeline import Step

_LEAST_STEPS = 6
"""Lines that are left to the timeline, however many Pods there are."""
_LOW, _NARROW = 20, 60
"""Lines and columns below which what to try gives way to what happens."""
_MARKS: dict[State, tuple[str, str, str]] = {
    "ready": ("●", "*", "green"),
    "starting": ("○", "o", "yellow"),
    "going": ("✗", "x", "red"),
    "ended": ("■", "-", "dim"),
}
"""Mark, the same in ASCII, and style."""
_KINDS = {
    "change": "bold cyan",
    "seen": "cyan",
    "to go": "yellow",
    "held": "magenta",
    "evicted": "bold red",
    "refused": "magenta",
    "deleted": "red",
    "ready": "green",
}
_TAINT, _WHEN, _KIND = 24, 12, 8
"""Widths of columns; a usual taint is 24 wide."""


@dataclass(frozen=True, slots=True)
class Screen:
    """`export`: how to reach the cluster; `tries`: commands and what they mean."""

    board: Board
    export: str
    tries: Sequence[tuple[str, str]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, height = options.max_width, options.height or console.height
        top = console.render_lines(self._top(width, height), _lines_of(options))
        below = height - len(top) - 1
        room = max(1, below - min(_LEAST_STEPS, below // 2))
        nodes = _nodes(console, options, self.board.rows, room)
        left = max(0, below - len(nodes))
        steps = console.render_lines(timeline(self.board.so_far.steps, left), _lines_of(options))
        rule = console.render_lines(
            Text(("-" if options.ascii_only else "─") * width, "dim"), _lines_of(options)
        )
        for line in (*top, *nodes, *rule, *steps)[:height]:
            yield from line
            yield Segment.line()

    def _top(self, width: int, height: int) -> RenderableType:
        rows, so_far = self.board
        pods = [pod for row in rows for pod in row.pods]
        nodes = sum(bool(row.name) for row in rows)
        ready = sum(pod.state == "ready" for pod in pods)
        head = Table.grid(expand=True)
        head.add_column(no_wrap=True, overflow="crop", ratio=1)
        head.add_column(no_wrap=True, overflow="crop", style="dim")
        head.add_row(
            f"{nodes} nodes, {ready} of {len(pods)} Pods Ready;"
            f" {so_far.evicted} evicted, {so_far.replaced} replaced",
            " Ctrl-C ends it",
        )
        # Cut where the terminal ends, not between the words.
        starts = range(0, len(self.export), width)
        exports = (Text(self.export[start : start + width], "bold") for start in starts)
        lines: list[RenderableType] = [head, *exports]
        if height >= _LOW and width >= _NARROW:
            wide = max(len(command) for command, _ in self.tries)
            lines += [
                _one_line(f"{command:{wide}}", (f"  # {meaning}", "dim"))
                for command, meaning in self.tries
            ]
        return Group(*lines, Text(""))


def _nodes(
    console: Console, options: ConsoleOptions, rows: Sequence[NodeRow], room: int
) -> list[list[Segment]]:
    """Draw each Pod if there is room for that, else numbers, else the first nodes only."""
    ascii_only, lines_of = options.ascii_only, _lines_of(options)
    lines: list[list[Segment]] = []
    for pods in (_each, _counted):
        table = Table.grid(padding=(0, 2, 0, 0), expand=True)
        table.add_column(no_wrap=True, overflow="crop", max_width=options.max_width // 4)
        table.add_column(overflow="fold", max_width=max(_TAINT, options.max_width // 4))
        table.add_column(overflow=lines_of.overflow or "fold", ratio=1)
        for row in rows:
            table.add_row(row.name or "no node", _condition(row), pods(row.pods, ascii_only))
        lines = console.render_lines(table, lines_of)
        if len(lines) <= room:
            return lines
    more = Text(f"and {len(lines) - room + 1} more lines", "dim")
    return [*lines[: room - 1], *console.render_lines(more, lines_of)]


def _condition(row: NodeRow) -> Text:
    return Text("  ").join(
        [
            *([] if row.ready else [Text("not Ready", "bold red")]),
            *([Text("cordoned", "yellow")] if row.cordoned else []),
            *(Text(taint, "red") for taint in row.taints),
            *(Text(label, "dim") for label in row.labels),
        ]
    )


def _each(pods: Sequence[PodMark], ascii_only: bool) -> Text:
    return Text(" ").join(
        Text.assemble(
            (_MARKS[pod.state][ascii_only], _MARKS[pod.state][2]),
            (
                pod.group if pod.by_daemon_set else pod.name,
                "dim" if pod.by_daemon_set and pod.state == "ready" else "",
            ),
        )
        for pod in pods
    )


def _counted(pods: Sequence[PodMark], ascii_only: bool) -> Text:
    counts = Counter((pod.group, pod.state) for pod in pods)
    parts = [
        Text.assemble((_MARKS[state][ascii_only], _MARKS[state][2]), f"{group} {count}")
        for (group, state), count in counts.items()
    ]
    return Text(" ", no_wrap=True).join(parts)


def timeline(steps: Sequence[Step], count: int) -> RenderableType:
    """Draw the latest that fit into `count` lines; names of Pods stand below each other."""
    rows = folded(steps)
    shown = rows[max(0, len(rows) - count) :]
    if not shown and count:
        return _one_line(("Nothing has happened yet: change something.", "dim"))
    wide = max((len(shortened(step.pod)) for step in shown), default=0)
    return Group(*(_line(step, wide) for step in shown))


def _line(step: Step, wide: int) -> Text:
    pod = f"{shortened(step.pod):{wide}}  " if step.pod else ""
    when = since_seen(step) if step.kind != "change" else ""
    return _one_line(
        (f"{when or clock_time(step):>{_WHEN}}  ", "dim"),
        (f"{step.kind:{_KIND}} ", _KINDS.get(step.kind, "")),
        pod,
        shortened(live_text(step)),
    )


def _one_line(*parts: str | tuple[str, str]) -> Text:
    return Text.assemble(*parts, no_wrap=True)


def _lines_of(options: ConsoleOptions) -> ConsoleOptions:
    """Let a part be as high as it is; padding to the screen's height is for the whole."""
    return options.update(height=None, overflow="crop" if options.ascii_only else "ellipsis")
