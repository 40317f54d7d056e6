"""What the Dockerfile makes, built and run without Docker: its lines are carried out in a folder.

That stands for the image as far as files, user, environment and entry point go; the base image's
own content is not part of it.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.e2e.api import eventually
from tests.e2e.conftest import kubectl
from tests.e2e.probes import free_port, probe

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.controlplane.cluster import ControlPlane

pytestmark = [pytest.mark.e2e, pytest.mark.real_time, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
BASE = ROOT / "deploy" / "base"
ACCOUNT = "reactive-descheduler"
CAN_BE_A_CONTAINER = os.geteuid() == 0 and (
    shutil.which("setpriv") is not None
    and shutil.which("unshare") is not None
    and subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode
    == 0
)
CONTAINER = """
set -eu
mount --make-rprivate /
mount -t tmpfs none /var/run
secrets=/var/run/secrets/kubernetes.io/serviceaccount
mkdir -p "$secrets"
cp "$1" "$secrets/ca.crt"
printf %s "$2" > "$secrets/token"
chmod -R a+rX /var/run
mount -o remount,ro /var/run
if [ -n "$4" ]; then
  mount --bind "$3" /mnt
  mount -t tmpfs -o mode=755 none "$4"
  mkdir -p "$3"
  mount --bind /mnt "$3"
fi
mount -o remount,bind,ro /
shift 4
exec setpriv --reuid=65532 --regid=65532 --clear-groups --no-new-privs --inh-caps=-all \
  --bounding-set=-all "$@"
"""
"""A Pod as the base describes it, made of a mount namespace: CA and token where a Pod has them, a
read-only root, a user without a name or home, no capabilities.

Takes the CA's file, the token, where the interpreter lies, which folder on the way there is closed
to that user (in the image none is), and the command.
"""


@dataclass(slots=True)
class Image:
    """Where the lines of a Dockerfile led: every absolute path is one below `root`."""

    root: Path
    context: Path
    workdir: Path
    environment: dict[str, str] = field(default_factory=dict)
    user: str = ""
    entrypoint: list[str] = field(default_factory=list)

    def at(self, path: str) -> str:
        return str(self.root) + path if path.startswith("/") else path

    def carry_out(self, line: str) -> None:
        """Carry out one line; raises ValueError for one that this does not know."""
        instruction, _, rest = line.partition(" ")
        match instruction:
            case "FROM":
                self.workdir = self.root
            case "WORKDIR":
                self.workdir = Path(self.at(rest))
                self.workdir.mkdir(parents=True)
            case "COPY" if rest.startswith("--from="):
                _, source, target = rest.split()
                # Programs of a virtual environment name its place.
                assert source == target
                assert Path(self.at(source)).is_dir()
            case "COPY":
                *sources, target = rest.split()
                self._copy(sources, self.workdir / target, into=target.endswith("/"))
            case "RUN":
                command = [self.at(word) for word in shlex.split(rest)]
                environment = {**os.environ, "PYTHON": sys.executable}
                subprocess.run(command, cwd=self.workdir, env=environment, check=True, timeout=240)
            case "ENV":
                self.environment |= dict(each.split("=", 1) for each in rest.split())
            case "USER":
                self.user = rest
            case "ENTRYPOINT":
                program, *arguments = json.loads(rest)
                self.entrypoint = [self.at(program), *arguments]
            case "ARG" | "EXPOSE":
                pass
            case _:
                raise ValueError(f"cannot carry out {line!r}")

    def _copy(self, sources: list[str], target: Path, *, into: bool) -> None:
        for source in sources:
            found = self.context / source
            if found.is_dir():
                shutil.copytree(found, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                place = target / found.name if into else target
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(found, place)


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    # Not in pytest's own folder: that is closed to other users, as whom the program has to run.
    with tempfile.TemporaryDirectory(prefix="image-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        built = Image(root=folder, context=ROOT, workdir=folder)
        for line in (ROOT / "Dockerfile").read_text().splitlines():
            if line and not line.startswith("#"):
                built.carry_out(line)
        yield built


@asynccontextmanager
async def started(
    command: list[str], environment: dict[str, str], log: Path
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run it; a failure within the block carries what it wrote."""
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *command, env=environment, cwd="/", stdout=output, stderr=output
        )
    try:
        yield process
    except BaseException as error:
        error.add_note(await asyncio.to_thread(log.read_text, errors="replace"))
        raise
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def serves_readyz_and_ends_well(process: asyncio.subprocess.Process, port: int) -> None:
    async def ready() -> bool:
        return await probe(f"https://127.0.0.1:{port}/readyz") == (200, "ok")

    await eventually(ready, what="/readyz 200", within=30)
    process.terminate()
    async with asyncio.timeout(20):
        assert await process.wait() == 0


