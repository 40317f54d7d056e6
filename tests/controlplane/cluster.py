"""Start and stop a real control plane on loopback: etcd, Kubernetes and kwok as the kubelet.

One implementation for people (`scripts/control-plane up|down|status`) and for tests (`running`).
Everything that it writes stands in one directory; what it started is found again by the process ids
noted there, each checked against the binary before it is signalled. Flags are explained where they
surprise; nothing listens on another address than 127.0.0.1.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tests.controlplane.credentials import write_certificates, write_users

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

HERE = Path(__file__).resolve().parent
BINARIES = HERE / "bin"
OUR_STAGES = HERE / "stages.yaml"
DEFAULT_DIRECTORY = HERE / "run"
PROGRAMS = {  # by component, in the order of their start
    "etcd": "server",
    "apiserver": "kube-apiserver",
    "controller-manager": "kube-controller-manager",
    "scheduler": "kube-scheduler",
    "kwok": "kwok",
}
READY_WITHIN = 90.0
"""Seconds that one component may take until it is ready; 1 to 5 are usual."""
STOP_WITHIN = 15.0
"""Seconds from SIGTERM to SIGKILL for one component; etcd and the API server take about one."""


class ControlPlaneError(Exception):
    """A component runs already or did not become ready; its last log lines are in the message."""


@dataclass(frozen=True, slots=True)
class Component:
    """One process, and the requests that answer 200 once it is ready."""

    name: str
    arguments: list[str]
    ready: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """A running control plane."""

    directory: Path
    server: str
    tokens: dict[str, str]
    components: list[Component]
    processes: list[subprocess.Popen[bytes]]
    """Those of `components`, in the same order."""

    @property
    def is_ours(self) -> bool:
        """Whether it was started for us: then it may be stopped, and nobody else is in it."""
        return any(component.name == "apiserver" for component in self.components)

    def kubeconfig(self, user: str = "admin") -> Path:
        """Path of a user's kubeconfig: `admin`, or `nobody` who has no rights."""
        return self.directory / f"{user}.kubeconfig"

    def kill(self, name: str) -> None:
        """End a component as a power cut does, with SIGKILL."""
        process = self.processes[self._index(name)]
        process.kill()
        process.wait(STOP_WITHIN)

    def start_again(self, name: str) -> None:
        """Start what was killed: same port, same state; returns once it is ready."""
        at = self._index(name)
        component = self.components[at]
        self.processes[at] = spawn(self.directory, component)
        _wait_ready(
            self.directory,
            component,
            process=self.processes[at],
            trust=_trust(self.directory),
            token=self.tokens["admin"],
        )

    def compact(self) -> int:
        """Have etcd forget everything but the present state; gives the revision of that."""
        revision = int(self._ask_etcd("range", {"key": "AA=="})["header"]["revision"])
        self._ask_etcd("compaction", {"revision": revision, "physical": True})
        return revision

    def _ask_etcd(self, method: str, body: dict[str, object]) -> dict[str, dict[str, str]]:
        health = self.components[self._index("etcd")].ready[0]
        request = urllib.request.Request(
            f"{health.removesuffix('/health')}/v3/kv/{method}",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10) as response:
            answer: dict[str, dict[str, str]] = json.load(response)
            return answer

    def _index(self, name: str) -> int:
        return [component.name for component in self.components].index(name)


def missing_binaries() -> list[str]:
    """Names of the binaries that have not been built."""
    wanted = [*PROGRAMS.values(), "kubectl", "stages"]
    return [name for name in wanted if not (BINARIES / name).exists()]


@contextmanager
def running(
    directory: Path, *, components: Collection[str] = tuple(PROGRAMS)
) -> Iterator[ControlPlane]:
    """Start a fresh control plane, or some of its components, for the length of a `with` block."""
    plane = start(directory, components=components)
    try:
        yield plane
    finally:
        stop(directory)
        for process in plane.processes:
            process.wait(STOP_WITHIN)


