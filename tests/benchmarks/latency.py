"""How long after a node is tainted the request to evict a Pod from it arrives.

Against a real control plane or the sandbox: from sending the PATCH that taints the node to the
arrival of the request at a loopback proxy in front of the API server. Against a stub: from the
watch line sent to the arrival at the stub. Debounce and settle are 0, all Pods of the node but one
tolerate the taint. The cluster is idle but for --load updates a second of those Pods' statuses, on
the real server. Exit 1 if a limit is passed, or the load was not reached.

Against the stub the bare client of `floor.py` is measured too, in turn: how much longer the
descheduler takes says more on a noisy machine. It decides nothing; the limits stay as they are.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from tests.benchmarks.arrivals import Arrivals
from tests.benchmarks.clusters import FILLER, real_trial, sandbox_trial
from tests.benchmarks.load import Load, under_load
from tests.benchmarks.stub_server import stub_trial
from tests.e2e.descheduler import running_descheduler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

WARM_UP = 10
"""Samples that are not counted: the first ones open connections and fill caches."""
SAMPLE_WITHIN = 30.0
"""Seconds that one sample may take, the start of the descheduler included."""
IDLE = 0.03
"""Seconds of rest before and after each sample."""
POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: taints
  plugins:
    deschedule:
      enabled: [RemovePodsViolatingNodeTaints]
reactive:
  debounce: {quiet: 0s, maxWait: 0s}
  settle: {default: 0s, transient: 0s}
  rateLimit: {evictionsPerSecond: 1000, burst: 1000}
  limits: {window: 1s, perWorkload: 1000}
"""


class Program(Protocol):
    """Starts what is measured."""

    def __call__(
        self, *, policy: Path, kubeconfig: Path, log: Path
    ) -> AbstractAsyncContextManager[object]: ...


class Trial(Protocol):
    """A cluster with one node to be tainted, and a kubeconfig that leads past the stop-watch."""

    kubeconfig: Path
    direct: Path
    """A kubeconfig that does not."""

    async def add_pod(self) -> str:
        """Have a Pod that does not tolerate the taint run on the node; gives its name."""

    async def taint(self) -> None:
        """Send the change."""

    async def reset(self) -> None:
        """Take the taint away, and what is left of the Pod."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Milliseconds: what is aimed at, and from where the benchmark fails."""

    target: float
    fail: float


@dataclass(frozen=True, slots=True)
class Subject:
    """What a server is measured with."""

    trial: Callable[[Arrivals, Path], AbstractAsyncContextManager[Trial]]
    count: int
    limits: dict[str, Limit]


SUBJECTS = {
    "real": Subject(real_trial, 100, {"p50": Limit(15, 15), "p99": Limit(60, 60)}),
    "sandbox": Subject(sandbox_trial, 200, {"p50": Limit(5, 5), "p99": Limit(20, 20)}),
    "stub": Subject(stub_trial, 200, {"p50": Limit(1.5, 3), "p99": Limit(6, 15)}),
}


UNDER_LOAD = {"p50": Limit(25, 25), "p99": Limit(150, 150)}
FLOOR = 1.15
"""Milliseconds that the bare client took (p50) where the stub's limits were set."""
ROUNDS = 4
"""In so many rounds the descheduler and the bare client take turns."""
REACHED = 0.95
"""Share of the load asked for from which on it counts as reached."""


async def measure(
    subject: Subject, *, count: int, load: int, program: Program = running_descheduler
) -> tuple[list[float], Load | None]:
    """Milliseconds of `count` samples, in their order, and the load if there was one.

    Raises TimeoutError if a sample takes 30 s.
    """
    arrivals = Arrivals()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        policy = directory / "policy.yaml"
        policy.write_text(POLICY)
        async with (
            subject.trial(arrivals, directory) as trial,
            program(policy=policy, kubeconfig=trial.kubeconfig, log=directory / "run.log"),
        ):
            for _ in range(WARM_UP):
                await _sample(trial, arrivals)
            if not load:
                return [await _sample(trial, arrivals) for _ in range(count)], None
            async with under_load(trial.direct, rate=load, app=FILLER) as reached:
                samples = [await _sample(trial, arrivals) for _ in range(count)]
            return samples, reached


