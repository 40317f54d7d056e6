"""Bad usage and bad input: the message, the hint and the exit code."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import NamedTuple

import click
import pytest
from click.testing import CliRunner

from reactive_descheduler.api.errors import (
    AddressError,
    AmbiguousError,
    ApiStatusError,
    PolicyError,
    Problem,
    SnapshotError,
    Unreachable,
)
from reactive_descheduler.cli import program
from reactive_descheduler.cli.exit_codes import ExitCode
from reactive_descheduler.cli.failures import explain

POLICY = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
  - name: default
    plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaints]}}
"""
KUBECONFIG = {
    "kubeconfig": "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
    "contexts: [{name: x, context: {cluster: x, user: x}}]\n"
    "clusters: [{name: x, cluster: {server: 'http://127.0.0.1:1'}}]\n"
    "users: [{name: x, user: {}}]\n"
}


class Wrong(NamedTuple):
    arguments: str
    """The files `policy`, `dump` and `broken` stand in the working directory."""
    message: str
    hint: str = ""
    code: ExitCode = ExitCode.USAGE
    files: dict[str, str] | None = None


WRONG = {
    "unknown command": Wrong("bogus", "No such command 'bogus'", "--help"),
    "unknown flag": Wrong("plan --bogus", "No such option '--bogus'", "plan --help"),
    "no policy": Wrong("plan", "Missing option '-f' / '--policy-config-file'", "plan --help"),
    "policy that is not there": Wrong(
        "plan --policy-config-file nowhere", "nowhere: No such file or directory"
    ),
    "run without its policy": Wrong(
        "run --policy-config-file nowhere", "nowhere: No such file or directory"
    ),
    "validate what is not there": Wrong("validate nowhere", "nowhere: No such file or directory"),
    "two clusters": Wrong(
        "plan --policy-config-file policy --kubeconfig k --snapshot s", "exclude each other"
    ),
    "two standard inputs": Wrong("plan --policy-config-file - --snapshot -", "standard input"),
    "standard input for a daemon": Wrong(
        "run --policy-config-file -", "has to be a file", "run --help"
    ),
    "validate nothing": Wrong("validate", "Missing argument 'FILE'", "validate --help"),
    "validate two": Wrong("validate policy -f policy", "give one", "validate --help"),
    "no namespace": Wrong(
        "rbac -f policy --namespace A_B", "'A_B' is no name such as kube-system", "rbac --help"
    ),
    "no name": Wrong("rbac -f policy --service-account a..b", "'a..b' is no name", "rbac --help"),
    "too long a namespace": Wrong(f"rbac -f policy --namespace {'a' * 64}", "is no name"),
    "unknown correction": Wrong(
        "validate policy --corrections evictAnotation", "evictAnnotation", "validate --help"
    ),
    "wrong time": Wrong(
        "plan --policy-config-file policy --now yesterday", "'yesterday' is no time such as"
    ),
    "wrong duration": Wrong(
        "run --policy-config-file policy --descheduling-interval 5", "such as 90s, 5m or 1h30m"
    ),
    "negative duration": Wrong(
        "run --policy-config-file policy --descheduling-interval=-5m", "must not be negative"
    ),
    "unknown log format": Wrong("run --policy-config-file policy --logging-format xml", "'xml'"),
    "half a certificate": Wrong(
        "run --policy-config-file policy --tls-cert-file x", "go together", "run --help"
    ),
    "leader election": Wrong(
        "run --policy-config-file policy --leader-elect", "not built yet", "run --help"
    ),
    "refused policy": Wrong(
        "plan --policy-config-file broken",
        "broken:5: profiles[0].plugins.deschedule.enabled",
        files={"broken": POLICY.replace("NodeTaints", "NodeTaint")},
    ),
    "strategy of the other phase": Wrong(
        "validate broken",
        "RemoveDuplicates is no deschedule plugin",
        files={"broken": POLICY.replace("RemovePodsViolatingNodeTaints", "RemoveDuplicates")},
    ),
    "empty dump": Wrong(
        "plan --policy-config-file policy --snapshot dump",
        "dump: is empty",
        "kubectl get",
        files={"dump": "\n"},
    ),
    "dump that is no YAML": Wrong(
        "plan --policy-config-file policy --snapshot dump",
        "dump: is not YAML on line 2",
        "kubectl get",
        files={"dump": "a: [\n"},
    ),
    "dump of Pods alone": Wrong(
        "plan --policy-config-file policy --snapshot dump",
        "dump: holds no Node and no Pod, which are needed",
        "kubectl get",
        files={"dump": '{"kind": "List", "items": []}'},
    ),
    "no kubeconfig": Wrong(
        "plan --policy-config-file policy --kubeconfig nowhere",
        "cannot use nowhere",
        "--kubeconfig FILE",
        code=ExitCode.UNREACHABLE,
    ),
    "address of no machine": Wrong(
        "run --policy-config-file policy --kubeconfig kubeconfig --bind-address foo.invalid",
        "cannot listen on foo.invalid, port 10258",
        "--bind-address",
        files=KUBECONFIG,
    ),
    "server that is not there": Wrong(
        "plan --policy-config-file policy --kubeconfig kubeconfig",
        "http://127.0.0.1:1",
        "is the address right",
        code=ExitCode.UNREACHABLE,
        files=KUBECONFIG,
    ),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_tells_what_is_wrong_in_a_line_and_a_hint(
    wrong: Wrong, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {"policy": POLICY, **(wrong.files or {})}.items():
        Path(name).write_text(text, encoding="utf-8")
    done = CliRunner().invoke(program, wrong.arguments.split())
    assert done.exit_code == wrong.code
    assert done.stdout == ""
    message, *hint = done.stderr.splitlines()
    assert message.startswith("error: ")
    assert wrong.message in message
    assert len(hint) <= 1
    assert wrong.hint in "".join(hint)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        pytest.param(PolicyError("p", [Problem("", None, "m")]), ExitCode.USAGE, id="policy"),
        pytest.param(SnapshotError("x"), ExitCode.USAGE, id="dump"),
        pytest.param(FileNotFoundError(2, "gone", "f"), ExitCode.USAGE, id="no file"),
        pytest.param(OSError(28, "disk full"), ExitCode.FAILURE, id="disk full"),
        pytest.param(
            AddressError("localhost", 80, OSError(98, "x")), ExitCode.USAGE, id="port in use"
        ),
        pytest.param(Unreachable("x"), ExitCode.UNREACHABLE, id="unreachable"),
        pytest.param(ApiStatusError(403, "Forbidden", "x"), ExitCode.UNREACHABLE, id="forbidden"),
        pytest.param(AmbiguousError("x"), ExitCode.FAILURE, id="no answer"),
        pytest.param(RuntimeError("x"), ExitCode.FAILURE, id="bug"),
        pytest.param(click.exceptions.Abort(), ExitCode.INTERRUPTED, id="Ctrl-C"),
        pytest.param(
            ExceptionGroup("g", [ExceptionGroup("g", [Unreachable("x")])]),
            ExitCode.UNREACHABLE,
            id="out of task groups",
        ),
    ],
)
def test_each_failure_has_its_exit_code(error: BaseException, code: ExitCode) -> None:
    failure = explain(error)
    assert failure.code is code
    assert failure.lines


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("command", "hint"),
    [
        pytest.param("sandbox --port PORT", "--port", id="sandbox"),
        pytest.param(
            "run --policy-config-file policy --kubeconfig kubeconfig"
            " --bind-address 127.0.0.1 --secure-port PORT",
            "--secure-port",
            id="run",
        ),
    ],
)
def test_a_port_that_is_taken(
    command: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {"policy": POLICY, **KUBECONFIG}.items():
        Path(name).write_text(text, encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = CliRunner().invoke(program, command.replace("PORT", port).split())
    message, hints = done.stderr.splitlines()
    assert done.exit_code == ExitCode.USAGE
    assert message == f"error: cannot listen on 127.0.0.1, port {port}: Address already in use"
    assert hint in hints


@pytest.mark.parametrize("arguments", [["--debug", "plan"], ["plan", "--debug"]])
def test_debug_adds_the_traceback(arguments: list[str], tmp_path: Path) -> None:
    policy = tmp_path / "policy"
    policy.write_text(POLICY, encoding="utf-8")
    arguments = [*arguments, "--policy-config-file", str(policy), "--kubeconfig", "nowhere"]
    done = CliRunner().invoke(program, arguments)
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("hint: ")


def test_a_refused_policy_has_a_line_for_each_mistake(tmp_path: Path) -> None:
    policy = tmp_path / "policy"
    policy.write_text(POLICY + "nodeSelektor: x\nmaxNoOfPodsToEvictTotal: many\n", encoding="utf-8")
    done = CliRunner().invoke(program, ["validate", str(policy)])
    assert done.exit_code == ExitCode.USAGE
    lines = [line for line in done.stderr.splitlines() if line.startswith(f"error: {policy}:")]
    assert len(lines) == 2
    assert "nodeSelector" in lines[0]


@pytest.mark.parametrize(
    "command",
    [
        "validate",
        "validate --policy-config-file",
        "plan --policy-config-file",
        "run --policy-config-file",
    ],
)
def test_a_policy_that_is_no_text_is_refused_by_every_command(command: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy"
    policy.write_bytes(b"a: \xff")
    done = CliRunner().invoke(program, [*command.split(), str(policy)])
    assert done.exit_code == ExitCode.USAGE
    assert done.stderr.startswith(f"error: {policy}: is not UTF-8")
