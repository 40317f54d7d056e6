from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import anyio.to_thread
import pytest
import trustme
from cryptography import x509

from reactive_descheduler.api.errors import AddressError
from reactive_descheduler.observability.metrics import BuildInfo, Metrics
from reactive_descheduler.server.health import Check, Health
from reactive_descheduler.server.http import Endpoints, serve
from reactive_descheduler.server.tls import FileCertificate, from_files, self_signed

pytestmark = pytest.mark.real_time

NOW = datetime(2026, 1, 1, tzinfo=UTC)
UNCHECKED = ssl.create_default_context()
UNCHECKED.check_hostname = False
UNCHECKED.verify_mode = ssl.CERT_NONE


def listen(
    *,
    health: Health | None = None,
    snapshot: Callable[[], Mapping[str, object]] = dict,
    metrics: Metrics | None = None,
    tls: ssl.SSLContext | None = None,
    port: int = 0,
) -> AbstractAsyncContextManager[str]:
    endpoints = Endpoints(health or Health(), snapshot, metrics)
    return serve(endpoints, host="127.0.0.1", port=port, tls=tls)


async def fetch(
    url: str, *, method: str = "GET", tls: ssl.SSLContext = UNCHECKED
) -> tuple[int, str, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, url, ssl=tls) as response,
    ):
        return response.status, response.headers.get("Content-Type", ""), await response.text()


async def test_metrics_are_served_with_those_of_the_process() -> None:
    metrics = Metrics(BuildInfo("0.1.0"))
    metrics.on_scrape(lambda: metrics.bucket_tokens.set(7))
    async with listen(metrics=metrics) as url:
        status, content_type, text = await fetch(f"{url}/metrics")
    assert (status, content_type) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert "# TYPE descheduler_pods_evicted_total counter" in text
    assert "# TYPE descheduler_pods_evicted counter" in text
    assert "reactive_descheduler_bucket_tokens 7.0" in text
    assert "process_cpu_seconds_total " in text


async def test_readiness_changes_with_its_checks_and_says_why() -> None:
    reasons: list[str | None] = ["waiting for Pod"]
    health = Health(ready=[Check("caches-synced", lambda: reasons[0])])
    async with listen(health=health) as url:
        assert (await fetch(f"{url}/livez"))[::2] == (200, "ok")
        assert (await fetch(f"{url}/healthz"))[::2] == (200, "ok")
        status, _, text = await fetch(f"{url}/readyz")
        assert status == 503
        assert "[-]caches-synced failed: waiting for Pod" in text
        assert (await fetch(f"{url}/readyz?exclude=caches-synced"))[0] == 200
        reasons[0] = None
        assert (await fetch(f"{url}/readyz"))[::2] == (200, "ok")
        assert (await fetch(f"{url}/readyz?verbose"))[::2] == (
            200,
            "[+]ping ok\n[+]caches-synced ok\nreadyz check passed\n",
        )


async def test_status_is_the_snapshot_of_that_moment() -> None:
    parked = 1
    async with listen(snapshot=lambda: {"parked": parked}) as url:
        parked = 2
        status, content_type, text = await fetch(f"{url}/status")
    assert (status, content_type) == (200, "application/json")
    assert text == '{\n  "parked": 2\n}\n'


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/debug", 404),
        ("GET", "/metrics", 404),
        ("POST", "/status", 405),
        ("HEAD", "/livez", 200),
    ],
    ids=["root", "unknown path", "metrics switched off", "an order", "only the head"],
)
async def test_what_else_is_asked(method: str, path: str, status: int) -> None:
    async with listen() as url:
        assert (await fetch(f"{url}{path}", method=method))[0] == status


async def test_a_snapshot_that_fails_leaves_the_rest_alive(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken() -> Mapping[str, object]:
        raise ValueError("boom")

    async with listen(snapshot=broken) as url:
        assert (await fetch(f"{url}/status"))[0] == 500
        assert (await fetch(f"{url}/livez"))[0] == 200
    assert "Error handling request" in caplog.text


async def test_a_port_in_use_is_told_with_the_address() -> None:
    async with listen() as url:
        with pytest.raises(AddressError, match=r"port [0-9]+: Address already in use"):
            async with listen(port=int(url.rpartition(":")[2])):
                pass


async def test_the_certificate_made_at_start_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    monkeypatch.chdir(tmp_path)
    tls = await anyio.to_thread.run_sync(self_signed, "0.0.0.0", NOW)
    async with listen(tls=tls) as url:
        assert url.startswith("https://127.0.0.1:")
        assert (await fetch(f"{url}/livez"))[::2] == (200, "ok")
        certificate = await served_certificate(url)
    assert os.listdir(tmp_path) == []
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == [
        "0.0.0.0",
        "127.0.0.1",
    ]
    assert (certificate.not_valid_after_utc - NOW).days == 3 * 365


async def test_the_operators_certificate_is_used_and_reloaded_when_renewed(
    tmp_path: Path,
) -> None:
    authority = trustme.CA()
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"

    def issue() -> None:
        issued = authority.issue_cert("127.0.0.1")
        certificate.write_bytes(issued.cert_chain_pems[0].bytes())
        key.write_bytes(issued.private_key_pem.bytes())

    issue()
    pair = await anyio.to_thread.run_sync(FileCertificate, str(certificate), str(key))
    async with listen(tls=pair.context) as url:
        assert (await fetch(f"{url}/livez", tls=trusting))[0] == 200
        first = await served_certificate(url)
        assert not await anyio.to_thread.run_sync(pair.refresh)
        await anyio.sleep(0.02)  # the file system's clock ticks
        issue()
        assert await anyio.to_thread.run_sync(pair.refresh)
        assert (await fetch(f"{url}/livez", tls=trusting))[0] == 200
        second = await served_certificate(url)
    assert first.serial_number != second.serial_number


def test_a_renewal_that_is_broken_leaves_the_old_pair_in_use(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    issued = authority.issue_cert("127.0.0.1")
    certificate.write_bytes(issued.cert_chain_pems[0].bytes())
    key.write_bytes(issued.private_key_pem.bytes())
    pair = FileCertificate(str(certificate), str(key))
    key.write_bytes(authority.issue_cert("127.0.0.1").private_key_pem.bytes() + b"\n")
    for _ in range(2):  # tried anew each time
        with pytest.raises(ssl.SSLError):
            pair.refresh()


def test_files_that_are_missing_are_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        from_files(str(tmp_path / "tls.crt"), str(tmp_path / "tls.key"))


async def served_certificate(url: str) -> x509.Certificate:
    host, _, port = url.removeprefix("https://").rpartition(":")
    address = (host, int(port))
    pem = await anyio.to_thread.run_sync(ssl.get_server_certificate, address)
    return x509.load_pem_x509_certificate(pem.encode())
