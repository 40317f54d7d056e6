"""The policies of the end-to-end tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.controlplane.given import OURS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.controlplane.cluster import ControlPlane

AT_ONCE: Mapping[str, object] = {
    "settle": {"default": "0s", "transient": "0s"},
    "rateLimit": {"evictionsPerSecond": 100, "burst": 100},
}
"""No waiting that a test would have to wait for; limits and debounce are the usual ones."""

BALANCE = {
    "HighNodeUtilization",
    "LowNodeUtilization",
    "RemoveDuplicates",
    "RemovePodsViolatingTopologySpreadConstraint",
}
"""The strategies that are enabled under `balance`, not under `deschedule`."""


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
    point = "balance" if strategy in BALANCE else "deschedule"
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
                "plugins": {point: {"enabled": [strategy]}},
            }
        ],
        "reactive": {**AT_ONCE, **(reactive or {})},
    }


def limited(policy: Mapping[str, object], plane: ControlPlane) -> Mapping[str, object]:
    """A policy of `make_policy`; in a given cluster it evicts from the tests' namespaces alone."""
    if plane.is_ours:
        return policy
    match policy:
        case {"profiles": [{"pluginConfig": [{"args": dict(usual), **evictor}, *others], **rest}]}:
            arguments = {**usual, "namespaceLabelSelector": {"matchLabels": OURS}}
            config = [{**evictor, "args": arguments}, *others]
            return {**policy, "profiles": [{**rest, "pluginConfig": config}]}
    raise ValueError("no policy of make_policy")
