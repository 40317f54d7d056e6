"""What `deploy/` makes, on a real API server: accepted, enough to work with, and nothing too much.

The rights are those of the real service accounts, by tokens from TokenRequest. Without any one of
them the program must say which is missing, and evict nothing that it cannot know enough about.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
import yaml

from tests.controlplane.credentials import write_kubeconfig
from tests.e2e.api import Api, Pod, eventually
from tests.e2e.conftest import kubectl
from tests.e2e.descheduler import Descheduler, running_descheduler
from tests.e2e.objects import make_deployment
from tests.e2e.probes import free_port, probe

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.controlplane.cluster import ControlPlane

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.real_time,
    pytest.mark.timeout(180),
    pytest.mark.usefixtures("own_control_plane"),
]

DEPLOY = Path(__file__).parents[2] / "deploy"
ACCOUNT = "reactive-descheduler"
KEY = "maintenance"
TAINT = (KEY, "NoSchedule")
HOMES = ("node-1", "node-2")
QUIET = 2.0
"""Seconds after the message in which an eviction would have happened: with all rights it takes
less than one."""


class Right(NamedTuple):
    verb: str
    resource: str

    @property
    def denial(self) -> str:
        """How the API server, and so the program, names it."""
        return f'cannot {self.verb} resource "{self.resource}"'


@dataclass(frozen=True, slots=True)
class Running:
    """The program with its own readiness at hand."""

    descheduler: Descheduler
    readyz: str

    async def ready(self) -> tuple[int, str]:
        """Status and text of /readyz."""
        return await probe(self.readyz)

    async def says(self, text: str) -> None:
        async def said() -> bool:
            return text in await self.descheduler.output()

        await eventually(said, what=f"{text!r} in the output", within=30)

    async def becomes_ready(self) -> None:
        async def is_ready() -> bool:
            return (await self.ready())[0] == 200

        await eventually(is_ready, what="ready", within=30)


@asynccontextmanager
async def running(
    plane: ControlPlane, token: str, *arguments: str, policy: Path, directory: Path
) -> AsyncIterator[Running]:
    """`run` as the owner of a token."""
    kubeconfig = directory / "kubeconfig"
    write_kubeconfig(
        kubeconfig, server=plane.server, token=token, authority=plane.directory / "ca.crt"
    )
    port = free_port()
    async with running_descheduler(
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        "--v=5",
        *arguments,
        policy=policy,
        kubeconfig=kubeconfig,
        log=directory / "run.log",
    ) as descheduler:
        yield Running(descheduler, f"https://127.0.0.1:{port}/readyz")


async def two_pods(api: Api, namespace: str) -> list[Pod]:
    """The Pods of a new Deployment, once there is one on each of HOMES and both are available.

    Not by a strict spread: under one a Pod fits nowhere but where it is, and stays.
    """
    await api.create(
        f"/apis/apps/v1/namespaces/{namespace}/deployments",
        make_deployment("web", replicas=2, nodes=HOMES),
    )

    async def settled() -> bool:
        pods = await api.pods(namespace, "web")
        return sorted(pod.node for pod in pods if pod.available) == sorted(HOMES)

    await eventually(settled, what="a Pod on each node", within=45)
    return await api.pods(namespace, "web")


def uids(pods: list[Pod]) -> set[str]:
    return {pod.metadata.uid for pod in pods}


def on_first(pods: list[Pod]) -> Pod:
    return next(pod for pod in pods if pod.node == HOMES[0])


async def gone(api: Api, namespace: str, pod: Pod) -> None:
    async def is_gone() -> bool:
        return pod.metadata.uid not in uids(await api.pods(namespace, "web"))

    await eventually(is_gone, what="the Pod evicted", within=45)


async def events_about(api: Api, namespace: str, pod: Pod) -> list[str]:
    """The reasons of the Events about one Pod by the descheduler."""
    answer = await api.request("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")
    return [
        event["reason"]
        for event in json.loads(answer)["items"]
        if event["regarding"].get("uid") == pod.metadata.uid
        and event.get("reportingController") == "sigs.k8s.io.descheduler"
    ]


# What stands in deploy/


@pytest.fixture
def deployed(control_plane: ControlPlane) -> Iterator[None]:
    """The base, applied as the documentation says."""
    kubectl(control_plane, "apply", "-k", str(DEPLOY / "base"))
    yield
    kubectl(control_plane, "delete", "-k", str(DEPLOY / "base"))


@pytest.mark.parametrize("folder", ["base", "overlays/dry-run"])
def test_the_api_server_accepts_every_object(control_plane: ControlPlane, folder: str) -> None:
    printed = kubectl(
        control_plane,
        "apply",
        "--server-side",
        "--dry-run=server",
        "--validate=strict",
        "-k",
        str(DEPLOY / folder),
    )
    assert sorted(line.split("/")[0] for line in printed.splitlines()) == [
        "clusterrole.rbac.authorization.k8s.io",
        "clusterrolebinding.rbac.authorization.k8s.io",
        "configmap",
        "deployment.apps",
        "service",
        "serviceaccount",
    ]


async def test_its_pod_meets_the_restricted_pod_security_standard(
    control_plane: ControlPlane, api: Api, namespace: str
) -> None:
    await api.patch(
        f"/api/v1/namespaces/{namespace}",
        {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}},
    )
    await api.create(
        f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": ACCOUNT}}
    )
    rendered = await asyncio.to_thread(kubectl, control_plane, "kustomize", str(DEPLOY / "base"))
    template = next(
        document["spec"]["template"]
        for document in yaml.safe_load_all(rendered)
        if document["kind"] == "Deployment"
    )
    template["metadata"]["name"] = "pod"
    await api.create(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", template)


@pytest.mark.usefixtures("deployed")
async def test_the_base_works_with_the_rights_that_it_gives(
    control_plane: ControlPlane, api: Api, namespace: str, tmp_path: Path
) -> None:
    kubectl(control_plane, "rollout", "status", "-n=kube-system", f"deployment/{ACCOUNT}")
    token = kubectl(control_plane, "create", "token", ACCOUNT, "-n=kube-system").strip()
    victim = on_first(await two_pods(api, namespace))
    policy = DEPLOY / "base" / "policy.yaml"
    async with running(control_plane, token, policy=policy, directory=tmp_path) as program:
        await program.becomes_ready()
        await api.taint(HOMES[0], TAINT)
        await gone(api, namespace, victim)

        async def told() -> bool:
            reasons = await events_about(api, namespace, victim)
            return "RemovePodsViolatingNodeTaints" in reasons

        await eventually(told, what="an Event about the evicted Pod", within=10)
        assert await program.descheduler.stop() == 0
        assert "forbidden" not in (await program.descheduler.output()).lower()


async def test_the_overlay_for_dry_runs_works_without_the_right_to_evict(
    control_plane: ControlPlane, api: Api, namespace: str, tmp_path: Path
) -> None:
    before = await two_pods(api, namespace)
    wanted = on_first(before)
    overlay = str(DEPLOY / "overlays" / "dry-run")
    await asyncio.to_thread(kubectl, control_plane, "apply", "-k", overlay)
    try:
        assert await asyncio.to_thread(may_evict, control_plane) == "no"
        token = kubectl(control_plane, "create", "token", ACCOUNT, "-n=kube-system").strip()
        policy = DEPLOY / "base" / "policy.yaml"
        await api.taint(HOMES[0], TAINT)
        async with running(
            control_plane, token, "--dry-run", policy=policy, directory=tmp_path
        ) as program:
            await program.says(f"pod={namespace}/{wanted.metadata.name}")
            assert (await program.ready())[0] == 200
            assert uids(await api.pods(namespace, "web")) == uids(before)
            assert await program.descheduler.stop() == 0
            assert "forbidden" not in (await program.descheduler.output()).lower()
        await asyncio.to_thread(kubectl, control_plane, "apply", "-k", str(DEPLOY / "base"))
        assert await asyncio.to_thread(may_evict, control_plane) == "yes"
    finally:
        await asyncio.to_thread(kubectl, control_plane, "delete", "-k", overlay)


def may_evict(plane: ControlPlane) -> str:
    account = f"--as=system:serviceaccount:kube-system:{ACCOUNT}"
    return may(plane, account, "create", "pods", "--subresource=eviction")


@pytest.mark.usefixtures("deployed")
def test_the_account_may_do_nothing_else(control_plane: ControlPlane) -> None:
    """Asked of the API server itself: deleting a Pod outright, reading secrets, changing nodes."""
    account = f"--as=system:serviceaccount:kube-system:{ACCOUNT}"
    for question, answer in {
        ("create", "pods", "--subresource=eviction"): "yes",
        ("delete", "pods"): "no",
        ("update", "pods"): "no",
        ("get", "secrets"): "no",
        ("patch", "nodes"): "no",
        ("create", "events"): "no",  # those of the core group
    }.items():
        assert may(control_plane, account, *question) == answer, question


def may(plane: ControlPlane, *arguments: str) -> str:
    try:
        return kubectl(plane, "auth", "can-i", "-A", *arguments).strip()
    except subprocess.CalledProcessError as refused:  # exit code 1 is a no
        return str(refused.stdout).strip()


# Without one right at a time, for a policy that needs every one there is

NEEDY_POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
evictionFailureEventNotification: true
profiles:
- name: needy
  pluginConfig:
  - name: DefaultEvictor
    args:
      priorityThreshold: {name: system-cluster-critical}
      podProtections:
        extraEnabled: [PodsWithPVC]
        config:
          PodsWithPVC:
            protectedStorageClasses: [{name: local}]
  plugins:
    deschedule:
      enabled: [RemovePodsViolatingNodeTaints]
reactive:
  strategies:
    RemovePodsViolatingNodeTaints: {settle: 0s}
"""

