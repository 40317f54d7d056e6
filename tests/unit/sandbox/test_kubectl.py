"""A real kubectl against the sandbox, over TLS with the written kubeconfig."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import pytest

from reactive_descheduler.sandbox.cluster import SandboxCluster, running_sandbox
from reactive_descheduler.sandbox.kubelet import Pace
from reactive_descheduler.sandbox.sample import create_sample_workloads, make_deployment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = [
    pytest.mark.real_time,
    pytest.mark.timeout(60),
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed"),
]


@dataclass(frozen=True)
class Kubectl:
    """kubectl, with its files in a directory of the test's own."""

    cluster: SandboxCluster
    directory: Path

    async def __call__(self, *arguments: str, stdin: str = "") -> str:
        """Its standard output. Raises CalledProcessError if it fails."""
        result = await anyio.run_process(
            ["kubectl", "--cache-dir", str(self.directory / "cache"), *arguments],
            input=stdin.encode(),
            env=os.environ | {"KUBECONFIG": str(self.directory / "kubeconfig")},
        )
        return result.stdout.decode()


@asynccontextmanager
async def kubectl_on_sample(directory: Path) -> AsyncIterator[Kubectl]:
    async with running_sandbox(nodes=3, pace=Pace(start=0.02, stop_cap=0.05)) as cluster:
        await create_sample_workloads(cluster.client)
        await cluster.write_kubeconfig(directory / "kubeconfig")
        yield Kubectl(cluster, directory)


async def test_kubectl_shows_the_cluster(tmp_path: Path) -> None:
    async with kubectl_on_sample(tmp_path) as kubectl:
        shown = await kubectl("get", "nodes,pods,deployments,daemonsets,pdb", "-A", "-o", "wide")
        dump = json.loads(await kubectl("get", "nodes,pods,ns,pdb", "-A", "-o", "json"))
        described = await kubectl("describe", "node", "node-1")

    assert "node/node-1" in shown
    assert "SchedulingDisabled" not in shown
    assert "1/1     Running" in shown
    assert {item["kind"] for item in dump["items"]} == {
        "Node",
        "Pod",
        "Namespace",
        "PodDisruptionBudget",
    }
    assert "topology.kubernetes.io/zone=zone-a" in described


async def test_kubectl_labels_taints_and_cordons(tmp_path: Path) -> None:
    async with kubectl_on_sample(tmp_path) as kubectl:
        await kubectl("label", "node", "node-1", "disk=ssd")
        await kubectl("taint", "node", "node-1", "a=b:NoSchedule", "c=d:NoExecute")
        await kubectl("taint", "node", "node-1", "a-")
        await kubectl("cordon", "node-1")
        node = json.loads(await kubectl("get", "node", "node-1", "-o", "json"))

    assert node["metadata"]["labels"]["disk"] == "ssd"
    assert "c" in {taint["key"] for taint in node["spec"]["taints"]}
    assert "a" not in {taint["key"] for taint in node["spec"]["taints"]}
    assert node["spec"]["unschedulable"] is True


async def test_kubectl_drains_through_evictions(tmp_path: Path) -> None:
    async with kubectl_on_sample(tmp_path) as kubectl:
        await kubectl("drain", "node-1", "--ignore-daemonsets")
        pods = json.loads(
            await kubectl("get", "pods", "--field-selector=spec.nodeName=node-1", "-o", "json")
        )

    assert {pod["metadata"]["labels"]["app"] for pod in pods["items"]} == {"agent"}


async def test_kubectl_creates_applies_scales_and_deletes(tmp_path: Path) -> None:
    async with kubectl_on_sample(tmp_path) as kubectl:
        await kubectl("create", "-f", "-", stdin=json.dumps(make_deployment("new", replicas=1)))
        await kubectl("scale", "deployment", "new", "--replicas=2")
        await kubectl("rollout", "status", "deployment", "new", "--timeout=20s")
        applied = make_deployment("other", replicas=1)
        await kubectl("apply", "-f", "-", stdin=json.dumps(applied))
        await kubectl("delete", "deployment", "new", "--timeout=20s")
        await kubectl("wait", "--for=delete", "pods", "-l", "app=new", "--timeout=20s")
        names = await kubectl("get", "deployments", "-o", "name")

    assert "deployment.apps/new" not in names
    assert "deployment.apps/other" in names
