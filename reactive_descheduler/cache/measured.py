"""Read what a metrics-server says (`NodeMetrics`, `PodMetrics`) into samples."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Annotated, TypeVar

import msgspec

from reactive_descheduler.api.quantity import NANOS, parse_quantity
from reactive_descheduler.cache.usage import Amounts, PodName, Sample, summed
from reactive_descheduler.config.durations import parse_duration

NODE_METRICS, POD_METRICS = "NodeMetrics", "PodMetrics"

_Quantities = dict[str, str | int | float]
_Aware = Annotated[datetime, msgspec.Meta(tz=True)]
_T = TypeVar("_T")
_KIBI = 1024 * NANOS


class _Metadata(msgspec.Struct):
    name: str
    namespace: str = ""


class _NodeMetrics(msgspec.Struct):
    metadata: _Metadata
    timestamp: _Aware
    usage: _Quantities
    window: str = "0s"


class _Container(msgspec.Struct):
    usage: _Quantities = {}


class _PodMetrics(msgspec.Struct):
    metadata: _Metadata
    timestamp: _Aware
    containers: list[_Container] = []
    window: str = "0s"


Document = bytes | msgspec.Raw | Mapping[str, object]
"""One object as JSON, or parsed already."""


def read_node_metrics(document: Document, received: datetime | None) -> tuple[str, Sample]:
    """Return a node's name and sample; `received` None: when it was taken.

    Raises ValueError if something in it cannot be read.
    """
    found = _read(document, _NodeMetrics)
    window = _window(found.window)
    sample = Sample(_amounts(found.usage), found.timestamp, received or found.timestamp, window)
    return found.metadata.name, sample


def read_pod_metrics(document: Document, received: datetime | None) -> tuple[PodName, Sample]:
    """Return a Pod's name and sample; `received` as above. Raises ValueError likewise."""
    found = _read(document, _PodMetrics)
    usage = summed(_amounts(container.usage) for container in found.containers)
    window = _window(found.window)
    sample = Sample(usage, found.timestamp, received or found.timestamp, window)
    return (found.metadata.namespace, found.metadata.name), sample


def _read(document: Document, form: type[_T]) -> _T:
    # msgspec's own error is a ValueError.
    if isinstance(document, Mapping):
        return msgspec.convert(document, form)
    return msgspec.json.decode(document, type=form)


def _amounts(quantities: _Quantities) -> Amounts:
    return {name: _amount(quantity) for name, quantity in quantities.items()}


def _amount(quantity: str | float) -> int:
    """Parse a quantity; those of a metrics-server in a tenth of the time, since there are hundreds
    of thousands, each another one."""
    if isinstance(quantity, str):
        if quantity[-1:] == "n" and quantity[:-1].isdecimal():
            return int(quantity[:-1])
        if quantity[-2:] == "Ki" and quantity[:-2].isdecimal():
            return int(quantity[:-2]) * _KIBI
    amount = parse_quantity(quantity)
    if amount < 0:
        raise ValueError(f"{quantity} is less than nothing")
    return amount


_window = lru_cache(maxsize=1024)(parse_duration)
"""Many Pods of one answer share theirs."""
