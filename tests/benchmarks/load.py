"""Updates Pods' statuses at a steady rate, as the kubelets of a busy cluster do.

A process of its own, so that its work delays nobody's stop-watch. It never has more than a few
requests open: an API server that cannot keep up gets less, and what it got is told at the end.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tests.e2e.api import connect, read_kubeconfig

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

AT_ONCE = 8
"""Requests open at a time."""


@dataclass(slots=True)
class Load:
    """What came of the load, known once it has ended."""

    updates_a_second: float = 0.0
    idle_cpu: float = 0.0
    """Share of all processors that nobody used meanwhile."""


@asynccontextmanager
async def under_load(kubeconfig: Path, *, rate: int, app: str) -> AsyncIterator[Load]:
    """Update the Pods of an app `rate` times a second for the length of a block."""
    load = Load()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.benchmarks.load", str(kubeconfig), app, str(rate)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    await process.stdout.readline()  # it has begun
    idle, whole = _processor_time()
    try:
        yield load
    finally:
        idle_after, whole_after = _processor_time()
        told, _ = await process.communicate(b"")  # the end of its input ends it
    load.updates_a_second = float(told)
    load.idle_cpu = (idle_after - idle) / (whole_after - whole)


def _processor_time() -> tuple[int, int]:
    """Ticks that all processors were idle, and all their ticks."""
    ticks = list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]))
    return ticks[3] + ticks[4], sum(ticks)


async def _update(kubeconfig: Path, app: str, rate: int) -> float:
    """Update until standard input ends; gives the updates a second that were answered."""
    answered = 0
    begin = time.monotonic()
    turns = iter(range(sys.maxsize))

    async with connect(read_kubeconfig(kubeconfig)) as api:
        pods = await api.pods("default", app)

        async def work() -> None:
            nonlocal answered
            for turn in turns:
                await asyncio.sleep(begin + turn / rate - time.monotonic())
                name = pods[turn % len(pods)].metadata.name
                condition = {"type": "e2e.test/Busy", "status": "True", "reason": f"Turn{turn}"}
                await api.request(
                    "PATCH",
                    f"/api/v1/namespaces/default/pods/{name}/status",
                    body={"status": {"conditions": [condition]}},
                    content="application/strategic-merge-patch+json",
                )
                answered += 1

        workers = [asyncio.create_task(work()) for _ in range(AT_ONCE)]
        click.echo("begun")
        await asyncio.to_thread(sys.stdin.read)
        seconds = time.monotonic() - begin
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return answered / seconds


@click.command(help=__doc__)
@click.argument("kubeconfig", type=click.Path(path_type=Path, exists=True))
@click.argument("app")
@click.argument("rate", type=click.IntRange(1, 1000))
def main(kubeconfig: Path, app: str, rate: int) -> None:
    """Update until standard input ends."""
    click.echo(asyncio.run(_update(kubeconfig, app, rate)))


if __name__ == "__main__":
    main()
