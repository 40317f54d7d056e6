"""What holds for every test: virtual time unless marked `real_time`, no blocking call in the loop,
and logging as it was before."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Iterator

import pytest
import structlog
from blockbuster import blockbuster_ctx
from hypothesis import HealthCheck, settings

settings.register_profile(
    "usual",
    deadline=None,  # other processes share the machine: wall time says nothing about the code
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("usual")


def pytest_configure() -> None:
    # The virtual-time plugin asks for the current loop around synchronous tests too; Python 3.11
    # would make one for it, which nobody closes, unless it was told that there is none.
    asyncio.set_event_loop(None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        function = getattr(item, "function", None)
        is_async = inspect.iscoroutinefunction(function)
        on_real_time = any(item.iter_markers("real_time")) or any(item.iter_markers("e2e"))
        if is_async and not on_real_time:
            item.add_marker(pytest.mark.looptime)


@pytest.fixture(autouse=True)
def _no_blocking_calls() -> Iterator[None]:
    """A call that blocks the event loop fails, where our own code makes it."""
    with blockbuster_ctx(scanned_modules=["reactive_descheduler"]):
        yield


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    """A command that a test runs in this process sets up logging: the next test must not see it."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)
