"""Measured usage on a real API server: the rights that `rbac` gives for it, and what is said
without them. No metrics-server runs there, and the Prometheus is the sandbox's."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from reactive_descheduler.sandbox.cluster import running_sandbox
from reactive_descheduler.sandbox.prometheus import serve_prometheus
from tests.controlplane.credentials import write_kubeconfig
from tests.e2e.api import eventually
from tests.e2e.conftest import NODES, kubectl
from tests.e2e.descheduler import running_descheduler
from tests.e2e.objects import make_deployment
from tests.e2e.probes import free_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.controlplane.cluster import ControlPlane
    from tests.e2e.api import Api
    from tests.e2e.descheduler import Descheduler

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.real_time,
    pytest.mark.timeout(180),
    pytest.mark.usefixtures("own_control_plane"),
]

TOKEN = "a-token-of-the-test"
SECRETS = 'cannot get resource "secrets"'
LISTS = 'cannot list resource "nodes" in API group "metrics.k8s.io"'


def make_policy(provider: dict[str, object], resource: str) -> dict[str, object]:
    """LowNodeUtilization by this provider; it asks every second."""
    asked: dict[str, object] = {"source": provider["source"]}
    if provider["source"] == "Prometheus":
        asked["prometheus"] = {"query": "busy"}
    arguments = {
        "thresholds": {resource: 20},
        "targetThresholds": {resource: 80},
        "metricsUtilization": asked,
    }
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "metricsProviders": [provider],
        "profiles": [
            {
                "name": "e2e",
                "pluginConfig": [{"name": "LowNodeUtilization", "args": arguments}],
                "plugins": {"balance": {"enabled": ["LowNodeUtilization"]}},
            }
        ],
        "reactive": {"settle": {"default": "0s"}, "usage": {"pollInterval": "1s"}},
    }


def by_prometheus(url: str, namespace: str) -> dict[str, object]:
    reference = {"secretReference": {"namespace": namespace, "name": "token"}}
    prometheus = {"url": url, "authToken": reference}
    return make_policy({"source": "Prometheus", "prometheus": prometheus}, "MetricResource")


@asynccontextmanager
async def running(
    plane: ControlPlane,
    namespace: str,
    directory: Path,
    policy: dict[str, object],
    lacking: str | None,
) -> AsyncIterator[Descheduler]:
    """Run it as an account that has the rights which `rbac` prints, but for those on a resource or
    a group."""
    file, kubeconfig = directory / "policy.json", directory / "kubeconfig"
    file.write_text(json.dumps(policy))
    granted = await asyncio.to_thread(rights, file, namespace, lacking)
    kubectl(plane, "create", "serviceaccount", namespace, "-n", namespace)
    kubectl(plane, "apply", "-f", "-", stdin=granted)
    try:
        token = kubectl(plane, "create", "token", namespace, "-n", namespace).strip()
        account = f"--as=system:serviceaccount:{namespace}:{namespace}"

        async def in_force() -> bool:
            try:
                kubectl(plane, "auth", "can-i", "get", "pods", "-A", account)
            except subprocess.CalledProcessError:  # a no
                return False
            return True

        await eventually(in_force, what="the rights in force", within=20)
        write_kubeconfig(
            kubeconfig, server=plane.server, token=token, authority=plane.directory / "ca.crt"
        )
        async with running_descheduler(
            policy=file, kubeconfig=kubeconfig, log=directory / "run.log", port=free_port()
        ) as descheduler:
            yield descheduler
            assert await descheduler.stop() == 0
            assert "Traceback" not in await descheduler.output()
    finally:
        kubectl(plane, "delete", "-f", "-", stdin=granted)


def rights(policy: Path, namespace: str, lacking: str | None) -> str:
    """What `rbac` prints for the account of the namespace's name, but for what is lacking."""
    printed = subprocess.run(
        [
            *(sys.executable, "-m", "reactive_descheduler", "rbac", "-f", policy, "-o", "json"),
            *("--namespace", namespace, "--service-account", namespace),
        ],
        capture_output=True,
        check=True,
        timeout=30,
    ).stdout
    granted = json.loads(printed)
    for role in granted["items"]:
        if "rules" in role:
            role["rules"] = [
                rule
                for rule in role["rules"]
                if lacking not in (*rule["resources"], *rule["apiGroups"])
            ]
    return json.dumps(granted)


async def says(descheduler: Descheduler, text: str) -> None:
    async def said() -> bool:
        return text in await descheduler.output()

    await eventually(said, what=f"{text!r} in the output", within=45)


async def pods_on_first(api: Api, namespace: str) -> set[str]:
    pods = await api.pods(namespace, "web")
    return {pod.metadata.uid for pod in pods if pod.node == NODES[0]}


@pytest.mark.parametrize(
    ("lacking", "said"),
    [
        pytest.param("metrics.k8s.io", LISTS, id="no right"),
        pytest.param(None, "is a metrics-server installed?", id="no metrics-server"),
    ],
)
async def test_without_the_metrics_api_it_is_ready_and_says_why_nobody_goes(
    control_plane: ControlPlane,
    namespace: str,
    tmp_path: Path,
    lacking: str | None,
    said: str,
) -> None:
    policy = make_policy({"source": "KubernetesMetrics"}, "cpu")
    async with running(control_plane, namespace, tmp_path, policy, lacking) as descheduler:
        await says(descheduler, said)
        await descheduler.becomes_ready()


@pytest.mark.parametrize(
    "lacking", [pytest.param(None, id="allowed"), pytest.param("secrets", id="no right")]
)
async def test_the_token_for_prometheus_is_read_from_its_secret(
    control_plane: ControlPlane, api: Api, namespace: str, tmp_path: Path, lacking: str | None
) -> None:
    await api.create(
        f"/apis/apps/v1/namespaces/{namespace}/deployments",
        make_deployment("web", replicas=4),
    )

    async def settled() -> bool:
        pods = await api.pods(namespace, "web")
        return sum(pod.available for pod in pods) == 4

    await eventually(settled, what="all Pods available", within=45)
    before = await pods_on_first(api, namespace)
    await api.create(
        f"/api/v1/namespaces/{namespace}/secrets",
        {
            "metadata": {"name": "token"},
            "data": {"prometheusAuthToken": base64.b64encode(TOKEN.encode()).decode()},
        },
    )
    async with (
        running_sandbox(controllers=False, tls=False) as sandbox,
        serve_prometheus(sandbox.measurements, token=TOKEN) as prometheus,
    ):
        prometheus.values["busy"] = dict.fromkeys(NODES, 0.1) | {NODES[0]: 0.9}
        policy = by_prometheus(prometheus.url, namespace)
        async with running(control_plane, namespace, tmp_path, policy, lacking) as descheduler:
            await descheduler.becomes_ready()
            if lacking:
                await says(descheduler, SECRETS)
                await asyncio.sleep(2)
                assert await pods_on_first(api, namespace) == before
                assert prometheus.asked == []
                return

            async def one_went() -> bool:
                return not before <= await pods_on_first(api, namespace)

            await eventually(one_went, what="the Pod of the busy node evicted", within=45)
