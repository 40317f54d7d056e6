"""`demo`: a cluster in this process, the descheduler on it, and five changes to watch it at."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import click
import orjson

from reactive_descheduler.app.daemon import stopped_by_signals
from reactive_descheduler.cli import demo_report as report
from reactive_descheduler.cli.demo_play import Played, play
from reactive_descheduler.cli.demo_scenes import RENEW_LABEL, SCENES
from reactive_descheduler.cli.demo_stage import DISK_LABEL, open_stage
from reactive_descheduler.kit.clock import SystemClock
from reactive_descheduler.observability import logs

_TO_TRY = (
    ("node-1 is to be retired", "taint node node-1 example.com/retiring=yes:NoSchedule"),
    ("node-2 has no fast disk", f"label node node-2 {DISK_LABEL}-"),
    ("renew what is older than 6 s", f"label pod -l app=batch {RENEW_LABEL}=soon"),
)
"""Why, and what kubectl is told."""


@click.command()
@click.option("--unattended", is_flag=True, help="Play five scenes, judge them, and end.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="With --unattended: a timeline and a table, or all of it as data.",
)
def demo(unattended: bool, output: str) -> None:
    """Show the descheduler at work on a cluster of its own.

    By itself it starts the cluster for your own kubectl and tells what happens until Ctrl-C. With
    --unattended it plays five scenes; exit code 0 if in each the right Pods and no others were
    replaced, 1 if not.
    """
    if output == "json" and not unattended:
        raise click.UsageError("-o json goes with --unattended")
    # Warnings only: what the daemon does stands in the timeline.
    logs.set_up(verbosity=-1, stream=sys.stderr, clock=SystemClock())
    if not unattended:
        anyio.run(_by_hand)
        return
    say = click.echo if output == "text" else _nothing
    document = anyio.run(partial(_unattended, say))
    if output == "json":
        click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z))
    if not document["ok"]:
        sys.exit(1)


async def _unattended(say: Callable[[str], object]) -> dict[str, object]:
    clock = SystemClock()
    began = clock.monotonic()
    say("Starting a cluster of 5 nodes in 2 zones, and the descheduler on it ...")
    all_played: list[Played] = []
    async with open_stage() as stage:
        set_up = clock.monotonic() - began
        pods = len(stage.pods.objects)
        say(f"Ready after {set_up:.1f} s: {pods} Pods run, all lists are in.")
        for number, scene in enumerate(SCENES, start=1):
            say(f"\n{number}  {scene.title}  ({scene.strategy})")
            played = await play(stage, scene)
            say(report.timeline(played))
            for problem in played.problems:
                say(f"   WRONG  {problem}")
            all_played.append(played)
    seconds = clock.monotonic() - began
    document = report.document(all_played, set_up=set_up, seconds=seconds)
    say(f"\n{report.table(all_played)}")
    end = "as they should have" if document["ok"] else "NOT as they should have"
    say(f"Pods were replaced {end}, and no others: {seconds:.1f} s.")
    return document


async def _by_hand() -> None:
    click.echo("Starting a cluster of 5 nodes in 2 zones, and the descheduler on it ...")
    stopped = anyio.Event()
    async with stopped_by_signals(stopped.set), open_stage() as stage:
        click.echo(_invitation(stage.kubeconfig))
        stage.timeline.listeners.append(report.live_lines(click.echo))
        await stopped.wait()
    click.echo("Stopped; nothing is left behind.")


def _invitation(kubeconfig: Path) -> str:
    tries = "\n".join(f"  kubectl {command:58} # {why}" for why, command in _TO_TRY)
    return (
        f"Ready. In another terminal:\n\n  export KUBECONFIG={kubeconfig}\n{tries}\n\n"
        "What comes of it is told here, in milliseconds since the change was seen. Ctrl-C ends."
    )


def _nothing(_line: str) -> None:
    pass


if __name__ == "__main__":
    demo()
