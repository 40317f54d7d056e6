"""`scripts/kind-quickstart`, with programs in the place of Docker and kind that only take notes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from reactive_descheduler import __version__

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "scripts" / "kind-quickstart"
IMAGE = f"reactive-descheduler:{__version__}"
USED = ("bash", "dirname", "mkdir", "sed", "grep", "cat", "env")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with what the script uses of a system, and nothing else."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in USED:
        found = shutil.which(name)
        assert found
        (folder / name).symlink_to(found)
    return folder


def add(programs: Path, *names: str) -> None:
    """Add programs that write down how they were called; `kubectl kustomize` prints an image."""
    for name in names:
        path = programs / name
        path.write_text(
            f'#!/usr/bin/env bash\necho "{name} $*" >> "{programs.parent}/notes"\n'
            f'if [ "$1" = kustomize ]; then echo "        image: {IMAGE}"; fi\n'
        )
        path.chmod(0o755)


def run(programs: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(programs), "HOME": os.devnull}
    return subprocess.run(
        [SCRIPT, *arguments],
        env=environment,
        text=True,
        capture_output=True,
        check=False,
        timeout=15,
    )


def notes(programs: Path) -> list[str]:
    path = programs.parent / "notes"
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.parametrize(
    ("command", "there", "missing"),
    [
        ("up", (), "docker kind kubectl"),
        ("up", ("docker", "kubectl"), "kind"),
        ("on", (), "kubectl"),
        ("down", ("docker",), "kind"),
    ],
)
def test_it_says_which_programs_are_missing_and_does_nothing(
    programs: Path, command: str, there: tuple[str, ...], missing: str
) -> None:
    add(programs, *there)
    ended = run(programs, command)
    assert (ended.returncode, ended.stderr) == (1, f"not installed: {missing}\n")
    assert notes(programs) == []


def test_up_makes_the_cluster_then_the_image_then_deploys_a_dry_run(programs: Path) -> None:
    add(programs, "docker", "kind", "kubectl")
    ended = run(programs, "up")
    assert ended.returncode == 0, ended.stderr
    workload = "deployment/reactive-descheduler"
    assert notes(programs) == [
        "docker version",
        "kind get clusters --quiet",
        "kind create cluster --name reactive-descheduler"
        " --config deploy/kind/cluster.yaml --wait 120s",
        "kubectl kustomize deploy/overlays/dry-run",
        f"docker build --tag {IMAGE} .",
        f"kind load docker-image --name reactive-descheduler {IMAGE}",
        "kubectl apply -k deploy/overlays/dry-run",
        f"kubectl rollout restart --namespace kube-system {workload}",
        f"kubectl rollout status --namespace kube-system --timeout 180s {workload}",
    ]
    assert "./scripts/kind-quickstart on" in ended.stdout


def test_on_and_down_touch_nothing_else(programs: Path) -> None:
    add(programs, "docker", "kind", "kubectl")
    assert run(programs, "on").returncode == 0
    assert run(programs, "down").returncode == 0
    assert notes(programs)[0] == "kubectl apply -k deploy/base"
    assert notes(programs)[-1] == "kind delete cluster --name reactive-descheduler"


def test_the_cluster_has_a_second_worker_for_pods_to_go_to() -> None:
    document = yaml.safe_load((ROOT / "deploy" / "kind" / "cluster.yaml").read_text())
    assert [node["role"] for node in document["nodes"]].count("worker") == 2
