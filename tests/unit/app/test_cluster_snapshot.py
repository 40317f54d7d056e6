"""A snapshot of a cluster holds what a policy goes by, measured usage too."""

from __future__ import annotations

from pathlib import Path

import pytest

from reactive_descheduler.app.cluster_snapshot import read_cluster
from reactive_descheduler.config.load import load_policy
from reactive_descheduler.sandbox.cluster import running_sandbox
from reactive_descheduler.strategies import PLUGINS
from tests.builders import make_node, make_pod

pytestmark = pytest.mark.real_time

POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
metricsProviders: [{source: KubernetesMetrics}]
profiles:
- name: main
  pluginConfig:
  - name: LowNodeUtilization
    args:
      thresholds: {cpu: 20}
      targetThresholds: {cpu: 80}
      metricsUtilization: {source: KubernetesMetrics}
  plugins: {balance: {enabled: [LowNodeUtilization]}}
"""


@pytest.mark.parametrize("served", [True, False], ids=["measured", "no metrics-server"])
async def test_usage_is_asked_for_once(tmp_path: Path, served: bool) -> None:
    policy = load_policy(POLICY, source="policy", plugins=PLUGINS)
    path = tmp_path / "kubeconfig"
    async with running_sandbox(controllers=False) as cluster:
        cluster.load([make_node("node-1"), make_pod("web-1", node="node-1")])
        cluster.measurements.served = served
        await cluster.write_kubeconfig(path)
        snapshot = await read_cluster(str(path), ("Node", "Pod"), policy)
    pod = snapshot.lister.pod_named("default", "web-1")
    assert pod is not None
    assert len(snapshot.usage.node("node-1")) == served
    assert (snapshot.usage.pod(pod) is not None) is served
    assert any("is a metrics-server installed?" in why for why in snapshot.unmeasured) != served
