"""Synced: nothing goes before every cache that is needed has its first list."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import ClassVar

from reactive_descheduler.api.changes import Action, On
from reactive_descheduler.api.eviction import Held
from reactive_descheduler.framework.gate import OpenGate


class SyncedGate(OpenGate):
    """`missing`: the kinds that are not synced yet."""

    NAME: ClassVar[str] = "synced"

    def __init__(self, missing: Callable[[], list[str]]) -> None:
        self._missing = missing

    def closed(self, now: datetime, /) -> Held | None:
        missing = self._missing()
        if not missing:
            return None
        reason = f"not synced yet: {', '.join(missing)}"
        return Held(self.NAME, reason, (On(Action.STREAM_FRESH, None),))
