"""LIST: consistent pages and the rules of resourceVersion."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

import orjson

from reactive_descheduler.sandbox.apiserver.event_forms import CORE_EVENTS
from reactive_descheduler.sandbox.apiserver.status import ApiError, expired
from reactive_descheduler.sandbox.documents import JsonObject, integer, text

if TYPE_CHECKING:
    from reactive_descheduler.sandbox.apiserver.requests import ListQuery
    from reactive_descheduler.sandbox.apiserver.resources import Resource
    from reactive_descheduler.sandbox.apiserver.store import Store, Stored

_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)
_TOO_OLD = "The resourceVersion for the provided list is too old."
_LATEST = -1  # as a token's version: whatever there is by now


def list_objects(
    store: Store, resource: Resource, query: ListQuery
) -> tuple[list[Stored], JsonObject]:
    """One page, and the metadata of the list.

    All pages of a list show the state at its first one. Version 0 asks for what a cache has, and as
    on a real server that is all of it at once; Events have no cache. Raises ApiError 410 when the
    history does not reach back that far, 400 for a token that cannot be read, 504 for a version yet
    to come.
    """
    version, after = _starting_point(store, query)
    try:
        items = store.of(resource).at(version)
    except ApiError as error:
        raise _expired(after) from error
    limit = 0 if query.version == 0 and resource is not CORE_EVENTS else query.limit
    if query.selects:
        items = [item for item in items if query.matches(item.document)]
    if after:
        items = [item for item in items if item.key > after]
    metadata: JsonObject = {"resourceVersion": str(version)}
    if limit and len(items) > limit:
        if not (query.labels or query.fields):
            metadata["remainingItemCount"] = len(items) - limit
        items = items[:limit]
        metadata["continue"] = _token(version, items[-1].key)
    return items, metadata


def _expired(after: tuple[str, str] | None) -> ApiError:
    """An expired page carries a token for the rest, which no longer fits what came before."""
    if after is None:
        return expired(_TOO_OLD)
    return expired(_EXPIRED, metadata={"continue": _token(_LATEST, after)})


def _starting_point(store: Store, query: ListQuery) -> tuple[int, tuple[str, str] | None]:
    if query.continue_token:
        if query.version:
            raise ApiError(400, "specifying resource version is not allowed when using continue")
        version, after = _read_token(query.continue_token)
        return (store.version if version == _LATEST else version), after
    if query.version:
        store.check_version(query.version)
    exact = query.version_match == "Exact" and query.version is not None
    return (query.version or store.version) if exact else store.version, None


def _token(version: int, last: tuple[str, str]) -> str:
    content = {"v": "meta.k8s.io/v1", "rv": version, "start": "/".join(last)}
    return base64.urlsafe_b64encode(orjson.dumps(content)).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, tuple[str, str]]:
    try:
        content = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (binascii.Error, ValueError) as error:
        raise ApiError(400, "continue key is not valid") from error
    namespace, _, name = text(content, "start").partition("/")
    return integer(content, "rv"), (namespace, name)
