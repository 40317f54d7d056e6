"""Upstream's own programs, which `scripts/control-plane build-peer` builds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.controlplane.cluster import BINARIES

if TYPE_CHECKING:
    from pathlib import Path

DESCHEDULER = BINARIES / "descheduler"
ONE_PASS = BINARIES / "onepass"


def needs(program: Path) -> pytest.MarkDecorator:
    """Return the mark of tests that cannot run without one of these."""
    why = f"{program.name} is not built: ./scripts/control-plane build-peer"
    return pytest.mark.skipif(not program.exists(), reason=why)