def test_it_holds_what_runs_and_nothing_that_builds(image: Image) -> None:
    prefix = Path(image.entrypoint[0]).parents[1]
    packages = {path.name.split("-")[0] for path in prefix.rglob("*.dist-info")}
    assert {"reactive_descheduler", "aiohttp", "msgspec"} <= packages
    assert not {"pip", "setuptools", "hatchling", "editables", "pytest"} & packages


def test_its_user_is_the_one_that_the_deployment_asks_for(image: Image) -> None:
    assert image.user == _user_of_the_deployment()


@pytest.mark.usefixtures("own_control_plane")
async def test_it_starts_and_is_ready(
    image: Image, control_plane: ControlPlane, tmp_path: Path
) -> None:
    port = free_port()
    command = [
        *(*image.entrypoint, "run", f"--policy-config-file={BASE / 'policy.yaml'}", "--dry-run"),
        *(f"--secure-port={port}", "--bind-address=127.0.0.1"),
        *("--kubeconfig", str(control_plane.kubeconfig())),
    ]
    async with started(command, image.environment, tmp_path / "log") as process:
        await serves_readyz_and_ends_well(process, port)


@pytest.mark.usefixtures("own_control_plane")
@pytest.mark.skipif(not CAN_BE_A_CONTAINER, reason="needs root, unshare and setpriv")
async def test_it_is_ready_in_a_pod_as_the_base_describes_it(
    image: Image, control_plane: ControlPlane, tmp_path: Path
) -> None:
    port = free_port()
    policy = Path(image.at("/policy.yaml"))
    await asyncio.to_thread(shutil.copy, BASE / "policy.yaml", policy)
    arguments = _arguments_of_the_deployment(policy)
    kubectl(control_plane, "apply", "-k", str(BASE))
    try:
        token = kubectl(control_plane, "create", "token", ACCOUNT, "-n=kube-system").strip()
        command = [
            *("unshare", "--mount", "sh", "-c", CONTAINER, "sh"),
            *(str(control_plane.directory / "ca.crt"), token),
            *(sys.base_prefix, _closed_folder(Path(sys.base_prefix))),
            *(*image.entrypoint, *arguments),
            *(f"--secure-port={port}", "--bind-address=127.0.0.1"),
        ]
        host, _, server_port = control_plane.server.removeprefix("https://").partition(":")
        environment = image.environment | {
            "PATH": os.environ["PATH"],
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": server_port,
        }
        async with started(command, environment, tmp_path / "log") as process:
            await serves_readyz_and_ends_well(process, port)
    finally:
        kubectl(control_plane, "delete", "-k", str(BASE))


def _closed_folder(path: Path) -> str:
    """The first folder on the way that not everybody may pass; empty if there is none."""
    way = [*reversed(path.parents), path]
    return next((str(each) for each in way if not each.stat().st_mode & 0o001), "")


def _user_of_the_deployment() -> str:
    document = yaml.safe_load((BASE / "deployment.yaml").read_text())
    context = document["spec"]["template"]["spec"]["securityContext"]
    return f"{context['runAsUser']}:{context['runAsGroup']}"


def _arguments_of_the_deployment(policy: Path) -> list[str]:
    """What its container is given, with the policy elsewhere."""
    document = yaml.safe_load((BASE / "deployment.yaml").read_text())
    (container,) = document["spec"]["template"]["spec"]["containers"]
    return [each.replace("/policy/policy.yaml", str(policy)) for each in container["args"]]
