"""Where the API server is and who we are: kubeconfig, exec plugin, token file, a Pod's; and TLS."""

from __future__ import annotations

import base64
import ssl
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from reactive_descheduler.api.errors import AmbiguousError, Unreachable
from reactive_descheduler.client.credentials import Credentials, Target
from reactive_descheduler.client.kube import connect
from reactive_descheduler.kit.clock import ManualClock
from tests.builders import make_pod
from tests.wire.server import ApiServer, Drop, serving
from tests.wire.world import connected, following

pytestmark = pytest.mark.real_time

Manifest = dict[str, Any]

_START = datetime(2026, 1, 1, tzinfo=UTC)
_EXEC_API = "client.authentication.k8s.io/v1"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def tls(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Callable[..., str]:
    def write(server: str, user: Manifest, cluster: Manifest | None = None) -> str:
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": server, **(cluster or {})}}],
            "users": [{"name": "u", "user": user}],
        }
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(document))
        return str(path)

    return write


def pem(authority: trustme.CA) -> Manifest:
    data = base64.b64encode(authority.cert_pem.bytes()).decode()
    return {"certificate-authority-data": data}


async def test_kubeconfig_with_a_token_over_tls(
    authority: trustme.CA, tls: ssl.SSLContext, kubeconfig: Callable[..., str]
) -> None:
    async with serving(tls) as server:
        server.put(make_pod("a"))
        path = kubeconfig(server.url, {"token": "first"}, pem(authority))
        async with (
            await connect(path) as connection,
            following(server, connection=connection) as world,
        ):
            await world.until_watching()
            assert world.in_step()


@pytest.mark.parametrize(
    ("cluster", "hint"),
    [
        pytest.param({}, "certificate", id="unknown-authority"),
        pytest.param({"tls-server-name": "elsewhere.example"}, "certificate", id="other-name"),
    ],
)
async def test_certificate_that_does_not_fit_is_named(
    authority: trustme.CA,
    tls: ssl.SSLContext,
    kubeconfig: Callable[..., str],
    cluster: Manifest,
    hint: str,
) -> None:
    known = pem(authority) if cluster else {}
    async with serving(tls) as server:
        path = kubeconfig(server.url, {"token": "first"}, known | cluster)
        async with await connect(path) as connection:
            with pytest.raises(Unreachable) as raised:
                await connection.get("/version")
    assert hint in raised.value.hint


@pytest.mark.parametrize(
    "cluster",
    [{"insecure-skip-tls-verify": True}, {"tls-server-name": "127.0.0.1"}],
    ids=["unverified", "server-name"],
)
async def test_cluster_settings_are_kept(
    authority: trustme.CA,
    tls: ssl.SSLContext,
    kubeconfig: Callable[..., str],
    cluster: Manifest,
) -> None:
    known = {} if "insecure-skip-tls-verify" in cluster else pem(authority)
    async with serving(tls) as server:
        path = kubeconfig(server.url, {"token": "first"}, known | cluster)
        async with await connect(path) as connection:
            assert (await connection.get("/api/v1/pods", {"limit": 5})).ok


async def test_rotated_token_file_is_picked_up_after_a_401(
    server: ApiServer, kubeconfig: Callable[..., str], tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    async with await connect(kubeconfig(server.url, {"tokenFile": str(token)})) as connection:
        assert (await connection.get("/api/v1/pods", {"limit": 5})).ok
        token.write_text("second\n")
        server.token = "second"
        assert (await connection.get("/api/v1/pods", {"limit": 5})).ok
    assert [each.token for each in server.requests] == ["first", "first", "second"]


async def test_rotated_token_file_is_picked_up_within_a_minute(
    server: ApiServer, kubeconfig: Callable[..., str], tmp_path: Path
) -> None:
    token, clock = tmp_path / "token", ManualClock(_START)
    token.write_text("first\n")
    path = kubeconfig(server.url, {"tokenFile": str(token)})
    async with await connect(path, clock=clock) as connection:
        await connection.get("/api/v1/pods", {"limit": 5})
        token.write_text("second\n")
        await connection.get("/api/v1/pods", {"limit": 5})
        clock.advance(60)
        await connection.get("/api/v1/pods", {"limit": 5})
    assert [each.token for each in server.requests] == ["first", "first", "second"]


async def test_exec_plugin_gives_the_token(
    server: ApiServer, kubeconfig: Callable[..., str], tmp_path: Path
) -> None:
    plugin = tmp_path / "plugin.py"
    answer = {"apiVersion": _EXEC_API, "kind": "ExecCredential", "status": {"token": "first"}}
    plugin.write_text(f"import json; print(json.dumps({answer}))")
    user = {"exec": {"apiVersion": _EXEC_API, "command": sys.executable, "args": [str(plugin)]}}
    async with await connect(kubeconfig(server.url, user)) as connection:
        assert (await connection.get("/api/v1/pods", {"limit": 5})).ok


async def test_pod_uses_its_service_account(
    authority: trustme.CA, tls: ssl.SSLContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kubernetes_asyncio.config import incluster_config

    (tmp_path / "token").write_text("first\n")
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    for name, file in (("TOKEN", "token"), ("CERT", "ca.crt")):
        monkeypatch.setattr(incluster_config, f"SERVICE_{name}_FILENAME", str(tmp_path / file))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    async with serving(tls) as server:
        host, port = server.url.removeprefix("https://").split(":")
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
        async with await connect() as connection:
            assert (await connection.get("/api/v1/pods", {"limit": 5})).ok
            (tmp_path / "token").write_text("second\n")
            server.token = "second"
            assert (await connection.get("/api/v1/pods", {"limit": 5})).ok


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, "/config: No such file or directory", id="missing"),
        pytest.param("", "", id="empty"),
        pytest.param("[1, 2]", "no kubeconfig", id="no-mapping"),
        pytest.param("garbage", "no kubeconfig", id="text"),
        pytest.param("a: [", "", id="no-yaml"),
        pytest.param("apiVersion: v1\nkind: Config\n", "current-context", id="no-context"),
    ],
)
async def test_unusable_kubeconfig_is_named(
    tmp_path: Path, content: str | None, message: str
) -> None:
    path = tmp_path / "config"
    if content is not None:
        path.write_text(content)
    with pytest.raises(Unreachable) as raised:
        await connect(str(path))
    assert str(path) in str(raised.value)
    assert message in str(raised.value)
    assert "--kubeconfig" in raised.value.hint


