"""`run` as a process runs it: policy from a file, kubeconfig, HTTPS, probes and SIGTERM."""

from __future__ import annotations

import os
import signal
import socket
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path

import aiohttp
import anyio
import pytest

from reactive_descheduler.app.process import run_daemon
from reactive_descheduler.app.settings import RunSettings
from reactive_descheduler.sandbox.cluster import running_sandbox
from reactive_descheduler.sandbox.faults import Fault
from tests.builders import taint
from tests.daemon.world import AT_ONCE, TAINTS, eventually, small_cluster

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(60)]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


class Probes:
    """Asks the daemon's own server, whose certificate nobody vouches for."""

    def __init__(self, session: aiohttp.ClientSession, port: int) -> None:
        self._session = session
        self._url = f"https://127.0.0.1:{port}"

    async def get(self, path: str) -> tuple[int, str]:
        unchecked = ssl.create_default_context()
        unchecked.check_hostname = False
        unchecked.verify_mode = ssl.CERT_NONE
        try:
            async with self._session.get(self._url + path, ssl=unchecked) as answer:
                return answer.status, await answer.text()
        except aiohttp.ClientConnectionError:
            return 0, ""

    async def until(self, path: str, holds: Callable[[int, str], bool]) -> str:
        with anyio.fail_after(20):
            while True:
                status, text = await self.get(path)
                if holds(status, text):
                    return text
                await anyio.sleep(0.05)


async def test_it_gets_ready_evicts_and_ends_in_good_order_at_sigterm(tmp_path: Path) -> None:
    policy, kubeconfig, port = tmp_path / "policy.yaml", tmp_path / "kubeconfig", free_port()
    await anyio.Path(policy).write_text(TAINTS + AT_ONCE)
    settings = RunSettings(
        policy_config_file=str(policy),
        kubeconfig=str(kubeconfig),
        bind_address="127.0.0.1",
        secure_port=port,
        grace_period=10,
    )
    async with running_sandbox(controllers=False) as cluster, aiohttp.ClientSession() as session:
        cluster.load(small_cluster())
        await cluster.write_kubeconfig(kubeconfig)
        slow_lists = cluster.faults.add(Fault(verb="list", resource="pods", status=503))
        slow_streams = cluster.faults.add(Fault(verb="watch", resource="pods", status=503))
        probes = Probes(session, port)
        ended = anyio.Event()

        async def run() -> None:
            await run_daemon(settings)
            ended.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            told = await probes.until("/readyz", lambda status, _: status == 503)
            assert "not synced: Pod" in told
            assert (await probes.get("/livez"))[0] == 200

            cluster.faults.active.remove(slow_lists)
            cluster.faults.active.remove(slow_streams)
            await probes.until("/readyz", lambda status, _: status == 200)
            slow = cluster.faults.add(Fault(verb="create", resource="pods/eviction", latency=1.0))
            await cluster.client.patch("nodes", "node-1", {"spec": {"taints": [taint()]}})
            await eventually(lambda: slow.hits == 1)
            os.kill(os.getpid(), signal.SIGTERM)
            with anyio.fail_after(8):
                await ended.wait()

        pods, _ = await cluster.client.list("pods")
        assert [_name(pod) for pod in pods if _is_going(pod)] == ["a"], "what was in flight ended"


def _metadata(pod: Mapping[str, object]) -> Mapping[str, object]:
    found = pod["metadata"]
    assert isinstance(found, dict)
    return found


def _name(pod: Mapping[str, object]) -> str:
    return str(_metadata(pod)["name"])


def _is_going(pod: Mapping[str, object]) -> bool:
    return "deletionTimestamp" in _metadata(pod)
