"""The status page as data: whatever the parts tell of themselves, as one JSON document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set

import orjson

Snapshot = Callable[[], Mapping[str, object]]
"""What the process knows of itself now. Called in the event loop for each request; synchronous, so
that all parts speak of the same moment."""


def render(snapshot: Mapping[str, object]) -> bytes:
    """Return the snapshot as JSON: named tuples as objects, sets in order, the rest as text."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS
    return orjson.dumps(snapshot, default=_plain, option=options | orjson.OPT_APPEND_NEWLINE)


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None)
        return list(value) if names is None else dict(zip(names, value, strict=True))
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Set):
        return sorted(value, key=str)
    return str(value)
