from __future__ import annotations

from datetime import UTC, datetime
from types import MappingProxyType

import orjson
import pytest

from reactive_descheduler.api.changes import Key
from reactive_descheduler.api.eviction import Answer
from reactive_descheduler.server.status import render


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.5, 1.5),
        (
            Key(0, "PodLifeTime", ("u1",)),
            {"profile": 0, "strategy": "PodLifeTime", "unit": ["u1"]},
        ),
        (("a", "b"), ["a", "b"]),
        (frozenset({"b", "a"}), ["a", "b"]),
        (MappingProxyType({1: "x"}), {"1": "x"}),
        (Answer.EVICTED, "evicted"),
        (datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00Z"),
        (ValueError("boom"), "boom"),
    ],
    ids=["number", "named tuple", "tuple", "set", "mapping", "enum", "time", "anything"],
)
def test_what_parts_tell_of_themselves_becomes_json(value: object, shown: object) -> None:
    assert orjson.loads(render({"part": value})) == {"part": shown}
