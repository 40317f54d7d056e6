"""The commands that need no cluster, and the flags of the one that does."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from reactive_descheduler import __version__
from reactive_descheduler.api.changes import Key
from reactive_descheduler.api.eviction import Candidate, Cause, Failed
from reactive_descheduler.app import process
from reactive_descheduler.app.pass_driver import PassReport, Refusal, RefusedCandidate
from reactive_descheduler.app.settings import RunSettings
from reactive_descheduler.cli import program
from reactive_descheduler.cli.exit_codes import ExitCode
from reactive_descheduler.config.corrections import ALL, NONE, Correction
from reactive_descheduler.strategies import IN_TREE
from tests.builders import make_pod, pod_view
from tests.unit.cli.cli_reference import commands

CONFIG = Path(__file__).parents[3] / "config"
SAMPLE = str(CONFIG / "sample-policy.yaml")


def test_validate_tells_profiles_and_corrections() -> None:
    done = CliRunner().invoke(program, ["validate", SAMPLE, "--corrections", "cordonAlone"])
    assert (done.exit_code, done.stderr) == (0, "")
    assert "RemovePodsViolatingNodeTaints, RemovePodsViolatingNodeAffinity" in done.stdout
    in_force = {line.split()[0]: line.split()[1] for line in done.stdout.splitlines()[4:]}
    assert in_force == {each: "yes" if each == "cordonAlone" else "no" for each in Correction}


def test_validate_reads_standard_input_and_warns() -> None:
    text = "kind: DeschedulerPolicy\napiVersion: descheduler/v1alpha2\nbogus: 1\n"
    done = CliRunner().invoke(program, ["validate", "-", "--corrections", "none"], input=text)
    assert done.exit_code == 0
    assert done.stderr.startswith("warning: standard input:3: bogus")


@pytest.mark.parametrize("output", ["table", "json"])
def test_validate_warns_of_what_evicts_nothing(output: str) -> None:
    text = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles: []\n"
    arguments = ["validate", "--policy-config-file", "-", "-o", output]
    done = CliRunner().invoke(program, arguments, input=text)
    assert done.exit_code == 0
    assert "there is none, so nothing is evicted" in done.output


@pytest.mark.parametrize(("bogus", "valid"), [("", True), ("bogus: 1\n", False)])
def test_validate_as_data(bogus: str, valid: bool) -> None:
    text = "kind: DeschedulerPolicy\napiVersion: descheduler/v1alpha2\n" + bogus
    done = CliRunner().invoke(program, ["validate", "-", "-o", "json"], input=text)
    found = json.loads(done.stdout)
    assert found["valid"] is valid
    assert done.exit_code == (0 if valid else 2)
    if valid:
        assert found["corrections"] == sorted(ALL)
    else:
        assert [(each["path"], each["line"]) for each in found["errors"]] == [("bogus", 3)]


def test_triggers_lists_every_subscription() -> None:
    done = CliRunner().invoke(program, ["triggers", "-o", "json"])
    found = {
        (each["strategy"], each["action"], each["scope"], each["narrowed"])
        for each in json.loads(done.stdout)
    }
    declared = {
        (entry.spec.name, action.name, subscription.scope.value, subscription.narrow is not None)
        for entry in IN_TREE
        for subscription in entry.events
        for action in subscription.action
    }
    assert found == declared


def test_strategies_lists_all_in_order_of_urgency() -> None:
    done = CliRunner().invoke(program, ["strategies", "-o", "json"])
    found = json.loads(done.stdout)
    assert [each["name"] for each in found] == [entry.spec.name for entry in IN_TREE]
    restarts = next(each for each in found if each["name"] == "RemovePodsHavingTooManyRestarts")
    defaults = {each["name"]: each["default"] for each in restarts["arguments"]}
    assert defaults["includingInitContainers"] == "false"


@pytest.mark.parametrize("name", ["triggers", "strategies", "validate"])
def test_tables_are_never_cut_in_a_pipe(name: str) -> None:
    arguments = [name, SAMPLE] if name == "validate" else [name]
    done = CliRunner().invoke(program, arguments, env={"COLUMNS": "20"})
    assert done.exit_code == 0
    assert "…" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) > 80


def test_version() -> None:
    done = CliRunner().invoke(program, ["version"])
    assert done.stdout.startswith(f"reactive-descheduler {__version__} ")


@pytest.mark.parametrize("name", commands())
def test_every_command_explains_itself(name: str) -> None:
    done = CliRunner().invoke(program, [name, "--help"])
    assert done.exit_code == 0
    assert f"Usage: reactive-descheduler {name}" in done.stdout


@pytest.mark.parametrize("arguments", [["--help"], ["version"], ["validate", SAMPLE]])
def test_starts_without_the_client_library(arguments: list[str]) -> None:
    code = (
        "import sys, atexit\n"
        "atexit.register(lambda: print(*sorted({'kubernetes_asyncio', 'aiohttp'} &"
        " set(sys.modules)), file=sys.stderr))\n"
        "from reactive_descheduler.__main__ import main\n"
        f"sys.argv[1:] = {arguments!r}\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == ""


UPSTREAM = ["--kubeconfig", "k", "--descheduling_interval", "1h30m", "-v", "3"]


@pytest.mark.parametrize(
    ("arguments", "environment", "expected"),
    [
        pytest.param([], {}, {}, id="defaults"),
        pytest.param(
            UPSTREAM,
            {},
            {"kubeconfig": "k", "descheduling_interval": timedelta(minutes=90)},
            id="upstream's flags, with underscores",
        ),
        pytest.param(
            ["--client-connection-kubeconfig", "k"], {}, {"kubeconfig": "k"}, id="other name"
        ),
        pytest.param(
            ["--descheduling-interval", "0s"],
            {},
            {"descheduling_interval": timedelta()},
            id="interval 0 is one pass",
        ),
        pytest.param(["--dry-run", "--once"], {}, {"dry_run": True, "once": True}, id="switches"),
        pytest.param(
            ["--dry-run=false", "--leader-elect=false", "--leader-elect-lease-duration", "9s"],
            {"DRY_RUN": "true"},
            {},
            id="switched off",
        ),
        pytest.param(
            ["--corrections", "none"],
            {"SECURE_PORT": "0", "DISABLE_METRICS": "true", "BIND_ADDRESS": "::1"},
            {
                "corrections": NONE,
                "secure_port": 0,
                "disable_metrics": True,
                "bind_address": "::1",
            },
            id="environment",
        ),
    ],
)
def test_run_hands_its_flags_to_the_daemon(
    arguments: list[str],
    environment: dict[str, str],
    expected: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[RunSettings] = []

    async def run_daemon(settings: RunSettings) -> None:
        assert not settings.one_pass
        seen.append(settings)

    async def run_once(settings: RunSettings) -> PassReport:
        assert settings.one_pass
        seen.append(settings)
        return PassReport()

    monkeypatch.setattr(process, "run_daemon", run_daemon)
    monkeypatch.setattr(process, "run_once", run_once)
    done = CliRunner().invoke(
        program,
        ["run", *arguments],
        env={
            "REACTIVE_DESCHEDULER_POLICY_CONFIG_FILE": SAMPLE,
            **{f"REACTIVE_DESCHEDULER_{name}": value for name, value in environment.items()},
        },
    )
    assert (done.exit_code, done.stdout) == (0, "")
    assert seen == [RunSettings(policy_config_file=SAMPLE, **expected)]  # type: ignore[arg-type]


_POD = pod_view(make_pod())
_CANDIDATE = Candidate(Key(0, "PodLifeTime", (_POD.uid,)), _POD, Cause("age", (), ()), "old")


@pytest.mark.parametrize(
    ("report", "code"),
    [
        pytest.param(PassReport(evicted=[_CANDIDATE]), ExitCode.OK, id="evicted"),
        pytest.param(
            PassReport(refused=[RefusedCandidate(_CANDIDATE, Refusal(429, "budget"))]),
            ExitCode.OK,
            id="budget",
        ),
        pytest.param(
            PassReport(refused=[RefusedCandidate(_CANDIDATE, Refusal(403, "not you"))]),
            ExitCode.FAILURE,
            id="forbidden",
        ),
        pytest.param(
            PassReport(failed=[Failed(None, 0, "PodLifeTime", "ValueError")]),
            ExitCode.FAILURE,
            id="failing strategy",
        ),
        pytest.param(
            PassReport(
                refused=[RefusedCandidate(_CANDIDATE, Refusal(403, "not you"))],
                failed=[Failed(None, 0, "PodLifeTime", "ValueError")],
                failures_show=False,
            ),
            ExitCode.OK,
            id="as upstream",
        ),
    ],
)
def test_one_pass_tells_by_its_exit_code_whether_all_went_well(
    report: PassReport, code: ExitCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run_once(_settings: RunSettings) -> PassReport:
        return report

    monkeypatch.setattr(process, "run_once", run_once)
    done = CliRunner().invoke(program, ["run", "--once", "--policy-config-file", SAMPLE])
    assert done.exit_code == code
    assert "Pass ended" in done.stderr
