from __future__ import annotations

import pytest

from reactive_descheduler.server.health import Check, Health

LOOP = Check("loop", lambda: None)
CACHES = Check("caches-synced", lambda: "waiting for Pod")


def broken() -> str | None:
    raise KeyError("Pod")


@pytest.mark.parametrize(
    ("probe", "well", "text"),
    [
        ("livez", True, "[+]ping ok\n[+]loop ok\nlivez check passed\n"),
        ("healthz", True, "[+]ping ok\n[+]loop ok\nhealthz check passed\n"),
        (
            "readyz",
            False,
            "[+]ping ok\n[+]loop ok\n[-]caches-synced failed: waiting for Pod\n"
            "readyz check failed\n",
        ),
    ],
)
def test_live_needs_less_than_ready(probe: str, well: bool, text: str) -> None:
    report = Health(live=[LOOP], ready=[CACHES]).ask(probe)
    assert (report.well, report.text()) == (well, text)


def test_a_check_can_be_left_out() -> None:
    report = Health(ready=[CACHES]).ask("readyz", exclude=["caches-synced"])
    assert report.well


def test_a_check_that_raises_has_failed() -> None:
    report = Health(live=[Check("odd", broken)]).ask("livez")
    assert not report.well
    assert "[-]odd failed: KeyError: 'Pod'" in report.text()


def test_without_checks_it_is_well_if_it_can_be_asked() -> None:
    assert Health().ask("readyz").well
