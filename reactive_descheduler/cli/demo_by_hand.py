"""The demo by hand: the audience changes the cluster with its own kubectl, and sees what comes of
it until a signal ends it."""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import click
from rich.console import Console

from reactive_descheduler.cli.demo_board import Journal
from reactive_descheduler.cli.demo_changes import (
    Describe,
    budget_changes,
    listener,
    node_changes,
    pod_changes,
    workload_changes,
)
from reactive_descheduler.cli.demo_invitation import invite, told
from reactive_descheduler.cli.demo_screen import timeline as draw_timeline
from reactive_descheduler.cli.demo_stage import Stage, open_stage
from reactive_descheduler.cli.demo_timeline import Timeline
from reactive_descheduler.cli.demo_view import ScreenView, can_show_screen, show_lines
from reactive_descheduler.kit.clock import SystemClock
from reactive_descheduler.observability.logs import set_up
from reactive_descheduler.sandbox.mirror import Mirror

_WATCHED: tuple[tuple[str, str, Describe], ...] = (
    ("nodes", "node", node_changes),
    ("deployments", "deployment", workload_changes),
    ("statefulsets", "statefulset", workload_changes),
    ("daemonsets", "daemonset", workload_changes),
    ("poddisruptionbudgets", "budget", budget_changes),
)
"""Resource, what one is called, and what is told of its changes."""
_LAST = 20
"""Lines that stay to be read when the screen is gone."""
_LINES_FOLLOW = (
    "\nWhat happens is told here, in milliseconds since the descheduler saw the change."
    " Ctrl-C ends it."
)


async def by_hand(*, plain: bool) -> None:
    """Run the demo until SIGINT, SIGTERM or SIGHUP; draw it if this is a terminal, not `plain`."""
    console = Console(highlight=False)
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        async with open_stage() as stage, _watched(stage) as nodes:
            invitation = invite(stage.kubeconfig, stage.pods.objects.values())
            click.echo(told(invitation))
            if plain or not can_show_screen(console):
                click.echo(_LINES_FOLLOW)
                showing = show_lines(stage.timeline, click.echo)
            else:
                view = ScreenView(console, invitation, nodes=nodes, pods=stage.pods)
                showing = _on_screen(console, view, stage.timeline)
            async with showing:
                async for _ in signals:
                    break
    click.echo("Stopped; nothing is left behind.")


@asynccontextmanager
async def _on_screen(console: Console, view: ScreenView, timeline: Timeline) -> AsyncIterator[None]:
    """Show the screen; when it is gone, its last lines and all warnings stay to be read."""
    journal, warnings, clock = Journal(), io.StringIO(), SystemClock()
    timeline.listeners.append(journal.listen)
    set_up(verbosity=-1, stream=warnings, clock=clock)
    try:
        async with view.shown(timeline, journal):
            yield
    finally:
        set_up(verbosity=-1, stream=sys.stderr, clock=clock)
        sys.stderr.write(warnings.getvalue())
    if steps := journal.so_far().steps:
        console.print(draw_timeline(steps, _LAST))


@asynccontextmanager
async def _watched(stage: Stage) -> AsyncIterator[Mirror]:
    """Tell what is changed from here on; give the mirror of the nodes."""
    mirrors = {plural: Mirror(stage.client, plural) for plural, _, _ in _WATCHED}
    async with anyio.create_task_group() as watching:
        for mirror in mirrors.values():
            watching.start_soon(mirror.run)
        for plural, kind, describe in _WATCHED:
            while not mirrors[plural].version:
                await mirrors[plural].next_change()
            mirrors[plural].listeners.append(listener(stage.timeline, kind, describe))
        stage.pods.listeners.append(listener(stage.timeline, "", pod_changes))
        yield mirrors["nodes"]
        watching.cancel_scope.cancel()
