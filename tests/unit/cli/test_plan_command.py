"""`plan` over a dump that kubectl prints, and over the cluster that it came from."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import CompletedProcess

import anyio
import pytest
from click.testing import CliRunner

from reactive_descheduler.cli import program
from reactive_descheduler.cli.exit_codes import ExitCode
from reactive_descheduler.sandbox.cluster import SandboxCluster, running_sandbox
from reactive_descheduler.sandbox.faults import Fault
from reactive_descheduler.sandbox.kubelet import Pace
from reactive_descheduler.sandbox.sample import create_sample_workloads
from reactive_descheduler.strategies.remove_pods_violating_node_taints import (
    RemovePodsViolatingNodeTaints,
)
from tests.builders import make_budget, make_node, make_pod, taint

SAMPLE = str(Path(__file__).parents[3] / "config" / "sample-policy.yaml")
KINDS = "nodes,pods,ns,pdb,pvc,pv,pc"


@asynccontextmanager
async def _tainted_cluster(directory: Path) -> AsyncIterator[SandboxCluster]:
    async with running_sandbox(nodes=3, pace=Pace(start=0.02, stop_cap=0.05)) as cluster:
        await create_sample_workloads(cluster.client)
        await cluster.write_kubeconfig(directory / "kubeconfig")
        patch = {"spec": {"taints": [taint("dedicated")]}}
        await cluster.client.patch("nodes", "node-1", patch)
        yield cluster


async def _planned(*arguments: str) -> list[tuple[str, str, str]]:
    done = await _program("plan", "--policy-config-file", SAMPLE, "-o", "json", *arguments)
    assert done.stderr == b""
    return [
        (pod["name"], pod["node"], pod["cause"]) for pod in json.loads(done.stdout)["evictions"]
    ]


async def _program(*arguments: str, check: bool = True) -> CompletedProcess[bytes]:
    command = [sys.executable, "-m", "reactive_descheduler", *arguments]
    return await anyio.run_process(command, check=check)


@pytest.mark.real_time
@pytest.mark.timeout(60)
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
async def test_dump_and_cluster_give_the_same_plan(tmp_path: Path) -> None:
    kubeconfig = str(tmp_path / "kubeconfig")
    async with _tainted_cluster(tmp_path):
        live = await _planned("--kubeconfig", kubeconfig)
        kubectl = ["kubectl", "--kubeconfig", kubeconfig, "--cache-dir", str(tmp_path / "cache")]
        for form in ("yaml", "json"):
            dump = await anyio.run_process([*kubectl, "get", KINDS, "-A", "-o", form])
            (tmp_path / form).write_bytes(dump.stdout)
    assert {(node, cause) for _, node, cause in live} == {("node-1", "taint")}
    assert await _planned("--snapshot", str(tmp_path / "yaml")) == live
    assert await _planned("--snapshot", str(tmp_path / "json")) == live


def test_the_table_tells_all_in_whole_lines(tmp_path: Path) -> None:
    policy = tmp_path / "policy"
    policy.write_text(
        """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
maxNoOfPodsToEvictTotal: 1
profiles:
  - name: main
    pluginConfig:
      - {name: RemovePodsViolatingNodeTaints, args: {}}
      - {name: PodLifeTime, args: {maxPodLifeTimeSeconds: 100000}}
    plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaints, PodLifeTime]}}
