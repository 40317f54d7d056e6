"""The program under test as its users run it: a process of its own."""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass(frozen=True, slots=True)
class Descheduler:
    """A running `reactive-descheduler run`."""

    process: asyncio.subprocess.Process
    log: Path

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
    *arguments: str, policy: Path, kubeconfig: Path, log: Path
) -> AsyncIterator[Descheduler]:
    """Run it with a policy against a cluster; killed at the end if the test has not stopped it.

    A failure within the block carries the last lines of its output.
    """
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
            "--secure-port",
            "0",
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    running = Descheduler(process, log)
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
