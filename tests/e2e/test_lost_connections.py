"""What happens to the program when the API server dies, forgets, or no longer takes its token."""

from __future__ import annotations

import asyncio
import json
import signal
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.controlplane.credentials import write_kubeconfig
from tests.e2e.api import ApiError, connect, eventually, read_kubeconfig
from tests.e2e.objects import make_budget, make_deployment
from tests.e2e.policies import make_policy
from tests.e2e.scene import uids

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.api import Pod
    from tests.e2e.scene import Scene

pytestmark = [pytest.mark.e2e, pytest.mark.real_time, pytest.mark.timeout(180)]

TAINT = ("maintenance", "NoSchedule")
TAINTS = "RemovePodsViolatingNodeTaints"
MAX_AGE = 27
"""Seconds of silence from which on it knows too little. A quiet watch is opened anew after at most
25, so that a living API server is never taken for a dead one."""
STALE = {"staleness": {"maxAge": f"{MAX_AGE}s"}}
RECONNECTED = 40.0
"""Seconds after which it has surely come back: it waits for up to 30 between two attempts."""
HOMES = ("node-1", "node-2", "node-3")


async def revive(scene: Scene) -> None:
    """Start the API server again, and its clients anew: they would wait for it up to 30 s more."""
    plane = scene.plane
    await asyncio.to_thread(plane.start_again, "apiserver")
    for name in ("controller-manager", "scheduler", "kwok"):
        await asyncio.to_thread(plane.kill, name)
        if name == "kwok":  # a new one leaves the nodes to the old one until their leases are over
            await scene.api.delete("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases")
        await asyncio.to_thread(plane.start_again, name)


@pytest.mark.usefixtures("own_control_plane")
async def test_while_the_api_server_is_dead_nothing_goes_and_then_it_goes_on(scene: Scene) -> None:
    policy = make_policy(TAINTS, reactive={**STALE, "settle": {"default": "5s", "transient": "0s"}})
    web = await scene.deploy(make_deployment("web", replicas=6, nodes=HOMES), pods=6)
    wanted = uids(web, on="node-1")
    assert wanted
    await scene.create(make_budget("web", min_available=5))
    async with scene.running(policy) as descheduler:
        await scene.api.taint("node-1", TAINT)
        await asyncio.to_thread(scene.plane.kill, "apiserver")

        async def says_so() -> bool:
            status, text = await descheduler.ready()
            return status == 503 and "no sign of life" in text

        try:
            # It settles meanwhile: every attempt to evict fails, none is lost or sent twice.
            await eventually(says_so, what="not ready", within=MAX_AGE + 10)
        finally:
            await revive(scene)
        assert not scene.evicted()
        await descheduler.becomes_ready(within=RECONNECTED)
        await scene.sees_evicted(wanted, within=RECONNECTED)
        await scene.available("web", pods=6, not_on="node-1")
        assert scene.evicted() == wanted


@pytest.mark.usefixtures("own_control_plane")
async def test_what_changed_while_it_could_not_watch_is_seen_as_it_is_now(scene: Scene) -> None:
    """Frozen, its watches cut off, and what it would go on from forgotten, also by etcd."""
    policy = make_policy(TAINTS, reactive={"settle": {"default": "2s", "transient": "0s"}})
    web = await scene.deploy(make_deployment("web", replicas=6, nodes=HOMES, spread=True), pods=6)
    async with scene.running(policy) as descheduler:
        relists = 'reactive_descheduler_relists_total{kind="Pod"'
        before = await descheduler.metrics(relists)
        await scene.api.taint("node-1", TAINT)  # about to be acted on
        descheduler.process.send_signal(signal.SIGSTOP)
        try:
            await asyncio.to_thread(scene.plane.kill, "apiserver")
            await revive(scene)
            await scene.api.taint("node-1")
            gone = next(pod for pod in web if pod.node == "node-2")
            await scene.api.delete(
                f"/api/v1/namespaces/{scene.namespace}/pods/{gone.metadata.name}"
            )
            now = await replaced(scene, gone.metadata.uid)
            await scene.api.taint("node-3", TAINT)
            await asyncio.to_thread(scene.plane.compact)
        finally:
            descheduler.process.send_signal(signal.SIGCONT)
        wanted = {pod.metadata.uid for pod in now if pod.node == "node-3"}
        await scene.sees_evicted(wanted, within=RECONNECTED)
        await scene.quiet(3)
        assert scene.evicted() == wanted
        after = await descheduler.metrics(relists)
        assert after[relists] > before[relists]
        await descheduler.becomes_ready()


