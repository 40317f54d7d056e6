"""One real control plane for all end-to-end tests, with four nodes in two zones.

Or a cluster that is there already, whose kubeconfig the variable E2E_KUBECONFIG names.
"""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.controlplane.cluster import BINARIES, ControlPlane, missing_binaries, running
from tests.controlplane.given import NEEDS_ITS_OWN, OURS, SELECTOR, given, joined
from tests.e2e.api import Access, Api, connect, eventually, read_kubeconfig
from tests.e2e.objects import ZONES, make_node
from tests.e2e.policies import limited, make_policy
from tests.e2e.scene import COLLECTIONS, Scene
from tests.e2e.witness import NAMESPACES, watching

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.e2e.witness import Witness

NODES = ("node-1", "node-2", "node-3", "node-4")
WORKLOADS = ("Deployment", "ReplicaSet", "DaemonSet", "Job")
NODES_WITHIN = 30.0
"""Seconds until the nodes are Ready and without the taint that they are admitted with."""


@pytest.fixture(scope="session")
def binaries() -> None:
    """For tests that need those of the control plane."""
    if missing := missing_binaries():
        why = "./scripts/control-plane build" if shutil.which("go") else "Go is not installed"
        pytest.skip(f"no control plane, {', '.join(missing)} not built: {why}")


@pytest.fixture(scope="session")
def control_plane(
    binaries: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    directory, kubeconfig = tmp_path_factory.mktemp("control-plane"), given()
    with joined(kubeconfig, directory) if kubeconfig else running(directory) as plane:
        _add_nodes(plane)
        yield plane


@pytest.fixture
def own_control_plane(control_plane: ControlPlane) -> None:
    """For tests that restart it, know its users, or put there what others may have there."""
    if not control_plane.is_ours:
        pytest.skip(NEEDS_ITS_OWN)


def _add_nodes(plane: ControlPlane) -> None:
    nodes = [make_node(name, zone=ZONES[at % 2]) for at, name in enumerate(NODES)]
    document = {"apiVersion": "v1", "kind": "List", "items": nodes}
    kubectl(plane, "create", "-f", "-", stdin=json.dumps(document))
    deadline = time.monotonic() + NODES_WITHIN
    while time.monotonic() < deadline:
        found = json.loads(kubectl(plane, "get", "nodes", "-l", SELECTOR, "-o", "json"))["items"]
        ready = [
            node
            for node in found
            if not node["spec"].get("taints")
            and {"Ready": "True"}.items()
            <= {
                each["type"]: each["status"] for each in node["status"].get("conditions", [])
            }.items()
        ]
        if len(ready) == len(NODES):
            return
        time.sleep(0.2)
    pytest.fail(f"nodes not Ready after {NODES_WITHIN:.0f} s")


def kubectl(plane: ControlPlane, *arguments: str, stdin: str = "") -> str:
    """What kubectl prints, as the administrator; nothing is written to the home directory."""
    return subprocess.run(
        [
            BINARIES / "kubectl",
            f"--kubeconfig={plane.kubeconfig()}",
            f"--cache-dir={plane.directory / 'kubectl'}",
            *arguments,
        ],
        input=stdin,
        text=True,
        capture_output=True,
        check=True,
        timeout=30,
    ).stdout


@pytest.fixture
def access(control_plane: ControlPlane) -> Access:
    """The administrator's access."""
    return read_kubeconfig(control_plane.kubeconfig())


@pytest.fixture
async def api(access: Access) -> AsyncIterator[Api]:
    """The API as the administrator; nodes take every Pod before and after."""
    async with connect(access) as client:
        yield client
        for node in NODES:
            await client.cordon(node, on=False)
            await client.taint(node)


@pytest.fixture
async def witness(access: Access) -> AsyncIterator[Witness]:
    """What is evicted while the test runs; none of it may break a budget."""
    async with connect(access) as client, watching(client) as found:
        yield found
    assert not found.broken


@pytest.fixture(autouse=True)
def _no_budget_is_ever_broken(request: pytest.FixtureRequest) -> None:
    """Every test that has the control plane has a witness."""
    if "api" in request.fixturenames:
        request.getfixturevalue("witness")


@pytest.fixture
async def namespace(api: Api) -> AsyncIterator[str]:
    """A namespace of the test's own, ready to take Pods; they are gone before the next test."""
    async with a_namespace(api) as name:
        yield name


@asynccontextmanager
async def a_namespace(api: Api) -> AsyncIterator[str]:
    """A namespace for the length of a block; it ends once no Pod is left in it."""
    name = f"{NAMESPACES}{secrets.token_hex(4)}"
    path = f"/api/v1/namespaces/{name}"
    await api.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": OURS}})

    async def has(resource: str) -> bool:
        return bool(json.loads(await api.request("GET", f"{path}/{resource}"))["items"])

    async def has_account() -> bool:
        return await has("serviceaccounts")

    async def has_no_pods() -> bool:
        # At once: kwok ends nobody whose node is deleted, and some Pods take their time.
        await api.delete(f"{path}/pods?gracePeriodSeconds=0")
        return not await has("pods")

    await eventually(has_account, what="a service account in the namespace", within=20)
    yield name
    # The namespace itself would take its 5 s over them.
    for kind in WORKLOADS:
        collection = COLLECTIONS[kind].format(name)
        await api.delete(f"/{collection}?propagationPolicy=Background")
    # What is left would be wanted by the next test's descheduler.
    await eventually(has_no_pods, what="no Pods left", within=45)
    await api.delete(path)


@pytest.fixture
def scene(
    control_plane: ControlPlane, api: Api, witness: Witness, namespace: str, tmp_path: Path
) -> Scene:
    """All of these at hand."""
    return Scene(control_plane, api, witness, namespace, tmp_path)


@pytest.fixture
def policy(control_plane: ControlPlane, tmp_path: Path) -> Path:
    """A policy that acts on node taints at once."""
    path = tmp_path / "policy.yaml"
    path.write_text(
        json.dumps(limited(make_policy("RemovePodsViolatingNodeTaints"), control_plane))
    )
    return path
