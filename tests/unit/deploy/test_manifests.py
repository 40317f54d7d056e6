"""What stands in `deploy/` agrees with the program, as kustomize renders it."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

import click
import pytest
import yaml

from reactive_descheduler import __version__
from reactive_descheduler.app.daemon import FLUSH_WITHIN
from reactive_descheduler.app.settings import RunSettings
from reactive_descheduler.cli import program
from reactive_descheduler.config.load import load_policy
from reactive_descheduler.server.http import DEFAULT_PORT
from reactive_descheduler.strategies import PLUGINS

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
KUBECTL = shutil.which("kubectl") or str(ROOT / "tests" / "controlplane" / "bin" / "kubectl")
BASE, DRY_RUN = "base", "overlays/dry-run"

Document = dict[str, object]

pytestmark = pytest.mark.skipif(
    not Path(KUBECTL).exists(), reason="no kubectl on the PATH, and none built"
)


@cache
def rendered(folder: str) -> dict[str, Document]:
    """The objects by kind; there is one of each."""
    text = subprocess.run(
        [KUBECTL, "kustomize", DEPLOY / folder], capture_output=True, check=True, timeout=15
    ).stdout
    documents = list(yaml.safe_load_all(text))
    by_kind = {document["kind"]: document for document in documents}
    assert len(by_kind) == len(documents)
    return by_kind


def at(document: object, *path: str | int) -> object:
    """What stands at a path."""
    for step in path:
        match document, step:
            case dict(), str():
                document = document[step]
            case list(), int():
                document = document[step]
            case _:
                raise AssertionError(f"no {step!r} in {document!r}")
    return document


def pod(folder: str, *path: str | int) -> object:
    return at(rendered(folder)["Deployment"], "spec", "template", "spec", *path)


def container(folder: str, *path: str | int) -> object:
    return pod(folder, "containers", 0, *path)


def arguments(folder: str) -> list[str]:
    found = container(folder, "args")
    assert isinstance(found, list)
    return found


def run_parameters(folder: str) -> dict[str, object]:
    """What `run` makes of the container's arguments."""
    name, *flags = arguments(folder)
    command = program.get_command(click.Context(program), name)
    assert command is not None
    return command.make_context(name, flags).params


@pytest.mark.parametrize(("folder", "options"), [(BASE, ()), (DRY_RUN, ("--dry-run",))])
def test_the_rights_are_those_that_the_policy_needs(
    folder: str, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """If not: `reactive-descheduler rbac -f deploy/base/policy.yaml > deploy/base/rbac.yaml`."""
    with pytest.raises(SystemExit, match="0"):
        program.main(["rbac", "-f", str(DEPLOY / BASE / "policy.yaml"), *options])
    role, binding = yaml.safe_load_all(capsys.readouterr().out)
    found = rendered(folder)
    assert found["ClusterRole"]["rules"] == role["rules"]
    for key in ("roleRef", "subjects"):
        assert found["ClusterRoleBinding"][key] == binding[key]
    account = at(found["ServiceAccount"], "metadata", "name")
    assert pod(folder, "serviceAccountName") == account == binding["subjects"][0]["name"]
    assert at(found["Deployment"], "metadata", "namespace") == binding["subjects"][0]["namespace"]


def test_the_file_of_the_base_is_what_the_command_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit, match="0"):
        program.main(["rbac", "-f", str(DEPLOY / BASE / "policy.yaml")])
    assert capsys.readouterr().out == (DEPLOY / BASE / "rbac.yaml").read_text()


def test_an_overlay_for_another_namespace_reaches_the_binding(tmp_path: Path) -> None:
    shutil.copytree(DEPLOY / BASE, tmp_path / "base")
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    (overlay / "kustomization.yaml").write_text("namespace: ops\nresources: [../base]\n")
    text = subprocess.run(
        [KUBECTL, "kustomize", overlay], capture_output=True, text=True, check=True, timeout=15
    ).stdout
    assert "namespace: ops" in text
    assert "kube-system" not in text


def test_the_policy_is_valid_and_stands_where_run_looks_for_it() -> None:
    path = run_parameters(BASE)["policy_config_file"]
    mounted = Path(str(container(BASE, "volumeMounts", 0, "mountPath")))
    assert "subPath" not in str(container(BASE, "volumeMounts"))
    assert pod(BASE, "volumes", 0, "configMap", "name") == at(
        rendered(BASE)["ConfigMap"], "metadata", "name"
    )
    file = Path(str(path)).relative_to(mounted)
    text = at(rendered(BASE)["ConfigMap"], "data", str(file))
    policy = load_policy(str(text), source=str(file), plugins=PLUGINS)
    assert not policy.warnings


def test_only_the_overlay_is_a_dry_run() -> None:
    assert run_parameters(BASE)["dry_run"] is False
    assert run_parameters(DRY_RUN)["dry_run"] is True
    assert arguments(DRY_RUN) == [*arguments(BASE), "--dry-run"]


def test_ports_are_those_that_run_serves() -> None:
    assert container(BASE, "ports") == [{"name": "http-metrics", "containerPort": DEFAULT_PORT}]
    assert run_parameters(BASE)["secure_port"] == DEFAULT_PORT
    service = rendered(BASE)["Service"]
    assert at(service, "spec", "ports", 0, "port") == DEFAULT_PORT
    assert at(service, "spec", "ports", 0, "targetPort") == "http-metrics"
    labels = at(rendered(BASE)["Deployment"], "spec", "template", "metadata", "labels")
    assert at(service, "spec", "selector") == labels


@pytest.mark.parametrize(
    ("probe", "path"),
    [("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")],
)
def test_probes_ask_what_is_served(probe: str, path: str) -> None:
    asked = container(BASE, probe, "httpGet")
    assert asked == {"scheme": "HTTPS", "port": "http-metrics", "path": path}


def test_the_process_has_no_more_power_than_it_needs() -> None:
    assert pod(BASE, "securityContext") == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container(BASE, "securityContext") == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_image_is_of_this_version() -> None:
    assert container(BASE, "image") == f"reactive-descheduler:{__version__}"


def test_there_is_one_at_a_time() -> None:
    assert at(rendered(BASE)["Deployment"], "spec", "replicas") == 1
    assert at(rendered(BASE)["Deployment"], "spec", "strategy", "type") == "Recreate"


def test_its_end_is_not_cut_short() -> None:
    grace = RunSettings(policy_config_file="").grace_period
    allowed = pod(BASE, "terminationGracePeriodSeconds")
    assert isinstance(allowed, int)
    assert allowed > grace + FLUSH_WITHIN
