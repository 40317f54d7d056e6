"""`plan --corrections diff` for people and programs, and the commands that do not take it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from reactive_descheduler.cli import program
from reactive_descheduler.cli.exit_codes import ExitCode
from tests.builders import make_budget, make_node, make_pod, owner, taint

SAMPLE = str(Path(__file__).parents[3] / "config" / "sample-policy.yaml")
POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
  - name: main
    pluginConfig:
      - {name: DefaultEvictor, args: {nodeFit: true}}
      - {name: RemovePodsHavingTooManyRestarts, args: {podRestartThreshold: 5}}
    plugins:
      deschedule: {enabled: [RemovePodsViolatingNodeTaints, RemovePodsHavingTooManyRestarts]}
"""
CLUSTER = [
    make_node("node-1", taints=[taint("retiring")]),
    make_node("node-2", taints=[taint("node.kubernetes.io/unschedulable")], unschedulable=True),
    make_node("node-3"),
    make_pod("api-1", node="node-1", requests={"cpu": "3"}),
    make_pod("api-2", node="node-1", requests={"cpu": "3"}),
    make_pod("web-1", node="node-2"),
    make_pod("store-1", node="node-1", labels={"app": "store"}, owners=[owner("s")], restarts=9),
    make_budget("store", allowed=0, selector={"matchLabels": {"app": "store"}}),
]


def _diff(directory: Path, *arguments: str, policy: str = POLICY) -> Result:
    (directory / "policy").write_text(policy)
    (directory / "dump").write_text(json.dumps({"kind": "List", "items": CLUSTER}))
    command = ["plan", "-f", str(directory / "policy"), "--snapshot", str(directory / "dump")]
    command += ["--corrections", "diff", "--now", "2026-01-02T00:00:00Z", *arguments]
    return CliRunner().invoke(program, command, env={"COLUMNS": "40"})


def test_the_table_tells_of_documents_corrections_and_pods(tmp_path: Path) -> None:
    done = _diff(tmp_path)
    assert (done.exit_code, done.stderr) == (ExitCode.OK, "")
    refusal, mistake, headline, *lines = done.stdout.splitlines()
    assert refusal == (
        "Upstream refuses this policy, which we read: missingPluginConfig. Compared as if both did."
    )
    assert mistake.startswith(f"  {tmp_path / 'policy'}:10: profiles[0].plugins.deschedule")
    assert headline == (
        "1 Pod evicted by both, 0 by ours only, 2 by upstream only, 1 with another difference,"
        " at 2026-01-02T00:00:00Z; 3 of 3 nodes looked at"
    )
    by_first = {line.split()[0]: line.split() for line in lines if line}
    assert by_first["cordonAlone"][1] == "1"
    assert by_first["default/api-2"][3:6] == ["stays", "evicted", "booking"]
    assert by_first["default/web-1"][3:6] == ["stays", "evicted", "cordonAlone"]
    store = " ".join(by_first["default/store-1"])
    assert "refused by its budget refused by its budget, asked for 2 times oneOffer" in store
    assert "default/api-1" not in by_first


def test_json_has_all_of_it(tmp_path: Path) -> None:
    done = _diff(tmp_path, "-o", "json")
    assert (done.exit_code, done.stderr) == (ExitCode.OK, "")
    told = json.loads(done.stdout)
    assert told["policy"] == str(tmp_path / "policy")
    assert (told["evictedByBoth"], told["evictedByOursOnly"], told["evictedByUpstreamOnly"]) == (
        1,
        0,
        2,
    )
    assert told["documents"][0]["refusedBy"] == "upstream"
    assert told["documents"][0]["problems"][0]["line"] == 10
    pods = {pod["name"]: pod for pod in told["pods"]}
    assert pods["api-2"]["decidedBy"] == ["booking"]
    assert pods["api-2"]["manner"] == "alone"
    assert (pods["store-1"]["oursTimes"], pods["store-1"]["upstreamTimes"]) == (1, 2)
    assert [each["correction"] for each in told["deciding"]] == [
        "oneOfferPerPass",
        "cordonAlone",
        "booking",
    ]


def test_a_policy_that_only_upstream_reads(tmp_path: Path) -> None:
    done = _diff(tmp_path, policy=POLICY.replace("plugins:", "plugin: 1\n    plugins:"))
    assert done.exit_code == ExitCode.USAGE  # upstream does not read it either: no pluginConfig
    configured = POLICY.replace(
        "pluginConfig:", "pluginConfig:\n      - {name: RemovePodsViolatingNodeTaints, args: {}}"
    )
    done = _diff(tmp_path, policy=configured.replace("plugins:", "plugin: 1\n    plugins:"))
    assert done.exit_code == ExitCode.OK
    assert done.stdout.startswith("We refuse this policy, which upstream reads: strictDocuments.")


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["run", "--policy-config-file", SAMPLE, "--once"], id="run"),
        pytest.param(["validate", SAMPLE], id="validate"),
        pytest.param(["rbac", "-f", SAMPLE], id="rbac"),
    ],
)
def test_other_commands_do_not_take_diff(command: Sequence[str]) -> None:
    done = CliRunner().invoke(program, [*command, "--corrections", "diff"])
    assert done.exit_code == ExitCode.USAGE
    assert "diff is for plan alone" in done.stderr


def test_an_unknown_name_is_refused_by_plan_too() -> None:
    done = CliRunner().invoke(program, ["plan", "-f", SAMPLE, "--corrections", "diffs"])
    assert done.exit_code == ExitCode.USAGE
    assert "unknown correction 'diffs'" in done.stderr
