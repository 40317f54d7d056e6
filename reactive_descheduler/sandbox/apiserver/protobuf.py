"""Reads Kubernetes objects in protobuf, in which Go clients send the built-in types.

Only what clients send is read; answers are always JSON, which those clients take as well. The
bytes are an envelope that names the type (`runtime.Unknown`) around the object itself. Values that
Go would leave out of JSON are left out here too: zeros of fields that are no pointers.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias, cast

from reactive_descheduler.sandbox.apiserver.kinds import TYPES, Field, Type, type_of
from reactive_descheduler.sandbox.apiserver.status import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reactive_descheduler.sandbox.documents import JsonObject

    Value: TypeAlias = int | bytes

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\0"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def decode_protobuf(body: bytes) -> JsonObject:
    """The object as JSON has it.

    Raises ApiError 400 for broken bytes, 415 for types and fields that the sandbox does not know.
    """
    if not body.startswith(_MAGIC):
        raise ApiError(400, "the body of the request is no protobuf of Kubernetes")
    try:
        return _object(body[len(_MAGIC) :])
    except (IndexError, ValueError, TypeError, AttributeError) as error:
        raise ApiError(400, f"the protobuf cannot be read: {error}") from error


def _object(envelope: bytes) -> JsonObject:
    parts = dict(_values(envelope))
    meta = {number: _text(value) for number, value in _values(_bytes(parts[1]))}
    api_version, kind = meta.get(1, ""), meta.get(2, "")
    described = type_of(api_version, kind)
    if described is None:
        message = f"the sandbox reads no protobuf of {api_version} {kind}; send JSON"
        raise ApiError(415, message)
    content = _message(described, _bytes(parts.get(2, b"")))
    return {"kind": kind, "apiVersion": api_version, **content}


def _message(described: Type, data: bytes) -> JsonObject:
    fields = {field.number: field for field in described.fields}
    document: JsonObject = {}
    for number, value in _values(data):
        field = fields.get(number)
        if field is None and not value:
            continue  # Go sends zeros of all fields that are no pointers.
        if field is None:
            message = f"the sandbox does not know field {number} of {described.name} in protobuf"
            raise ApiError(415, f"{message}; send JSON")
        _put(document, field, value)
    return document


def _put(document: JsonObject, field: Field, value: Value) -> None:
    if field.is_inline:
        document.update(_message(TYPES[field.type], _bytes(value)))
    elif field.shape == "list":
        members = cast("list[object]", document.setdefault(field.name, []))
        members.append(_one(field.type, value))
    elif field.shape == "map":
        entry = dict(_values(_bytes(value)))
        entries = cast("JsonObject", document.setdefault(field.name, {}))
        default: Value = b""
        entries[_text(entry.get(1, b""))] = _one(field.type, entry.get(2, default))
    else:
        decoded = _one(field.type, value)
        if decoded is not None and (decoded or isinstance(decoded, dict) or field.is_pointer):
            document[field.name] = decoded


def _one(kind: str, value: Value) -> object:
    match kind:
        case "int":
            return _signed(value)
        case "bool":
            return bool(value)
        case "str":
            return _text(value)
        case "bytes":
            return base64.b64encode(_bytes(value)).decode()
        case "Time" | "MicroTime":
            return _time(kind, _bytes(value))
        case "Quantity":
            return _text(dict(_values(_bytes(value))).get(1, b""))
        case "IntOrString":
            parts = dict(_values(_bytes(value)))
            return _text(parts.get(3, b"")) if parts.get(1) else _signed(parts.get(2, 0))
    return _message(TYPES[kind], _bytes(value))


def _time(kind: str, data: bytes) -> str | None:
    """An empty one stands for no time."""
    parts = dict(_values(data))
    if not parts.get(1):
        return None
    moment = datetime.fromtimestamp(_signed(parts[1]), UTC)
    if kind == "Time":
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    micros = _signed(parts.get(2, 0)) // 1_000
    return moment.strftime(f"%Y-%m-%dT%H:%M:%S.{micros:06d}Z")


def _values(data: bytes) -> Iterator[tuple[int, Value]]:
    """The fields of a message: number and value, in the order sent."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == _VARINT:
            value, place = _varint(data, place)
            yield number, value
            continue
        if wire_type == _BYTES:
            length, place = _varint(data, place)
        elif wire_type in (_FIXED64, _FIXED32):
            length = 8 if wire_type == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {wire_type}")
        if place + length > len(data):
            raise ValueError("it ends too early")
        yield number, data[place : place + length]
        place += length


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7


def _signed(value: Value) -> int:
    if isinstance(value, bytes):
        raise TypeError("a number was expected")
    return value - (1 << 64) if value >= 1 << 63 else value


def _bytes(value: Value) -> bytes:
    if isinstance(value, int):
        raise TypeError("bytes were expected")
    return value


def _text(value: Value) -> str:
    return _bytes(value).decode()
