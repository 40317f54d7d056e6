"""Evictions by what a real Prometheus measures, from scraping to the request.

The cluster is the sandbox, which is what exposes usage: no metrics of a kwok node move by what a
test wants. The program is a process of its own, as everywhere here.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reactive_descheduler.sandbox.cluster import SandboxCluster, running_sandbox
from reactive_descheduler.sandbox.documents import name_of, text
from reactive_descheduler.sandbox.prometheus import NODE_CPU, serve_prometheus
from reactive_descheduler.sandbox.sample import make_deployment, until_settled
from tests.e2e.api import eventually
from tests.e2e.descheduler import running_descheduler
from tests.e2e.probes import free_port, probe

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.e2e.descheduler import Descheduler

pytestmark = [pytest.mark.e2e, pytest.mark.real_time, pytest.mark.timeout(120)]

FETCHED = Path(__file__).parents[2] / ".cache" / "prometheus" / "usr" / "bin" / "prometheus"
BUSY, IDLE = {"cpu": "3600m"}, {"cpu": "200m"}
"""Of 4 cpus: 90 and 5 percent."""
QUERY = f"max by (instance) ({NODE_CPU})"


@pytest.fixture
def program() -> str:
    """The Prometheus of the machine, or the one that ./scripts/prometheus fetched."""
    found = shutil.which("prometheus") or (str(FETCHED) if FETCHED.exists() else None)
    if found is None:
        pytest.skip("no Prometheus: ./scripts/prometheus fetches Debian's package")
    return found


@asynccontextmanager
async def running_prometheus(program: str, target: str, directory: Path) -> AsyncIterator[str]:
    """Run one that scrapes the target every second; gives its URL once it answers."""
    config, log, port = directory / "prometheus.yml", directory / "prometheus.log", free_port()
    scrape = {
        "job_name": "sandbox",
        "honor_labels": True,
        "static_configs": [{"targets": [target.removeprefix("http://")]}],
    }
    timing = {"scrape_interval": "1s", "scrape_timeout": "1s"}
    config.write_text(json.dumps({"global": timing, "scrape_configs": [scrape]}))
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            program,
            f"--config.file={config}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    url = f"http://127.0.0.1:{port}"
    try:

        async def is_ready() -> bool:
            return (await probe(f"{url}/-/ready"))[0] == 200

        await eventually(is_ready, what="Prometheus ready", within=30)
        yield url
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def make_policy(url: str) -> dict[str, object]:
    """LowNodeUtilization by the query; it looks every second."""
    thresholds = {"thresholds": {"MetricResource": 20}, "targetThresholds": {"MetricResource": 80}}
    asked = {"source": "Prometheus", "prometheus": {"query": QUERY}}
    labels = {"kubernetes.io/metadata.name": "default"}
    evictor = {"namespaceLabelSelector": {"matchLabels": labels}}
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "metricsProviders": [{"source": "Prometheus", "prometheus": {"url": url}}],
        "profiles": [
            {
                "name": "e2e",
                "pluginConfig": [
                    {"name": "DefaultEvictor", "args": evictor},
                    {
                        "name": "LowNodeUtilization",
                        "args": {**thresholds, "metricsUtilization": asked},
                    },
                ],
                "plugins": {"balance": {"enabled": ["LowNodeUtilization"]}},
            }
        ],
        "reactive": {"settle": {"default": "0s"}, "usage": {"pollInterval": "1s"}},
    }


async def uids_by_node(cluster: SandboxCluster) -> dict[str, set[str]]:
    """The Pods on each node."""
    pods, _ = await cluster.client.list("pods")
    found: dict[str, set[str]] = {}
    for pod in pods:
        found.setdefault(text(pod, "spec", "nodeName"), set()).add(text(pod, "metadata", "uid"))
    return found


async def told(descheduler: Descheduler) -> str:
    _, status = await probe(f"{descheduler.url}/status")
    return status


async def test_pods_leave_a_node_that_prometheus_finds_busy(program: str, tmp_path: Path) -> None:
    async with running_sandbox(nodes=3) as cluster:
        await cluster.client.create(make_deployment("web", replicas=6))
        await until_settled(cluster.client)
        nodes = [name_of(node) for node in (await cluster.client.list("nodes"))[0]]
        usage = cluster.measurements.nodes
        usage |= dict.fromkeys(nodes, IDLE) | {nodes[0]: BUSY, nodes[1]: None}
        before = await uids_by_node(cluster)
        kubeconfig, policy = tmp_path / "kubeconfig", tmp_path / "policy.json"
        await cluster.write_kubeconfig(kubeconfig)
        async with (
            serve_prometheus(cluster.measurements) as exposed,
            running_prometheus(program, exposed.url, tmp_path) as url,
        ):
            policy.write_text(json.dumps(make_policy(url)))
            async with running_descheduler(
                policy=policy, kubeconfig=kubeconfig, log=tmp_path / "run.log", port=free_port()
            ) as descheduler:
                await descheduler.becomes_ready()

                async def waits_for_a_node() -> bool:
                    return f"Prometheus tells nothing of node {nodes[1]}" in await told(descheduler)

                await eventually(waits_for_a_node, what="the unmeasured node named", within=30)
                assert await uids_by_node(cluster) == before

                usage[nodes[1]] = IDLE

                async def one_has_moved() -> bool:
                    now = await uids_by_node(cluster)
                    return len(now.get(nodes[0], set()) & before[nodes[0]]) < len(before[nodes[0]])

                await eventually(one_has_moved, what="a Pod of the busy node gone", within=30)
                usage[nodes[0]] = IDLE
                await asyncio.sleep(3)  # a scrape and a poll
                calm = await uids_by_node(cluster)
                await asyncio.sleep(3)
                assert await uids_by_node(cluster) == calm
                assert all(before[node] <= calm[node] for node in nodes[1:])
                assert await descheduler.stop() == 0
