"""One suite for the sandbox and for a real kube-apiserver, so that the sandbox cannot drift.

Most tests get a `world`: a client and a namespace of their own on an API server without controllers
and kubelets, so that nothing moves by itself; `live` opens a cluster that has them. The real ones
run under the marker e2e.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.live import live_at, live_in_sandbox
from tests.contract.world import Endpoint, World, endpoint_of, sandbox_endpoint, world_at
from tests.controlplane.cluster import missing_binaries, running
from tests.controlplane.given import NEEDS_ITS_OWN, given

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.contract.live import Opener

KINDS = ["sandbox", pytest.param("real", marks=pytest.mark.e2e)]


@pytest.fixture(scope="session")
def real_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    if given():
        pytest.skip(NEEDS_ITS_OWN)
    if missing := missing_binaries():
        pytest.skip(f"no control plane: {', '.join(missing)} not built")
    directory = tmp_path_factory.mktemp("contract")
    with running(directory, components=("etcd", "apiserver")) as plane:
        yield endpoint_of(plane)


@pytest.fixture(params=KINDS)
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    if request.param == "real":
        async with world_at(request.getfixturevalue("real_endpoint")) as real:
            yield real
    else:
        async with sandbox_endpoint() as endpoint, world_at(endpoint) as embedded:
            yield embedded


@pytest.fixture(scope="session")
def real_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    if given():
        pytest.skip(NEEDS_ITS_OWN)
    if missing := missing_binaries():
        pytest.skip(f"no control plane: {', '.join(missing)} not built")
    with running(tmp_path_factory.mktemp("contract-live")) as plane:
        yield endpoint_of(plane)


@pytest.fixture(params=KINDS)
def live(request: pytest.FixtureRequest) -> Opener:
    """Opens the cluster within the test's own task, as its task group needs."""
    if request.param == "sandbox":
        return live_in_sandbox
    real = request.getfixturevalue("real_cluster")
    return lambda: live_at(real)
