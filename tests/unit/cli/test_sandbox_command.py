"""`sandbox`: prints how to reach it, serves, and ends by a signal."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import anyio
import orjson
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from reactive_descheduler.app.cluster_snapshot import read_cluster

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(60)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda each: each.name)
async def test_serves_until_a_signal(number: signal.Signals, tmp_path: Path) -> None:
    path = anyio.Path(tmp_path / "kube config")
    arguments = ["sandbox", "--nodes", "2", "--kubeconfig-out", str(path)]
    async with await anyio.open_process(
        [sys.executable, "-m", "reactive_descheduler", *arguments]
    ) as process:
        assert process.stdout is not None
        line = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 1000)
        cluster = await read_cluster(str(path), ("Node",))
        process.send_signal(number)
        assert await process.wait() == 0
    assert line.decode() == f"export KUBECONFIG='{path}'"
    assert [node.name for node in cluster.lister.nodes()] == ["node-1", "node-2"]
    assert orjson.loads(await path.read_bytes())["kind"] == "Config"
