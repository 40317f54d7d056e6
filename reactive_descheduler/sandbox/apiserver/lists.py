"""LIST: consistent pages and the rules of resourceVersion."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

import orjson

from reactive_descheduler.sandbox.apiserver.status import ApiError, expired
from reactive_descheduler.sandbox.documents import JsonObject, integer, text

if TYPE_CHECKING:
    from reactive_descheduler.sandbox.apiserver.requests import ListQuery
    from reactive_descheduler.sandbox.apiserver.resources import Resource
    from reactive_descheduler.sandbox.apiserver.store import Store, Stored

_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results."
)


def list_objects(
    store: Store, resource: Resource, query: ListQuery
) -> tuple[list[Stored], JsonObject]:
    """One page, and the metadata of the list.

    All pages of a list show the state at its first one. Raises ApiError 410 when the history does
    not reach back that far, 400 for a token that cannot be read, 504 for a version yet to come.
    """
    version, after = _starting_point(store, query)
    try:
        items = store.of(resource).at(version)
    except ApiError as error:
        raise expired(_EXPIRED if query.continue_token else str(error)) from error
    if query.selects:
        items = [item for item in items if query.matches(item.document)]
    if after:
        items = [item for item in items if item.key > after]
    metadata: JsonObject = {"resourceVersion": str(version)}
    if query.limit and len(items) > query.limit:
        if not (query.labels or query.fields):
            metadata["remainingItemCount"] = len(items) - query.limit
        items = items[: query.limit]
        metadata["continue"] = _token(version, items[-1])
    return items, metadata


def _starting_point(store: Store, query: ListQuery) -> tuple[int, tuple[str, str] | None]:
    if query.continue_token:
        if query.version:
            raise ApiError(400, "specifying resource version is not allowed when using continue")
        return _read_token(query.continue_token)
    if query.version:
        store.check_version(query.version)
    exact = query.version_match == "Exact" and query.version is not None
    return (query.version or store.version) if exact else store.version, None


def _token(version: int, last: Stored) -> str:
    content = {"v": "meta.k8s.io/v1", "rv": version, "start": "/".join(last.key)}
    return base64.urlsafe_b64encode(orjson.dumps(content)).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, tuple[str, str]]:
    try:
        content = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (binascii.Error, ValueError) as error:
        raise ApiError(400, "continue key is not valid") from error
    namespace, _, name = text(content, "start").partition("/")
    return integer(content, "rv"), (namespace, name)
