"""Durations as Go writes them, since that is what a policy holds: `1h30m`, `100ms`, `1.5h`."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction

_NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60 * 1_000_000_000,
    "h": 3600 * 1_000_000_000,
}
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_LONGEST = 2**63 - 1
"""Go counts nanoseconds in 64 bits: about 292 years."""


def parse_duration(text: str) -> timedelta:
    """Read a Go duration; what is finer than a microsecond is rounded.

    Days and weeks are no units, and a number needs a unit unless it is 0.

    Raises:
        ValueError: the text is no duration, or is longer than 292 years.
    """
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    if unsigned == "0":
        return timedelta()
    parts = list(_PART.finditer(unsigned))
    if not parts or "".join(part.group() for part in parts) != unsigned:
        raise ValueError(f"{text!r} is no duration")
    total = sum(Fraction(number.group(1)) * _NANOSECONDS[number.group(2)] for number in parts)
    if total > _LONGEST:
        raise ValueError(f"{text!r} is longer than 292 years")
    microseconds = round(total / 1000)
    return timedelta(microseconds=-microseconds if text[0] == "-" else microseconds)


def format_duration(duration: timedelta) -> str:
    """Write a duration so that `parse_duration` reads it back: `1h30m`, `1.5s`, `100ms`, `0s`."""
    microseconds = duration // timedelta(microseconds=1)
    sign, microseconds = ("-", -microseconds) if microseconds < 0 else ("", microseconds)
    if 0 < microseconds < 1_000:
        return f"{sign}{microseconds}us"
    if 0 < microseconds < 1_000_000:
        return f"{sign}{_decimal(microseconds, 1_000)}ms"
    minutes, rest = divmod(microseconds, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{hours}h" if hours else "", f"{minutes}m" if minutes else ""]
    if rest or not (hours or minutes):
        parts.append(f"{_decimal(rest, 1_000_000)}s")
    return sign + "".join(parts)


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    digits = str(rest).zfill(len(str(unit)) - 1).rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
