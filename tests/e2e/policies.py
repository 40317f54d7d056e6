"""The policies of the end-to-end tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

AT_ONCE: Mapping[str, object] = {
    "settle": {"default": "0s", "transient": "0s"},
    "rateLimit": {"evictionsPerSecond": 100, "burst": 100},
}
"""No waiting that a test would have to wait for; limits and debounce are the usual ones."""


def make_policy(
    strategy: str,
    arguments: Mapping[str, object] | None = None,
    *,
    evictor: Mapping[str, object] | None = None,
    reactive: Mapping[str, object] | None = None,
    **top: object,
) -> dict[str, object]:
    """A policy of one profile with one strategy.

    `reactive` is added to AT_ONCE; `top` are keys of the document itself.
    """
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        **top,
        "profiles": [
            {
                "name": "e2e",
                "pluginConfig": [
                    {"name": "DefaultEvictor", "args": dict(evictor or {})},
                    {"name": strategy, "args": dict(arguments or {})},
                ],
                "plugins": {"deschedule": {"enabled": [strategy]}},
            }
        ],
        "reactive": {**AT_ONCE, **(reactive or {})},
    }