BLIND = (
    Right("watch", "nodes"),
    Right("watch", "pods"),
    Right("watch", "namespaces"),
    Right("watch", "poddisruptionbudgets"),
    Right("watch", "persistentvolumeclaims"),
)
"""Without one of these it does not know the cluster."""
EVICT = Right("create", "pods/eviction")
CLASSES = Right("list", "priorityclasses")
TELL = Right("create", "events")
REPEAT = Right("patch", "events")
LISTS = frozenset(Right("list", right.resource) for right in BLIND)
"""For API servers that do not stream their lists as a watch, as this one does."""
LOOK = Right("get", "pods")
"""Asked for only when the answer to an eviction was lost and the watch does not tell either."""


@pytest.fixture
def needy(tmp_path: Path) -> Path:
    path = tmp_path / "needy.yaml"
    path.write_text(NEEDY_POLICY)
    return path


@pytest.fixture
def limited(tmp_path: Path) -> Path:
    """The same, but no eviction is within its limit."""
    path = tmp_path / "limited.yaml"
    path.write_text(f"maxNoOfPodsToEvictTotal: 0\n{NEEDY_POLICY}")
    return path


def needed(policy: Path, namespace: str) -> tuple[dict[str, object], dict[str, object]]:
    """Role and binding as `rbac` prints them, for the account `web` of a namespace."""
    printed = subprocess.run(
        [
            *(sys.executable, "-m", "reactive_descheduler", "rbac", "-f", policy, "-o", "json"),
            *("--namespace", namespace, "--service-account", namespace),
        ],
        capture_output=True,
        check=True,
        timeout=30,
    ).stdout
    role, binding = json.loads(printed)["items"]
    return role, binding


