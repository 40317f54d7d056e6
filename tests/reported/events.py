"""The events of a case."""

from __future__ import annotations

from typing import TypeAlias, cast

from reactive_descheduler.sandbox.documents import JsonObject

Event: TypeAlias = JsonObject


def number(event: Event, name: str, default: float) -> float:
    """Return a number of an event; the default where it is left out or null."""
    found = event.get(name)
    return default if found is None else cast(float, found)