def start(directory: Path, *, components: Collection[str] = tuple(PROGRAMS)) -> ControlPlane:
    """Start the components, each when the one before is ready; an earlier run's objects are lost.

    Raises ControlPlaneError if one of them runs there already or does not come up; those that were
    started are stopped then.
    """
    directory = directory.resolve()
    if alive := [name for name in PROGRAMS if _pid(directory, name)]:
        raise ControlPlaneError(f"already running in {directory}: {', '.join(alive)}")
    shutil.rmtree(directory / "etcd", ignore_errors=True)
    directory.mkdir(parents=True, exist_ok=True)
    ports = _free_ports(5)
    server = f"https://127.0.0.1:{ports[2]}"
    write_certificates(directory)
    tokens = write_users(directory, server)
    trust = _trust(directory)
    wanted = [each for each in _components(directory, ports) if each.name in components]
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for component in wanted:
            process = spawn(directory, component)
            processes.append(process)
            _wait_ready(directory, component, process=process, trust=trust, token=tokens["admin"])
    except BaseException:
        stop(directory)
        raise
    return ControlPlane(
        directory=directory,
        server=server,
        tokens=tokens,
        components=wanted,
        processes=processes,
    )


def stop(directory: Path) -> list[str]:
    """Stop what runs in a directory, the last started first; gives the names of the stopped."""
    directory = directory.resolve()
    stopped = []
    for name in reversed(PROGRAMS):
        pid = _pid(directory, name)
        if pid is not None:
            _end(directory, name, pid)
            stopped.append(name)
        _pid_file(directory, name).unlink(missing_ok=True)
    return stopped


def memory(directory: Path) -> dict[str, tuple[int, int] | None]:
    """Process id and resident memory in MiB of each component; None for one that is not running."""
    result: dict[str, tuple[int, int] | None] = {}
    for name in PROGRAMS:
        pid = _pid(directory.resolve(), name)
        result[name] = None if pid is None else (pid, _resident(pid))
    return result


def _components(directory: Path, ports: list[int]) -> list[Component]:
    etcd, peer, api, controllers, scheduler = ports
    at = directory
    serving = [
        "--bind-address=127.0.0.1",
        f"--tls-cert-file={at}/server.crt",
        f"--tls-private-key-file={at}/server.key",
    ]
    # No wait for a lease, and not the default rate limits of 20 or 50 requests a second.
    client = ["--leader-elect=false", "--kube-api-qps=300", "--kube-api-burst=600"]
    server = f"https://127.0.0.1:{api}"
    return [
        Component(
            "etcd",
            [
                "--name=test",
                f"--data-dir={at}/etcd",
                "--unsafe-no-fsync",
                "--quota-backend-bytes=8589934592",
                "--log-level=warn",
                f"--listen-client-urls=http://127.0.0.1:{etcd}",
                f"--advertise-client-urls=http://127.0.0.1:{etcd}",
                f"--listen-peer-urls=http://127.0.0.1:{peer}",
                f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
                f"--initial-cluster=test=http://127.0.0.1:{peer}",
            ],
            [f"http://127.0.0.1:{etcd}/health"],
        ),
        Component(
            "apiserver",
            [
                *serving,
                f"--etcd-servers=http://127.0.0.1:{etcd}",
                "--advertise-address=127.0.0.1",
                f"--secure-port={api}",
                # The endpoint of the `kubernetes` service may not be a loopback address.
                "--endpoint-reconciler-type=none",
                f"--client-ca-file={at}/ca.crt",
                f"--token-auth-file={at}/tokens.csv",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-key-file={at}/sa.pub",
                f"--service-account-signing-key-file={at}/sa.key",
                "--authorization-mode=RBAC",
                "--service-cluster-ip-range=10.99.0.0/16",
            ],
            [f"{server}/readyz"],
        ),
        Component(
            "controller-manager",
            [
                *serving,
                *client,
                f"--kubeconfig={at}/controller-manager.kubeconfig",
                f"--secure-port={controllers}",
                "--use-service-account-credentials=true",
                f"--service-account-private-key-file={at}/sa.key",
                f"--root-ca-file={at}/ca.crt",
                # A test may stop kwok, and with it the heartbeats, without losing its nodes.
                "--node-monitor-grace-period=8760h",
                # Else it makes a directory under /usr.
                f"--flex-volume-plugin-dir={at}/flexvolume",
            ],
            [
                f"https://127.0.0.1:{controllers}/healthz",
                # No Pod is admitted before its namespace has this one.
                f"{server}/api/v1/namespaces/default/serviceaccounts/default",
            ],
        ),
        Component(
            "scheduler",
            [
                *serving,
                *client,
                f"--kubeconfig={at}/scheduler.kubeconfig",
                f"--secure-port={scheduler}",
            ],
            [f"https://127.0.0.1:{scheduler}/readyz"],
        ),
        kwok(directory, "--manage-all-nodes"),
    ]


