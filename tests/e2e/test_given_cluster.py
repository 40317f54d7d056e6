"""What makes the tests fit for somebody's cluster: they can log in there, and keep to their own."""

from __future__ import annotations

import base64
import json
import os
import ssl
from typing import TYPE_CHECKING

import pytest
import trustme

from tests.controlplane.cluster import Component, ControlPlane
from tests.controlplane.given import OURS, VARIABLE
from tests.e2e.api import read_kubeconfig
from tests.e2e.descheduler import running_descheduler
from tests.e2e.objects import make_budget, make_daemon_set, make_job, on_our_nodes
from tests.e2e.policies import limited, make_policy

if TYPE_CHECKING:
    from pathlib import Path


def write_credentials(directory: Path, authority: trustme.CA, *, embedded: bool) -> Path:
    """A kubeconfig with the authority and a client certificate, in it or in files beside it."""
    client = authority.issue_cert("admin@example.test")
    pems = {
        "certificate-authority": authority.cert_pem.bytes(),
        "client-certificate": client.cert_chain_pems[0].bytes(),
        "client-key": client.private_key_pem.bytes(),
    }
    for name, pem in pems.items():
        (directory / name).write_bytes(pem)
    fields = (
        {f"{name}-data": base64.b64encode(pem).decode() for name, pem in pems.items()}
        if embedded
        else {name: name for name in pems}
    )
    cluster = {name: fields[name] for name in fields if name.startswith("certificate-authority")}
    user = {name: fields[name] for name in fields if name.startswith("client")}
    path = directory / "kubeconfig"
    path.write_text(
        json.dumps(
            {
                "clusters": [{"cluster": {"server": "https://localhost", **cluster}}],
                "users": [{"user": user}],
            }
        )
    )
    return path


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext) -> str:
    """The common part of a TLS handshake in memory: whom the server takes the client for."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    here = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    there = server.wrap_bio(to_server, to_client, server_side=True)
    open_ends = [here, there]
    while open_ends:
        for end in list(open_ends):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            open_ends.remove(end)
    certificate = there.getpeercert()
    assert certificate is not None
    return str(certificate["subjectAltName"])


@pytest.mark.parametrize("embedded", [True, False], ids=["embedded", "in files"])
def test_a_client_certificate_says_who_it_is(tmp_path: Path, embedded: bool) -> None:
    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(server)
    authority.issue_cert("localhost").configure_cert(server)

    access = read_kubeconfig(write_credentials(tmp_path, authority, embedded=embedded))

    assert access.token == ""
    assert "admin@example.test" in shake_hands(access.trust, server)


def test_a_kubeconfig_with_neither_token_nor_certificate_is_refused(tmp_path: Path) -> None:
    path = write_credentials(tmp_path, trustme.CA(), embedded=False)
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "users": [{"user": {"exec": {"command": "login"}}}]}))

    with pytest.raises(ValueError, match="neither a token nor a client certificate"):
        read_kubeconfig(path)


@pytest.fixture
def somebodys(tmp_path: Path) -> ControlPlane:
    """A cluster in which only kwok is ours."""
    return ControlPlane(
        tmp_path, "https://localhost", tokens={}, components=[Component("kwok", [])], processes=[]
    )


def test_a_limited_policy_keeps_its_settings_and_evicts_from_our_namespaces(
    somebodys: ControlPlane,
) -> None:
    policy = make_policy("PodLifeTime", {"maxPodLifeTimeSeconds": 4}, evictor={"nodeFit": True})

    expected = make_policy(
        "PodLifeTime",
        {"maxPodLifeTimeSeconds": 4},
        evictor={"nodeFit": True, "namespaceLabelSelector": {"matchLabels": OURS}},
    )
    assert limited(policy, somebodys) == expected


@pytest.mark.real_time
async def test_a_policy_without_limits_is_not_run_in_somebodys_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, os.devnull)
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(make_policy("PodLifeTime")))
    log = tmp_path / "run.log"

    with pytest.raises(ValueError, match="limited"):
        async with running_descheduler(policy=policy, kubeconfig=tmp_path / "none", log=log):
            pass
    assert not log.exists()


@pytest.mark.parametrize(
    "workload", [make_daemon_set("agent"), make_job("work", ends="Failed")], ids=["set", "job"]
)
def test_workloads_are_bound_to_our_nodes_and_stay_the_same_otherwise(
    workload: dict[str, dict[str, dict[str, dict[str, object]]]],
) -> None:
    placed = on_our_nodes(workload)

    workload["spec"]["template"]["spec"]["nodeSelector"] = OURS
    assert placed == workload


def test_what_has_no_pods_is_made_as_it_is() -> None:
    budget = make_budget("db", min_available=1)

    assert on_our_nodes(budget) == budget