def rights(role: dict[str, object]) -> list[Right]:
    rules = role["rules"]
    assert isinstance(rules, list)
    return [
        Right(verb, resource)
        for rule in rules
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


def without(role: dict[str, object], missing: frozenset[Right]) -> dict[str, object]:
    rules = role["rules"]
    assert isinstance(rules, list)
    kept = []
    for rule in rules:
        (resource,) = rule["resources"]
        verbs = [verb for verb in rule["verbs"] if Right(verb, resource) not in missing]
        if verbs:
            kept.append(rule | {"verbs": verbs})
    return role | {"rules": kept}


@asynccontextmanager
async def account_lacking(
    plane: ControlPlane, api: Api, namespace: str, policy: Path, *missing: Right
) -> AsyncIterator[str]:
    """A token of an account that has what the policy needs but for some rights."""
    role, binding = await asyncio.to_thread(needed, policy, namespace)
    assert set(missing) <= set(rights(role))
    role = without(role, frozenset(missing))
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    roles = "/apis/rbac.authorization.k8s.io/v1"
    await api.create(path, {"metadata": {"name": namespace}})
    await api.create(f"{roles}/clusterroles", role)
    await api.create(f"{roles}/clusterrolebindings", binding)
    try:
        any_right = rights(role)[0]
        question = (any_right.verb, *any_right.resource.split("/")[:1])
        account = f"--as=system:serviceaccount:{namespace}:{namespace}"
        if "/" in any_right.resource:
            question = (*question, f"--subresource={any_right.resource.split('/')[1]}")

        async def granted() -> bool:
            return await asyncio.to_thread(may, plane, account, *question) == "yes"

        await eventually(granted, what="the role in force", within=20)
        answer = await api.request(
            "POST",
            f"{path}/{namespace}/token",
            body={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
        )
        yield json.loads(answer)["status"]["token"]
    finally:
        await api.delete(f"{roles}/clusterrolebindings/{namespace}")
        await api.delete(f"{roles}/clusterroles/{namespace}")


def test_the_cases_are_all_rights_there_are(needy: Path) -> None:
    role, _ = needed(needy, "any")
    tested = {*BLIND, EVICT, CLASSES, TELL, REPEAT, *LISTS}
    assert set(rights(role)) == tested | {LOOK}


@pytest.mark.parametrize("missing", [*BLIND, EVICT], ids=" ".join)
async def test_without_a_right_it_names_it_is_not_ready_and_evicts_nothing(
    control_plane: ControlPlane,
    api: Api,
    namespace: str,
    needy: Path,
    tmp_path: Path,
    missing: Right,
) -> None:
    before = await two_pods(api, namespace)
    await api.taint(HOMES[0], TAINT)
    async with (
        account_lacking(control_plane, api, namespace, needy, missing) as token,
        running(control_plane, token, policy=needy, directory=tmp_path) as program,
    ):
        await program.says(missing.denial)
        await asyncio.sleep(QUIET)
        status, text = await program.ready()
        assert status == 503
        assert missing.denial in text
        assert uids(await api.pods(namespace, "web")) == uids(before)
        assert await program.descheduler.stop() == 0
        assert "Traceback" not in await program.descheduler.output()


async def test_without_the_priority_classes_it_ends_and_says_why(
    control_plane: ControlPlane, api: Api, namespace: str, needy: Path, tmp_path: Path
) -> None:
    before = await two_pods(api, namespace)
    await api.taint(HOMES[0], TAINT)
    async with (
        account_lacking(control_plane, api, namespace, needy, CLASSES) as token,
        running(control_plane, token, policy=needy, directory=tmp_path) as program,
    ):
        assert await program.descheduler.wait(within=30) == 3
        assert CLASSES.denial in await program.descheduler.output()
    assert uids(await api.pods(namespace, "web")) == uids(before)


async def test_without_events_it_evicts_all_the_same_and_says_what_it_could_not_tell(
    control_plane: ControlPlane, api: Api, namespace: str, needy: Path, tmp_path: Path
) -> None:
    victim = on_first(await two_pods(api, namespace))
    await api.taint(HOMES[0], TAINT)
    async with (
        account_lacking(control_plane, api, namespace, needy, TELL) as token,
        running(control_plane, token, policy=needy, directory=tmp_path) as program,
    ):
        await gone(api, namespace, victim)
        await program.says(TELL.denial)
        assert (await program.ready())[0] == 200
        assert await program.descheduler.stop() == 0


async def test_without_the_patch_an_event_stands_alone_and_it_says_so(
    control_plane: ControlPlane, api: Api, namespace: str, limited: Path, tmp_path: Path
) -> None:
    """A limit refuses the same Pod twice: the second time is a series, told at the end."""
    kept = on_first(await two_pods(api, namespace))

    async def told() -> bool:
        return await events_about(api, namespace, kept) == ["EvictionFailed"]

    async with (
        account_lacking(control_plane, api, namespace, limited, REPEAT) as token,
        running(control_plane, token, policy=limited, directory=tmp_path) as program,
    ):
        await program.becomes_ready()
        await api.taint(HOMES[0], TAINT)
        await eventually(told, what="the first Event", within=20)
        await api.taint(HOMES[0])
        await asyncio.sleep(1)
        await api.taint(HOMES[0], TAINT)
        await asyncio.sleep(1)
        assert await program.descheduler.stop() == 0
        assert REPEAT.denial in await program.descheduler.output()


async def test_where_lists_are_streamed_it_works_without_the_right_to_list(
    control_plane: ControlPlane, api: Api, namespace: str, needy: Path, tmp_path: Path
) -> None:
    victim = on_first(await two_pods(api, namespace))
    await api.taint(HOMES[0], TAINT)
    async with (
        account_lacking(control_plane, api, namespace, needy, *LISTS) as token,
        running(control_plane, token, policy=needy, directory=tmp_path) as program,
    ):
        await gone(api, namespace, victim)
        assert await program.descheduler.stop() == 0
        assert "forbidden" not in (await program.descheduler.output()).lower()
