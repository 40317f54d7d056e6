"""Objects in protobuf become the JSON that Go would have written."""

from __future__ import annotations

import pytest

from reactive_descheduler.sandbox.apiserver.kinds import TYPES
from reactive_descheduler.sandbox.apiserver.protobuf import decode_protobuf
from reactive_descheduler.sandbox.apiserver.status import ApiError

_PRIMITIVES = {"str", "int", "bool", "bytes", "Time", "MicroTime", "Quantity", "IntOrString"}


def _block(number: int, content: bytes | str) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


def _number(number: int, value: int) -> bytes:
    return bytes([number << 3]) + _varint(value % (1 << 64))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _envelope(api_version: str, kind: str, content: bytes) -> bytes:
    meta = _block(1, api_version) + _block(2, kind)
    return b"k8s\0" + _block(1, meta) + _block(2, content) + _block(3, "") + _block(4, "")


_NAMED = _block(1, _block(1, "a") + _block(2, "") + _block(8, b""))


@pytest.mark.parametrize(
    ("kind", "content", "wanted"),
    [
        pytest.param("Namespace", b"", {}, id="empty-strings-and-times-are-left-out"),
        pytest.param(
            "Deployment",
            _block(2, _number(1, 0) + _number(5, 0)),
            {"spec": {"replicas": 0}},
            id="zeros-stay-of-pointers-alone",
        ),
        pytest.param(
            "Deployment",
            _block(2, _block(4, _block(2, _block(1, _number(1, 0) + _number(2, 3))))),
            {"spec": {"strategy": {"rollingUpdate": {"maxUnavailable": 3}}}},
            id="a-number-or-a-string-that-is-a-number",
        ),
        pytest.param(
            "PodDisruptionBudget",
            _block(2, _block(1, _number(1, 1) + _number(2, 0) + _block(3, "50%"))),
            {"spec": {"minAvailable": "50%"}},
            id="a-number-or-a-string-that-is-a-string",
        ),
        pytest.param(
            "PriorityClass", _number(2, -5), {"value": -5}, id="negative-numbers"
        ),
        pytest.param(
            "Secret",
            _block(2, _block(1, "k") + _block(2, b"\xff")),
            {"data": {"k": "/w=="}},
            id="bytes-become-base64",
        ),
        pytest.param(
            "Lease",
            _block(2, _block(4, _number(1, 1_800_000_000) + _number(2, 5_000))),
            {"spec": {"renewTime": "2027-01-15T08:00:00.000005Z"}},
            id="times-with-microseconds",
        ),
        pytest.param(
            "Pod",
            _block(2, _block(1, _block(1, "v") + _block(2, _block(2, _block(1, ""))))),
            {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
            id="fields-without-a-name-of-their-own",
        ),
        pytest.param("Namespace", _block(15, b""), {}, id="unknown-fields-that-are-empty"),
    ],
)  # fmt: skip
def test_an_object_is_read_as_json_has_it(
    kind: str, content: bytes, wanted: dict[str, object]
) -> None:
    read = decode_protobuf(_envelope("v1", kind, _NAMED + content))

    assert read == {"kind": kind, "apiVersion": "v1", "metadata": {"name": "a"}, **wanted}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param(b"{}", 400, id="no-envelope"),
        pytest.param(b"k8s\0" + b"\x0a\xff", 400, id="ends-too-early"),
        pytest.param(_envelope("v1", "Secret", _number(1, 1)), 400, id="another-wire-type"),
        pytest.param(_envelope("v1", "Nothing", b""), 415, id="unknown-kind"),
        pytest.param(_envelope("v1", "Namespace", _number(15, 1)), 415, id="unknown-field"),
    ],
)
def test_what_cannot_be_read_is_refused(body: bytes, code: int) -> None:
    with pytest.raises(ApiError) as refused:
        decode_protobuf(body)

    assert refused.value.code == code


@pytest.mark.parametrize("name", list(TYPES))
def test_a_types_fields_are_known_and_numbered_once(name: str) -> None:
    fields = TYPES[name].fields

    assert {field.type for field in fields} <= _PRIMITIVES | set(TYPES)
    assert len({field.number for field in fields}) == len(fields)
    assert len({f.name for f in fields if not f.is_inline}) == sum(not f.is_inline for f in fields)