def kwok(directory: Path, *whose: str) -> Component:
    """The kubelet of the nodes that the flags `whose` choose, as the administrator."""
    stages = [*sorted((BINARIES / "stages").glob("*.yaml")), OUR_STAGES]
    return Component(
        "kwok",
        [
            f"--kubeconfig={directory}/admin.kubeconfig",
            *whose,
            "--node-lease-duration-seconds=40",
            *(f"--config={stage}" for stage in stages),
        ],
    )


def spawn(directory: Path, component: Component) -> subprocess.Popen[bytes]:
    """Start a component's process; `stop` finds it again."""
    binary = BINARIES / PROGRAMS[component.name]
    with (directory / f"{component.name}.log").open("wb") as log:
        # A session of its own: an interrupt on the terminal is for whoever started the plane,
        # who then ends it in order.
        process = subprocess.Popen(
            [str(binary), *component.arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=directory,
            start_new_session=True,
        )
    _pid_file(directory, component.name).write_text(str(process.pid))
    return process


def _wait_ready(
    directory: Path,
    component: Component,
    *,
    process: subprocess.Popen[bytes],
    trust: ssl.SSLContext,
    token: str,
) -> None:
    deadline = time.monotonic() + READY_WITHIN
    for url in component.ready:
        while not _answers(url, trust=trust, token=token):
            if process.poll() is not None:
                raise ControlPlaneError(
                    f"{component.name} ended with exit code {process.returncode}:\n"
                    f"{_last_lines(directory, component.name)}"
                )
            if time.monotonic() > deadline:
                raise ControlPlaneError(
                    f"{component.name} not ready after {READY_WITHIN:.0f} s:\n"
                    f"{_last_lines(directory, component.name)}"
                )
            time.sleep(0.1)


def _trust(directory: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(directory / "ca.crt"))


def _answers(url: str, *, trust: ssl.SSLContext, token: str) -> bool:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    context = trust if url.startswith("https") else None
    try:
        with urllib.request.urlopen(request, timeout=2, context=context) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _last_lines(directory: Path, name: str) -> str:
    log = (directory / f"{name}.log").read_text(errors="replace")
    return "\n".join(log.splitlines()[-10:])


def _free_ports(count: int) -> list[int]:
    """Ports free on loopback; all are held until all are known, so that no two are the same."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _pid_file(directory: Path, name: str) -> Path:
    return directory / f"{name}.pid"


def _pid(directory: Path, name: str) -> int | None:
    """The process id of a component, if that process still runs its binary (ids are used again)."""
    try:
        pid = int(_pid_file(directory, name).read_text())
        executable = Path(f"/proc/{pid}/exe").readlink()
    except (OSError, ValueError):
        return None
    # Linux says " (deleted)" of a binary that a later build has replaced.
    binary = (BINARIES / PROGRAMS[name]).resolve()
    return pid if str(executable).removesuffix(" (deleted)") == str(binary) else None


def _end(directory: Path, name: str, pid: int) -> None:
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_WITHIN
    while _pid(directory, name) is not None:
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            deadline += STOP_WITHIN
        time.sleep(0.05)


def _resident(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    kib = next((line.split()[1] for line in lines if line.startswith("VmRSS:")), "0")
    return int(kib) // 1024


@click.group()
def main() -> None:
    """Start and stop a real control plane on loopback."""


_directory = click.argument(
    "directory", type=click.Path(path_type=Path, file_okay=False), default=DEFAULT_DIRECTORY
)


@main.command()
@_directory
def up(directory: Path) -> None:
    """Start it and print the path of an administrator's kubeconfig."""
    if missing := missing_binaries():
        raise click.ClickException(
            f"not built: {', '.join(missing)}; run ./scripts/control-plane build"
        )
    try:
        plane = start(directory)
    except ControlPlaneError as error:
        raise click.ClickException(str(error)) from None
    click.echo(plane.kubeconfig())


@main.command()
@_directory
def down(directory: Path) -> None:
    """Stop what `up` started."""
    stopped = stop(directory)
    click.echo(f"stopped: {', '.join(stopped) or 'nothing was running'}")


@main.command()
@_directory
def status(directory: Path) -> None:
    """Show what runs."""
    components = memory(directory)
    for name, found in components.items():
        state = "not running" if found is None else f"pid {found[0]}, {found[1]} MiB"
        click.echo(f"{name:<20}{state}")
    if None in components.values():
        raise click.exceptions.Exit(1)


if __name__ == "__main__":
    main()
