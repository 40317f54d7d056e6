"""The program under test as its users run it: a process of its own."""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.controlplane.given import given
from tests.e2e.api import eventually
from tests.e2e.probes import probe

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass(frozen=True, slots=True)
class Descheduler:
    """A running `reactive-descheduler run`."""

    process: asyncio.subprocess.Process
    log: Path
    url: str = ""
    """Where it serves health, metrics and status; empty where it serves nothing."""

    async def ready(self) -> tuple[int, str]:
        """Status and text of /readyz; (0, "") before it serves."""
        return await probe(f"{self.url}/readyz")

    async def becomes_ready(self, *, within: float = 30) -> None:
        """Return once it says that it does its work."""

        async def is_ready() -> bool:
            return (await self.ready())[0] == 200

        await eventually(is_ready, what="the descheduler ready", within=within)

    async def metrics(self, *names: str) -> dict[str, float]:
        """Each metric's sum over all its labels; a name may carry some of them."""
        _, text = await probe(f"{self.url}/metrics")
        return {
            name: sum(
                float(line.rpartition(" ")[2])
                for line in text.splitlines()
                if line.startswith(name) and line[len(name)] in " {,}"
            )
            for name in names
        }

    async def output(self) -> str:
        """All that it has written so far, to standard output and error."""
        return await asyncio.to_thread(self.log.read_text, errors="replace")

    async def stop(self) -> int:
        """Ask it to end as a kubelet does, and give its exit code; TimeoutError after 20 s."""
        self.process.terminate()
        return await self.wait(within=20)

    async def wait(self, *, within: float) -> int:
        """Its exit code, once it ends by itself; TimeoutError after `within` seconds."""
        async with asyncio.timeout(within):
            return await self.process.wait()


@asynccontextmanager
async def running_descheduler(
    *arguments: str, policy: Path, kubeconfig: Path, log: Path, port: int = 0
) -> AsyncIterator[Descheduler]:
    """Run it with a policy against a cluster; killed at the end if the test has not stopped it.

    A failure within the block carries the last lines of its output. Port 0 serves nothing.
    """
    _require_limits(policy)
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "reactive_descheduler",
            "run",
            "--policy-config-file",
            str(policy),
            "--kubeconfig",
            str(kubeconfig),
            f"--secure-port={port}",
            "--bind-address=127.0.0.1",
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    running = Descheduler(process, log, f"https://127.0.0.1:{port}" if port else "")
    try:
        yield running
    except BaseException as error:
        lines = (await running.output()).splitlines()[-20:]
        error.add_note("\n".join(["the descheduler's last lines:", *lines]))
        raise
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _require_limits(policy: Path) -> None:
    """Refuse to run a policy in somebody's cluster that may evict other Pods than the tests'."""
    text = policy.read_text()
    if given() and "profiles" in text and "namespaceLabelSelector" not in text:
        raise ValueError("a policy has to be `limited` where the cluster is a given one")
