"""A misbehaving server for each test; no task may be left when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from tests.wire.server import ApiServer, serving


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    before = asyncio.all_tasks()
    async with serving() as running:
        yield running
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    assert not left


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[EventDict]]:
    with capture_logs() as entries:
        yield entries