"""
    )
    objects = [
        make_node("node-1", taints=[taint("dedicated")]),
        make_node("node-2"),
        make_pod("goes", node="node-1"),
        make_pod("held", node="node-1"),
        make_pod("bare", node="node-1", owners=[]),
        make_pod("young", node="node-2"),
    ]
    dump = json.dumps({"kind": "List", "items": objects})
    arguments = ["plan", "--policy-config-file", str(policy), "--snapshot", "-"]
    arguments += ["--now", "2026-01-02T00:00:00Z"]
    done = CliRunner().invoke(program, arguments, input=dump, env={"COLUMNS": "40"})
    assert (done.exit_code, done.stderr) == (0, "")
    first, *lines = done.stdout.splitlines()
    assert first == "1 Pod would be evicted at 2026-01-02T00:00:00Z; 2 of 2 nodes looked at"
    by_pod = {line.split()[0]: line for line in lines if line.startswith("default/")}
    assert by_pod.keys() == {"default/goes", "default/held", "default/bare"}
    assert "does not tolerate taint dedicated" in by_pod["default/goes"]
    assert "maximum number of evicted pods per a descheduling cycle" in by_pod["default/held"]
    assert "Pod default/bare gets other annotations" in by_pod["default/bare"]
    assert lines[-1].startswith("Not due yet: 3 Pods; the first is default/bare (PodLifeTime)")


@pytest.mark.parametrize(
    ("pods", "told"),
    [
        pytest.param(2, "1 Pod would be evicted at TIME; 1 would be refused by its budget", id="1"),
        pytest.param(
            3, "1 Pod would be evicted at TIME; 2 would be refused by their budget", id="2"
        ),
    ],
)
def test_the_headline_counts_apart_whom_a_budget_would_refuse(pods: int, told: str) -> None:
    objects = [
        make_node("node-1", taints=[taint("dedicated")]),
        make_node("node-2"),
        *(make_pod(f"web-{number}", node="node-1") for number in range(pods)),
        make_budget("web", allowed=1),
    ]
    dump = json.dumps({"kind": "List", "items": objects})
    arguments = ["plan", "--policy-config-file", SAMPLE, "--snapshot", "-"]
    arguments += ["--now", "2026-01-02T00:00:00Z"]
    done = CliRunner().invoke(program, arguments, input=dump)
    assert (done.exit_code, done.stderr) == (0, "")
    headline = f"{told.replace('TIME', '2026-01-02T00:00:00Z')}; 2 of 2 nodes looked at"
    assert done.stdout.splitlines()[0] == headline
    assert done.stdout.count("budget web is used up") == pods - 1
    assert "Refused by their budget" in done.stdout


def test_warnings_go_to_standard_error() -> None:
    objects = [make_node("node-1"), make_pod("web-1", node="node-1")]
    dump = json.dumps({"kind": "List", "items": objects})
    arguments = ["plan", "--policy-config-file", SAMPLE, "--snapshot", "-"]
    done = CliRunner().invoke(program, arguments, input=dump)
    assert done.exit_code == 0
    assert done.stderr.startswith("warning: fewer than 2 of the 1 nodes are ready")


def test_what_is_doubtful_is_told_as_validate_tells_it(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nmaxNoOfPodsToEvictTotal: 0\n"
        "profiles: [{pluginConfig: [{name: DefaultEvictor, args: {minReplicas: 1}}],"
        " plugins: {balance: {enabled: [RemoveDuplicates]}}}]\n"
    )
    dump = json.dumps(
        {"kind": "List", "items": [make_node("n1"), make_node("n2"), make_pod("p", node="n1")]}
    )
    checked = CliRunner().invoke(program, ["validate", str(policy)])
    planned = CliRunner().invoke(
        program, ["plan", "-f", str(policy), "--snapshot", "-"], input=dump
    )
    assert planned.stderr == checked.stderr
    assert "policy.yaml:4: profiles[0].pluginConfig[0].args.minReplicas" in checked.stderr
    assert "[limitZero] (leave it out for no limit)" in checked.stderr


def test_a_strategy_that_fails_is_told_and_sets_the_exit_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def sweep(_strategy: object, _view: object) -> Iterator[int]:
        yield from map(int, ["no number"])

    monkeypatch.setattr(RemovePodsViolatingNodeTaints, "sweep", sweep)
    dump = json.dumps({"kind": "List", "items": [make_node("node-1"), make_pod("web-1")]})
    arguments = ["plan", "--policy-config-file", SAMPLE, "--snapshot", "-"]
    done = CliRunner().invoke(program, arguments, input=dump)
    assert done.exit_code == ExitCode.FAILURE
    assert "ValueError: invalid literal" in done.stdout.splitlines()[-1]


def test_a_dump_goes_before_a_kubeconfig_of_the_environment() -> None:
    dump = json.dumps({"kind": "List", "items": [make_node("node-1"), make_pod("web-1")]})
    arguments = ["plan", "--policy-config-file", SAMPLE, "--snapshot", "-"]
    environment = {"REACTIVE_DESCHEDULER_KUBECONFIG": "nowhere"}
    done = CliRunner().invoke(program, arguments, input=dump, env=environment)
    assert done.exit_code == 0


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("status", "reason", "hint"),
    [
        pytest.param(403, "Forbidden", "list on nodes", id="not allowed"),
        pytest.param(401, "Unauthorized", "is the token or certificate expired", id="wrong token"),
        pytest.param(500, "InternalError", "", id="broken server"),
    ],
)
async def test_a_list_that_the_server_refuses(
    status: int, reason: str, hint: str, tmp_path: Path
) -> None:
    async with running_sandbox(controllers=False) as cluster:
        await cluster.write_kubeconfig(tmp_path / "kubeconfig")
        cluster.faults.add(
            Fault(verb="list", resource="nodes", status=status, reason=reason, message="not you")
        )
        arguments = ["--policy-config-file", SAMPLE, "--kubeconfig", str(tmp_path / "kubeconfig")]
        done = await _program("plan", *arguments, check=False)
    message, *hints = done.stderr.decode().splitlines()
    assert done.returncode == ExitCode.UNREACHABLE
    assert message == f"error: {status} {reason}: not you"
    assert hint in "".join(hints)
    assert ("needs the verb" in "".join(hints)) is (status == 403)