async def test_an_exec_plugin_that_is_missing_is_told_once(
    kubeconfig: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    user = {"exec": {"apiVersion": _EXEC_API, "command": "nowhere/plugin"}}
    with pytest.raises(Unreachable, match="nowhere/plugin: No such file"):
        await connect(kubeconfig("http://127.0.0.1:1", user))
    assert caplog.messages == []


async def test_nowhere_to_connect_to_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(Unreachable, match="no kubeconfig"):
        await connect()


async def test_kubeconfig_variable_that_names_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/a:{tmp_path}/b")
    with pytest.raises(Unreachable, match="KUBECONFIG names no file"):
        await connect()


async def test_kubeconfig_variable_may_name_several_files(
    server: ApiServer,
    kubeconfig: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = kubeconfig(server.url, {"token": "first"})
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/missing:{path}")
    async with await connect() as connection:
        assert (await connection.get("/api/v1/pods", {"limit": 5})).ok


@pytest.mark.parametrize("method", ["POST", "PATCH"])
async def test_lost_answer_to_a_change_is_ambiguous(server: ApiServer, method: str) -> None:
    server.posts.append(Drop())
    async with connected(server) as connection:
        with pytest.raises(AmbiguousError):
            await connection.request(method, "/api/v1/pods", body={})
    assert len(server.requests) == 1


@pytest.mark.parametrize("fault", [Drop(), Drop(after=3600)], ids=["lost", "time-out"])
async def test_lost_answer_to_a_look_is_not(server: ApiServer, fault: Drop) -> None:
    server.gets.extend([fault, fault])
    async with connected(server) as connection:
        with pytest.raises(Unreachable):
            await connection.get("/version", within=0.2)


async def test_changes_are_sent_as_json_in_the_media_type_of_the_method(server: ApiServer) -> None:
    async with connected(server) as connection:
        await connection.post("/a", {"n": 1})
        await connection.put("/a", {"n": 2})
        await connection.patch("/a", {"n": 3})
    assert [(each.method, each.media_type, each.body["n"]) for each in server.requests] == [
        ("POST", "application/json", 1),
        ("PUT", "application/json", 2),
        ("PATCH", "application/merge-patch+json", 3),
    ]


class CountingSource:
    def __init__(self) -> None:
        self.reads = self.loads = 0
        self.token = "a"
        self.broken = False

    async def load(self) -> Target:
        self.loads += 1
        return Target("http://x", None)

    async def authorization(self) -> str | None:
        self.reads += 1
        if self.broken:
            raise Unreachable("the plugin failed")
        return self.token


async def test_many_refused_at_once_read_once() -> None:
    source = CountingSource()
    credentials = Credentials(source, ManualClock(_START))
    assert await credentials.current() == "a"
    source.token = "b"
    assert await credentials.renew("a")
    assert await credentials.renew("a")
    assert (source.loads, source.reads) == (1, 2)
    assert not await credentials.renew("b"), "the same token again is no reason to repeat"


async def test_known_token_is_kept_while_its_source_fails() -> None:
    source, clock = CountingSource(), ManualClock(_START)
    credentials = Credentials(source, clock)
    assert await credentials.current() == "a"
    source.broken = True
    clock.advance(60)
    assert await credentials.current() == "a"
    assert not await credentials.renew("a")
    source.broken, source.token = False, "b"
    clock.advance(60)
    assert await credentials.current() == "b"


async def test_source_that_fails_from_the_start_is_an_error() -> None:
    source = CountingSource()
    source.broken = True
    with pytest.raises(Unreachable, match="plugin"):
        await Credentials(source, ManualClock(_START)).current()
