"""Watches the policy file and reloads it; a broken file never replaces a good one.

A ConfigMap is changed under a mount by swapping a symlink, so the content is compared, not a time
stamp; and it is read every few seconds, which costs nothing beside the minute that the kubelet
takes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import NamedTuple

import anyio

from reactive_descheduler.api.errors import PolicyError
from reactive_descheduler.config.corrections import Corrections
from reactive_descheduler.config.load import load_policy
from reactive_descheduler.config.loaded import LoadedPolicy
from reactive_descheduler.kit.clock import Clock
from reactive_descheduler.strategies import PLUGINS

LOOK_EVERY = 2.0
"""Seconds between two looks at the file."""
TRY_AGAIN = 300.0
"""Seconds after which a file that was refused is tried again although it is the same: what it
needs of the cluster may be there by now."""

ReadBytes = Callable[[], Awaitable[bytes]]
"""Reads the file; raises OSError if it cannot."""


class Reloads(NamedTuple):
    """What became of the file since the start."""

    loaded_at: datetime
    """When the policy in force was read."""
    reloads: int
    refused: int
    error: str
    """Why the file as it is now is not in force; empty when it is."""


class PolicyFile:
    def __init__(
        self, read: ReadBytes, *, source: str, corrections: Corrections | None, clock: Clock
    ) -> None:
        """`source`: how messages name the file. `corrections`: from the flag, None without one."""
        self._read = read
        self._source = source
        self._corrections = corrections
        self._clock = clock
        self._seen: bytes | None = None
        self._loaded_at = clock.now()
        self._reloads = 0
        self._refused = 0
        self._error = ""
        self._refused_content: bytes | None = None
        self._try_again_at = 0.0

    async def load(self) -> LoadedPolicy:
        """Read and check the file.

        Raises:
            OSError: it cannot be read.
            PolicyError: it is refused.
        """
        content = await self._read()
        policy = self._parse(content)
        self._seen = content
        return policy

    async def watch(
        self,
        apply: Callable[[LoadedPolicy], Awaitable[None]],
        refused: Callable[[OSError | PolicyError], None],
    ) -> None:
        """Apply each new content that is good, and tell of each that is not, once. Never returns.

        `apply` may raise PolicyError as well, for what only the cluster can tell.
        """
        while True:
            await anyio.sleep(LOOK_EVERY)
            try:
                await self._look(apply)
            except (OSError, PolicyError) as error:
                self._try_again_at = self._clock.monotonic() + TRY_AGAIN
                if str(error) != self._error:
                    self._refused += 1
                    self._error = str(error)
                    refused(error)

    def statistics(self) -> Reloads:
        return Reloads(self._loaded_at, self._reloads, self._refused, self._error)

    async def _look(self, apply: Callable[[LoadedPolicy], Awaitable[None]]) -> None:
        content = await self._read()
        if content == self._seen:
            self._error = ""  # back to what is in force
            self._refused_content = None
            return
        if content == self._refused_content and self._clock.monotonic() < self._try_again_at:
            return
        self._refused_content = content
        policy = self._parse(content)
        await apply(policy)
        self._seen = content
        self._loaded_at = self._clock.now()
        self._reloads += 1
        self._error = ""

    def _parse(self, content: bytes) -> LoadedPolicy:
        return load_policy(
            content, source=self._source, plugins=PLUGINS, corrections=self._corrections
        )