async def test_what_changed_while_it_was_frozen_is_seen_before_it_acts(scene: Scene) -> None:
    """Its connections are alive: the timer of the eviction is due, the change waits to be read."""
    policy = make_policy(TAINTS, reactive={"settle": {"default": "3s", "transient": "0s"}})
    web = await scene.deploy(make_deployment("web", replicas=6, nodes=HOMES), pods=6)
    assert uids(web, on="node-1")
    async with scene.running(policy) as descheduler:
        await scene.api.taint("node-1", TAINT)
        await asyncio.sleep(0.5)  # it has seen the taint
        descheduler.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(2)
        await scene.api.taint("node-1")
        await asyncio.sleep(2)
        descheduler.process.send_signal(signal.SIGCONT)
        await scene.quiet(4)
        assert not scene.evicted()


@pytest.mark.usefixtures("own_control_plane")
async def test_etcd_may_be_compacted_under_a_living_watch(scene: Scene) -> None:
    web = await scene.deploy(make_deployment("web", replicas=6), pods=6)
    async with scene.running(make_policy(TAINTS)):
        for node in HOMES[:2]:
            await asyncio.to_thread(scene.plane.compact)
            await scene.api.taint(node, TAINT)
            await scene.sees_evicted(uids(web, on=node))
            web = await scene.available("web", pods=6, not_on=node)
            await scene.api.taint(node)


@pytest.mark.usefixtures("own_control_plane")
async def test_a_token_that_is_rotated_is_used_before_the_old_one_fails(scene: Scene) -> None:
    """As a kubelet rotates it: the file is replaced, then the old token ends.

    Each token is bound to a Secret. To delete the Secret is the one way to end a token at once.
    """
    account = "rotated"
    file = scene.directory / "token"
    await scene.create({"kind": "ServiceAccount", "metadata": {"name": account}})
    binding = {
        "metadata": {"name": scene.namespace},
        "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": scene.namespace}],
    }
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    await scene.api.create(bindings, binding)
    first = await bound_token(scene, account, "first")
    replace_file(file, first)
    web = await scene.deploy(make_deployment("web", replicas=6), pods=6)
    async with scene.running(
        make_policy(TAINTS), kubeconfig=with_token_file(scene, file)
    ) as descheduler:
        replace_file(file, await bound_token(scene, account, "second"))
        await scene.api.delete(scene.path("Secret", "first"))
        await refused(scene, first)
        await scene.api.taint("node-1", TAINT)
        await scene.sees_evicted(uids(web, on="node-1"))
        await scene.available("web", pods=6, not_on="node-1")
        assert (await descheduler.ready())[0] == 200
        assert "401" not in await descheduler.output()
    await scene.api.delete(f"{bindings}/{scene.namespace}")


async def replaced(scene: Scene, uid: str) -> list[Pod]:
    """The Pods of `web`, once one has gone and another has come for it."""

    async def anew() -> bool:
        pods = await scene.api.pods(scene.namespace, "web")
        return len(pods) == 6 and uid not in uids(pods) and all(pod.available for pod in pods)

    await eventually(anew, what="a Pod replaced", within=30)
    return await scene.api.pods(scene.namespace, "web")


async def bound_token(scene: Scene, account: str, secret: str) -> str:
    """A token that is valid for as long as a Secret exists, which this creates."""
    await scene.create({"kind": "Secret", "metadata": {"name": secret}})
    answer = await scene.api.request("GET", scene.path("Secret", secret))
    reference = {
        "apiVersion": "v1",
        "kind": "Secret",
        "name": secret,
        "uid": json.loads(answer)["metadata"]["uid"],
    }
    answer = await scene.api.request(
        "POST",
        scene.path("ServiceAccount", f"{account}/token"),
        body={
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"boundObjectRef": reference},
        },
    )
    token = json.loads(answer)["status"]["token"]
    assert isinstance(token, str)
    return token


def replace_file(path: Path, text: str) -> None:
    """Replace a file in one step, as a kubelet does."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def with_token_file(scene: Scene, file: Path) -> Path:
    """A kubeconfig that names a file for the token."""
    path = scene.directory / "kubeconfig"
    write_kubeconfig(
        path, server=scene.plane.server, token="", authority=scene.plane.directory / "ca.crt"
    )
    document = json.loads(path.read_text())
    document["users"][0]["user"] = {"tokenFile": str(file)}
    path.write_text(json.dumps(document))
    return path


async def refused(scene: Scene, token: str) -> None:
    """Return once the API server no longer takes a token; it remembers for 10 s that it did."""
    access = replace(read_kubeconfig(scene.plane.kubeconfig()), token=token)
    async with connect(access) as client:

        async def is_refused() -> bool:
            try:
                await client.request("GET", "/api/v1/nodes?limit=1")
            except ApiError as error:
                return error.status == 401
            return False

        await eventually(is_refused, what="the old token refused", within=30)
