"""Reads the settings of a case into what the product itself is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from reactive_descheduler.config.feature_gates import FeatureGates, parse_feature_gates
from reactive_descheduler.sandbox.documents import JsonObject, mapping

EMPTY_POLICY: JsonObject = {
    "apiVersion": "descheduler/v1alpha2",
    "kind": "DeschedulerPolicy",
    "profiles": [],
}
NOT_BUILT: Mapping[str, str] = {
    "window": "time windows",
    "lease_duration_s": "leader election",
    "lease_renew_s": "leader election",
    "lease_retry_s": "leader election",
}
"""Settings of what the product does not have yet, and what that is."""
NO_BRAKES: JsonObject = {
    "notReadyNodes": "100%",
    "blastRadius": {"nodes": "100%", "pods": "100%"},
    "pendingPods": "100%",
}


class NotPlayedError(Exception):
    """A case cannot be played, and why."""


@dataclass
class Setup:
    """What a case sets."""

    reactive: JsonObject = field(default_factory=dict)
    """The key `reactive:` of its policy file."""
    dry_run: bool = False
    feature_gates: FeatureGates = frozenset()
    bucket_first: float | None = None
    """Seconds on the case's clock before which the global token bucket is empty."""

    def document(self, policy: JsonObject | None) -> JsonObject:
        """Return the policy file; no policy is one without profiles. What it says itself holds."""
        policy = policy or EMPTY_POLICY
        return {**policy, "reactive": {**self.reactive, **mapping(policy, "reactive")}}


def read_settings(settings: JsonObject) -> Setup:
    """Raise NotPlayedError for a setting that is unknown, or of what is not built yet."""
    setup = Setup()
    quiet, longest = _number(settings, "debounce_s", 0), _number(settings, "debounce_max_s", 1)
    _set(setup, ("debounce", "quiet"), _seconds(quiet))
    _set(setup, ("debounce", "maxWait"), _seconds(max(quiet, longest)))
    for name in ("default", "transient"):
        _set(setup, ("settle", name), _seconds(_number(settings, "settle_s", 0)))
    for name, value in settings.items():
        if name in _DONE:
            continue
        if name in NOT_BUILT and value:
            raise NotPlayedError(f"setting {name}: {NOT_BUILT[name]} not built yet")
        if name in _READERS:
            _READERS[name](setup, value)
        elif name not in NOT_BUILT:
            raise NotPlayedError(f"unknown setting {name}")
    return setup


Reader = Callable[[Setup, object], None]

_DONE = ("debounce_s", "debounce_max_s", "settle_s", "policy")


def _set(setup: Setup, path: Sequence[str], value: object) -> None:
    *above, last = path
    document = setup.reactive
    for key in above:
        document = cast(JsonObject, document.setdefault(key, {}))
    document[last] = value


def _as_is(*path: str) -> Reader:
    return lambda setup, value: _set(setup, path, value)


def _as_seconds(*path: str) -> Reader:
    return lambda setup, value: _set(setup, path, _seconds(cast(float, value)))


def _dry_run(setup: Setup, value: object) -> None:
    setup.dry_run = bool(value)


def _feature_gates(setup: Setup, value: object) -> None:
    names = cast(Sequence[str], value)
    try:
        setup.feature_gates = parse_feature_gates(",".join(f"{name}=true" for name in names))
    except ValueError as error:
        raise NotPlayedError(f"setting feature_gates: {error}") from error


def _bucket_first(setup: Setup, value: object) -> None:
    setup.bucket_first = cast(float, value)


def _brakes(setup: Setup, value: object) -> None:
    if value == "off":
        _set(setup, ("brakes",), NO_BRAKES)
    elif value != "on":
        raise NotPlayedError(f"setting brakes: unknown value {value}")


_READERS: Mapping[str, Reader] = {
    "corrections": _as_is("corrections"),
    "dry_run": _dry_run,
    "feature_gates": _feature_gates,
    "bucket_per_s": _as_is("rateLimit", "evictionsPerSecond"),
    "bucket_burst": _as_is("rateLimit", "burst"),
    "bucket_first_s": _bucket_first,
    "limit_window_s": _as_seconds("limits", "window"),
    "workload_limit": _as_is("limits", "perWorkload"),
    "pacing_max_unavailable": _as_is("pacing", "maxUnavailable"),
    "brakes": _brakes,
    "usage_poll_s": _as_seconds("usage", "pollInterval"),
    "usage_samples": _as_is("usage", "samples"),
    "stale_after_s": _as_seconds("staleness", "maxAge"),
}


def _seconds(number: float) -> str:
    return f"{number}s"


def _number(settings: JsonObject, name: str, default: float) -> float:
    return cast(float, mapping(settings).get(name, default))
