"""`demo`: a cluster in this process, the descheduler on it, and five changes to watch it at."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import click

from reactive_descheduler.cli.exit_codes import ExitCode
from reactive_descheduler.cli.group import Command, Option
from reactive_descheduler.cli.output import print_json

_STARTING = "Starting a cluster of 5 nodes in 2 zones, and the descheduler on it ..."


@click.command("demo", cls=Command)
@click.option("--unattended", is_flag=True, help="Play five scenes, judge them, and end.")
@click.option(
    "-o",
    "--output",
    cls=Option,
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="With --unattended: a timeline and a table, or all of it as data.",
)
@click.option(
    "--plain",
    is_flag=True,
    help="By hand: lines instead of a screen, as where there is no terminal.",
)
def command(*, unattended: bool, output: str, plain: bool) -> ExitCode:
    """Show the descheduler at work on a cluster of its own.

    Starts the cluster for your own kubectl and shows what happens until Ctrl-C. With --unattended
    it plays five scenes instead and exits with 0 if in each the right Pods and no others were
    replaced, with 1 if not.
    """
    if output == "json" and not unattended:
        raise click.UsageError("-o json goes with --unattended")

    import sys

    import anyio

    from reactive_descheduler.kit.clock import SystemClock
    from reactive_descheduler.observability.logs import set_up

    # Warnings only: what the daemon does stands in the timeline.
    set_up(verbosity=-1, stream=sys.stderr, clock=SystemClock())
    if not unattended:
        click.echo(_STARTING)
        from reactive_descheduler.cli.demo_by_hand import by_hand

        anyio.run(partial(by_hand, plain=plain))
        return ExitCode.OK
    say = _nothing if output == "json" else click.echo
    document = anyio.run(partial(_unattended, say))
    if output == "json":
        print_json(document)
    return ExitCode.OK if document["ok"] else ExitCode.FAILURE


async def _unattended(say: Callable[[str], object]) -> dict[str, object]:
    from reactive_descheduler.cli import demo_report as report
    from reactive_descheduler.cli.demo_play import Played, play
    from reactive_descheduler.cli.demo_scenes import SCENES
    from reactive_descheduler.cli.demo_stage import open_stage
    from reactive_descheduler.kit.clock import SystemClock

    clock = SystemClock()
    began = clock.monotonic()
    say(_STARTING)
    all_played: list[Played] = []
    async with open_stage() as stage:
        set_up = clock.monotonic() - began
        say(f"Ready after {set_up:.1f} s; {len(stage.pods.objects)} Pods run.")
        for number, scene in enumerate(SCENES, start=1):
            say(f"\n{number}  {scene.title}: {scene.strategy}")
            played = await play(stage, scene)
            say(report.timeline(played))
            for problem in played.problems:
                say(f"        WRONG  {problem}")
            all_played.append(played)
    seconds = clock.monotonic() - began
    document = report.document(all_played, set_up=set_up, seconds=seconds)
    say(f"\n{report.table(all_played)}\n")
    say(
        f"{'All scenes went right' if document['ok'] else 'Something went WRONG'}: {seconds:.1f} s."
    )
    return document


def _nothing(_line: str) -> None:
    pass
