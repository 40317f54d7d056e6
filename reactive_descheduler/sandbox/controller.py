"""The loop that all of the sandbox's controllers share."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import aiohttp
import anyio

from reactive_descheduler.sandbox.client import ApiClient, ApiRefused

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio.abc import TaskGroup

    from reactive_descheduler.sandbox.documents import JsonObject
    from reactive_descheduler.sandbox.mirror import Mirror, ObjectKey

log = logging.getLogger(__name__)

_RETRY_AFTER = 0.1  # seconds


class Controller:
    """Takes keys of objects one after the other and brings each to where it should be.

    A key that waits is there once, however often it is added; one that fails comes back shortly
    after. Subclasses say what is done in `reconcile`, and add keys from mirrors' listeners.
    """

    def __init__(self, client: ApiClient) -> None:
        self.client = client
        self._waiting: dict[ObjectKey, None] = {}
        self._added = anyio.Event()
        self._tasks: TaskGroup | None = None

    async def reconcile(self, key: ObjectKey) -> None:
        """Do what the object of this key needs now; the object may be gone."""
        raise NotImplementedError

    async def run(self) -> None:
        """Work until cancelled."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            while True:
                key = await self._next()
                try:
                    await self.reconcile(key)
                except (ApiRefused, aiohttp.ClientError, OSError) as error:
                    log.debug("Reconciling %s failed: %s", key, error)
                    self.add_later(key, _RETRY_AFTER)
                except Exception:
                    # An object that makes no sense, of which the server lets pass more than a real
                    # one; it comes back when it changes, and the others go on.
                    log.exception("Reconciling %s failed", key)

    def add(self, key: ObjectKey) -> None:
        """Let this key be worked on."""
        self._waiting[key] = None
        self._added.set()

    def add_later(self, key: ObjectKey, delay: float) -> None:
        """Let this key be worked on after some seconds; only while the controller runs."""
        if self._tasks is not None:
            self._tasks.start_soon(self._sleep_and_add, key, delay)

    def follow(self, mirror: Mirror, keys_of: Callable[[JsonObject], list[ObjectKey]]) -> None:
        """Add the keys that an object names, whenever it changes; from its old and new state."""

        def on_change(old: JsonObject | None, new: JsonObject | None) -> None:
            for document in (old, new):
                if document is not None:
                    for key in keys_of(document):
                        self.add(key)

        mirror.listeners.append(on_change)

    async def _next(self) -> ObjectKey:
        while not self._waiting:
            self._added = anyio.Event()
            await self._added.wait()
        key = next(iter(self._waiting))
        del self._waiting[key]
        return key

    async def _sleep_and_add(self, key: ObjectKey, delay: float) -> None:
        await anyio.sleep(delay)
        self.add(key)
