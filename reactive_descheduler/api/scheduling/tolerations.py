"""Which taints a Pod tolerates (spec/strategies 2.3). `tolerationSeconds` plays no part."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence

from reactive_descheduler.api.terms import Taint, Toleration

HARD_EFFECTS = frozenset({"NoSchedule", "NoExecute"})
"""The effects that keep a Pod off a node."""

_CANONICAL = re.compile(r"0|-?[1-9][0-9]{0,18}")


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Say whether one toleration covers one taint; an empty key or effect covers any."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator or "Equal":
        case "Equal":
            return (toleration.value or "") == (taint.value or "")
        case "Exists":
            return True
        case "Lt" | "Gt" as operator:
            return _compares(operator, taint.value or "", toleration.value or "")
    return False


def _compares(operator: str, tainted: str, tolerated: str) -> bool:
    left, right = _integer(tainted), _integer(tolerated)
    if left is None or right is None:
        return False
    return left < right if operator == "Lt" else left > right


def _integer(text: str) -> int | None:
    """Read a canonical decimal integer of 64 bits: no plus sign, no leading zeros, no `-0`."""
    if _CANONICAL.fullmatch(text) is None:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def untolerated(
    tolerations: Sequence[Toleration], taints: Iterable[Taint], effects: Container[str]
) -> Taint | None:
    """Return the first taint with one of the effects that no toleration covers."""
    for taint in taints:
        if taint.effect in effects and not any(tolerates(each, taint) for each in tolerations):
            return taint
    return None


def taint_text(taint: Taint) -> str:
    """Write a taint as kubectl does: `key=value:Effect`."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"