async def measure_beside_floor(subject: Subject, *, count: int) -> tuple[list[float], list[float]]:
    """Milliseconds of the descheduler and of the bare client, measured in turn."""
    samples: list[float] = []
    floor: list[float] = []
    for _ in range(ROUNDS):
        each = max(1, count // ROUNDS)
        samples += (await measure(subject, count=each, load=0))[0]
        floor += (await measure(subject, count=each, load=0, program=running_floor))[0]
    return samples, floor


@asynccontextmanager
async def running_floor(*, policy: Path, kubeconfig: Path, log: Path) -> AsyncIterator[None]:
    """Run the bare client for the length of a block; it knows no policy."""
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.benchmarks.floor",
            str(kubeconfig),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        yield
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _sample(trial: Trial, arrivals: Arrivals) -> float:
    async with asyncio.timeout(SAMPLE_WITHIN):
        arrived = arrivals.expect(await trial.add_pod())
        await asyncio.sleep(IDLE)
        if arrived.done():
            raise RuntimeError("a Pod was to be evicted before its node was tainted")
        start = time.perf_counter()
        await trial.taint()
        milliseconds = (await arrived - start) * 1000
        await trial.reset()
        await asyncio.sleep(IDLE)
    return milliseconds


def percentiles(samples: Sequence[float]) -> dict[str, float]:
    """The median, two high percentiles (nearest rank) and the longest."""
    ordered = sorted(samples)
    ranks = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    return {
        name: round(ordered[math.ceil(share * len(ordered)) - 1], 3)
        for name, share in ranks.items()
    }


@click.command(help=__doc__)
@click.option("--server", type=click.Choice(list(SUBJECTS)), default="stub", show_default=True)
@click.option(
    "--count",
    type=click.IntRange(1, 2000),
    help="Samples after the warm-up.  [default: 100 for real, 200 for the others]",
)
@click.option(
    "--load",
    type=click.IntRange(0, 1000),
    default=0,
    help="Pod updates a second meanwhile; only with --server=real.",
)
@click.option("-o", "output", type=click.Choice(["table", "json"]), default="table")
def main(server: str, count: int | None, load: int, output: str) -> None:
    """Measure and judge."""
    if load and server != "real":
        raise click.UsageError("--load goes with --server=real")
    subject = SUBJECTS[server]
    allowed = UNDER_LOAD if load else subject.limits
    floor = 0.0
    reached: Load | None = None
    if server == "stub":
        samples, bare = asyncio.run(measure_beside_floor(subject, count=count or subject.count))
        floor = percentiles(bare)["p50"]
    else:
        samples, reached = asyncio.run(measure(subject, count=count or subject.count, load=load))
    found = percentiles(samples)
    passed = all(found[name] < limit.fail for name, limit in allowed.items()) and (
        reached is None or reached.updates_a_second >= load * REACHED
    )
    if output == "json":
        limits = {
            name: {"target": limit.target, "fail": limit.fail} for name, limit in allowed.items()
        }
        report = {"server": server, "samples": len(samples), "milliseconds": found}
        if floor:
            report["floor"] = {"p50": floor, "ratio": round(found["p50"] / floor, 2)}
        if reached is not None:
            report["load"] = {
                "updatesASecond": round(reached.updates_a_second, 1),
                "idleCpu": round(reached.idle_cpu, 3),
            }
        click.echo(json.dumps({**report, "limits": limits, "passed": passed}, indent=2))
    else:
        click.echo(f"taint to eviction request, {server}, {len(samples)} samples")
        for name, value in found.items():
            click.echo(f"  {name:<4}{value:9.2f} ms  {_verdict(value, allowed.get(name))}")
        if floor:
            click.echo(
                f"  a bare client takes {floor:.2f} ms (p50), {FLOOR} where the limits were set; "
                f"the descheduler {found['p50'] / floor:.2f} times as long"
            )
        if reached is not None:
            click.echo(
                f"  under {reached.updates_a_second:.0f} Pod updates a second ({load} asked for), "
                f"{reached.idle_cpu:.0%} of the processors left"
            )
    if not passed:
        raise click.exceptions.Exit(1)


def _verdict(value: float, limit: Limit | None) -> str:
    if limit is None:
        return ""
    if value >= limit.fail:
        return f"FAILED (at {limit.fail:g})"
    return f"target {limit.target:g}: {'met' if value < limit.target else 'missed'}"


if __name__ == "__main__":
    main()
