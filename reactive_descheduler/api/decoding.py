"""Decodes what the API server sends into read views.

One object that cannot be read becomes an opaque view and never hurts the list or stream it came in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Generic, NamedTuple, NoReturn, Protocol, TypeVar

import msgspec
import orjson

from reactive_descheduler.api import projection, wire
from reactive_descheduler.api.changes import WatchEvent, WatchEventType
from reactive_descheduler.api.errors import ApiStatusError, ExpiredError
from reactive_descheduler.api.meta import KubeObject
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.templates import TemplateTable

W = TypeVar("W")

KINDS = frozenset(
    {
        "Pod",
        "Node",
        "Namespace",
        "PodDisruptionBudget",
        "PersistentVolumeClaim",
        "PersistentVolume",
        "PriorityClass",
    }
)
"""The kinds that have a read view."""

_GONE = 410
_HEAD = 32
"""Bytes of a line in which its type stands: the API server writes it first."""
_TYPES = {
    each.value: each
    for each in (WatchEventType.ADDED, WatchEventType.MODIFIED, WatchEventType.DELETED)
}
_FAILURES = (msgspec.MsgspecError, ValueError, KeyError)

_any_line = msgspec.json.Decoder(wire.Line[msgspec.Raw])
_any_list = msgspec.json.Decoder(wire.WireList[msgspec.Raw])
_bookmark = msgspec.json.Decoder(wire.Bookmark)
_status = msgspec.json.Decoder(wire.Status)


class UnreadableError(ValueError):
    """Raised for a line or body that is no JSON, or holds no object with a name. A new watch or
    list may help."""


class DecodedList(NamedTuple):
    items: list[KubeObject]
    resource_version: str
    continue_token: str
    """Asks for the next page; empty on the last."""


class _Codec(Protocol):
    def one(self, raw: bytes, /) -> KubeObject: ...
    def line(self, line: bytes, /) -> WatchEvent: ...
    def page(self, body: bytes, /) -> DecodedList: ...


class Decoder:
    """Decodes all kinds; owns the tables through which Pods share their templates.

    A kind other than those of KINDS is a KeyError.
    """

    def __init__(self) -> None:
        self._templates = TemplateTable()
        self._codecs: dict[str, _Codec] = {
            "Pod": _KindCodec(wire.WirePod, partial(projection.pod, templates=self._templates)),
            "Node": _KindCodec(wire.WireNode, projection.node),
            "Namespace": _KindCodec(wire.WireNamespace, projection.namespace),
            "PodDisruptionBudget": _KindCodec(wire.WireBudget, projection.budget),
            "PersistentVolumeClaim": _KindCodec(wire.WireClaim, projection.claim),
            "PersistentVolume": _KindCodec(wire.WireVolume, projection.volume),
            "PriorityClass": _KindCodec(wire.WirePriorityClass, projection.priority_class),
        }
        self.unreadable = 0
        """Objects that became opaque or had to be left out, since the start."""

    def decode(self, kind: str, raw: bytes) -> KubeObject:
        """Return the view of one object, opaque if it cannot be read.

        Raises UnreadableError when not even its name can.
        """
        codec = self._codecs[kind]
        try:
            return codec.one(raw)
        except _FAILURES as error:
            self.unreadable += 1
            return projection.opaque(kind, _identity(kind, raw), _why(error))

    def decode_object(self, kind: str, manifest: Mapping[str, object]) -> KubeObject:
        """Return the view of an object that is no longer text: out of a dump, or of a test.

        Raises UnreadableError, as `decode` does, and for what JSON cannot say.
        """
        try:
            raw = orjson.dumps(manifest)
        except orjson.JSONEncodeError as error:
            raise UnreadableError(f"not an object of kind {kind}: {error}") from error
        return self.decode(kind, raw)

    def decode_list(self, kind: str, body: bytes) -> DecodedList:
        """Return the views of one page of a list. Raises UnreadableError for what is no list.

        An item without a name is left out: nothing could ever be said about it.
        """
        codec = self._codecs[kind]
        try:
            return codec.page(body)
        except _FAILURES:
            return self._item_by_item(kind, body)

    def decode_line(self, kind: str, line: bytes) -> WatchEvent:
        """Return one watch event.

        Raises ExpiredError or ApiStatusError for what an ERROR line says, UnreadableError for a
        line that is no watch event.
        """
        codec, head = self._codecs[kind], line[:_HEAD]
        # The typed decoder refuses these two: a bookmark's object is hardly filled in, and an
        # error's is a Status.
        if b"BOOKMARK" in head or b"ERROR" in head:
            return self._with_care(kind, line)
        try:
            return codec.line(line)
        except _FAILURES:
            return self._with_care(kind, line)

    def sweep(self, pods: Iterable[Pod]) -> None:
        """Forget the templates that none of these Pods uses; the tables only grow otherwise."""
        self._templates.sweep(pods)

    def _with_care(self, kind: str, line: bytes) -> WatchEvent:
        try:
            event = _any_line.decode(line)
            if event.type == WatchEventType.ERROR:
                _raise(_status.decode(event.object))
            if event.type == WatchEventType.BOOKMARK:
                meta = _bookmark.decode(event.object).metadata
                return WatchEvent(WatchEventType.BOOKMARK, None, meta.resource_version or "")
            event_type = _TYPES[event.type]
        except (msgspec.MsgspecError, KeyError) as error:
            raise UnreadableError(f"not a watch event: {_why(error)}") from error
        view = self.decode(kind, bytes(event.object))
        return WatchEvent(event_type, view, view.resource_version)

    def _item_by_item(self, kind: str, body: bytes) -> DecodedList:
        try:
            page = _any_list.decode(body)
        except msgspec.MsgspecError as error:
            raise UnreadableError(f"not a list: {error}") from error
        items = []
        for raw in page.items or ():
            try:
                items.append(self.decode(kind, bytes(raw)))
            except UnreadableError:
                continue
        meta = page.metadata or wire.ListMeta()
        return DecodedList(items, meta.resource_version or "", meta.continue_ or "")


class _KindCodec(Generic[W]):
    """Typed decoding of one kind. Fails as a whole when any object in the input cannot be read."""

    def __init__(self, form: type[W], project: Callable[[W], KubeObject]) -> None:
        self._project = project
        self._one: msgspec.json.Decoder[W] = msgspec.json.Decoder(form)
        self._line: msgspec.json.Decoder[wire.Line[W]] = msgspec.json.Decoder(
            wire.Line[form]  # type: ignore[valid-type]  # a type only at run time
        )
        self._page: msgspec.json.Decoder[wire.WireList[W]] = msgspec.json.Decoder(
            wire.WireList[form]  # type: ignore[valid-type]
        )

    def one(self, raw: bytes) -> KubeObject:
        return self._project(self._one.decode(raw))

    def line(self, line: bytes) -> WatchEvent:
        event = self._line.decode(line)
        view = self._project(event.object)
        return WatchEvent(_TYPES[event.type], view, view.resource_version)

    def page(self, body: bytes) -> DecodedList:
        page = self._page.decode(body)
        meta = page.metadata or wire.ListMeta()
        items = [self._project(each) for each in page.items or ()]
        return DecodedList(items, meta.resource_version or "", meta.continue_ or "")


def _identity(kind: str, raw: bytes) -> projection.Identity:
    try:
        found = _object(orjson.loads(raw))
    except orjson.JSONDecodeError as error:
        raise UnreadableError(f"not JSON: {error}") from error
    meta, spec = _object(found.get("metadata")), _object(found.get("spec"))
    if not _text(meta.get("name")):
        raise UnreadableError(f"an object of kind {kind} without a name")
    return projection.Identity(
        namespace=_text(meta.get("namespace")),
        name=_text(meta.get("name")),
        uid=_text(meta.get("uid")),
        resource_version=_text(meta.get("resourceVersion")),
        node_name=_text(spec.get("nodeName")),
    )


def _raise(status: wire.Status) -> NoReturn:
    code, reason, message = status.code or 0, status.reason or "", status.message or ""
    if code == _GONE or reason in ("Expired", "Gone"):
        raise ExpiredError(message or "the version is too old")
    wait = status.details.retry_after_seconds if status.details else None
    raise ApiStatusError(code, reason, message, retry_after=wait)


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__


def _object(found: object) -> dict[str, object]:
    return found if isinstance(found, dict) else {}


def _text(found: object) -> str:
    return found if isinstance(found, str) else ""
