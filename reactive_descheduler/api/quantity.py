"""Quantities of resources, exact: whole numbers of billionths ("nanos") of the base unit.

Kubernetes keeps no finer steps either, and sums of whole numbers do not drift, so that a request
counted a thousand times up and down ends where it began.
"""

from __future__ import annotations

import re
from functools import lru_cache

NANOS = 10**9
LARGEST = (2**63 - 1) * NANOS
"""What a larger quantity becomes, as in the API (apimachinery's `resource.Quantity`)."""

_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_FORM = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]{1,9}))?"
)
_WIDEST = 64
"""Powers of ten past this only lead to LARGEST or to one nano; they need not be computed."""


def parse_quantity(text: str | float) -> int:
    """Return a quantity in nanos, as `500m`, `1.5Gi`, `1e3` or a bare JSON number.

    What is finer than a nano is rounded away from zero, as in the API. Raises ValueError.
    """
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise ValueError(f"{text!r} is not a quantity")  # noqa: TRY004 - one error for the caller
    return _parse(text if isinstance(text, str) else repr(text))


def milli_value(nanos: int) -> int:
    """Return thousandths of the base unit, rounded away from zero: the scale on which cpu is
    compared."""
    return _divide(nanos, 10**6)


def value(nanos: int) -> int:
    """Return whole base units, rounded away from zero."""
    return _divide(nanos, NANOS)


@lru_cache(maxsize=4096)
def _parse(text: str) -> int:
    match = _FORM.fullmatch(text.strip())
    if match is None or not (match["whole"] or match["fraction"]):
        raise ValueError(f"{text!r} is not a quantity")
    fraction = match["fraction"] or ""
    digits = int((match["whole"] or "") + fraction)
    suffix = match["suffix"] or ""
    if suffix in _BINARY:
        amount = _scaled(digits * _BINARY[suffix], 9 - len(fraction))
    else:
        exponent = int(match["exponent"]) if match["exponent"] else _DECIMAL[suffix]
        amount = _scaled(digits, exponent + 9 - len(fraction))
    amount = min(amount, LARGEST)
    return -amount if match["sign"] == "-" else amount


def _scaled(digits: int, power: int) -> int:
    if power >= 0:
        return digits * int(10 ** min(power, _WIDEST))
    return _divide(digits, int(10 ** min(-power, _WIDEST + len(str(digits)))))


def _divide(amount: int, by: int) -> int:
    return -(-amount // by) if amount >= 0 else amount // by
