"""The three kinds of patch: JSON merge patch, JSON patch, strategic merge patch.

Sources: RFC 7386, RFC 6902, and Kubernetes' notes on strategic merge (lists of objects merge by
the key that the API types name; `$patch`, `$deleteFromPrimitiveList`, `$retainKeys` direct it).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from reactive_descheduler.sandbox.apiserver.status import ApiError

if TYPE_CHECKING:
    from reactive_descheduler.sandbox.documents import JsonObject

# Merge keys by the name of the list. Lists that are not named here are replaced whole, as the
# API types have it (taints and tolerations, for two, carry no merge key).
_MERGE_KEYS = {
    "conditions": ("type",),
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "ports": ("containerPort", "port"),
    "ownerReferences": ("uid",),
    "addresses": ("type",),
    "topologySpreadConstraints": ("topologyKey",),
    "secrets": ("name",),
    "podIPs": ("ip",),
    "hostIPs": ("ip",),
    "resourceClaims": ("name",),
}
_TYPES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
_PRIMITIVE_SETS = frozenset({"finalizers", "podCIDRs"})
_DELETE_PRIMITIVES = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"


def check_patch_type(content_type: str) -> None:
    """Raises ApiError 415 for what is none of the three."""
    if content_type in _TYPES:
        return
    if content_type.startswith("application/apply-patch"):
        raise ApiError(415, "the sandbox does not serve server-side apply")
    raise ApiError(415, "415: Unsupported Media Type", details={})


def apply_patch(document: JsonObject, patch: object, content_type: str) -> JsonObject:
    """The patched document; the one given is changed and must not be used afterwards.

    Raises ApiError 400 or 422 for a patch that does not apply.
    """
    match content_type:
        case "application/merge-patch+json":
            return _as_object(merge(document, _as_object(patch)))
        case "application/strategic-merge-patch+json":
            return strategic(document, _as_object(patch))
    return _as_object(json_patch(document, patch))


def _as_object(value: object) -> JsonObject:
    if not isinstance(value, dict):
        raise ApiError(400, "the patch does not give an object")
    return cast("JsonObject", value)


def merge(document: object, patch: object) -> object:
    """RFC 7386: objects merge, null removes, all else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = document if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def strategic(document: JsonObject, patch: JsonObject) -> JsonObject:
    """Strategic merge of one object."""
    match patch.get("$patch"):
        case "replace":
            return {key: value for key, value in patch.items() if key != "$patch"}
        case "delete":
            return {}
    _retain_keys(document, patch)
    for key, value in patch.items():
        if key.startswith(_DELETE_PRIMITIVES):
            _delete_primitives(document, key.removeprefix(_DELETE_PRIMITIVES), value)
        elif key.startswith("$"):
            continue
        elif value is None:
            document.pop(key, None)
        elif isinstance(value, dict):
            below = document.get(key)
            document[key] = strategic(below if isinstance(below, dict) else {}, value)
        elif isinstance(value, list):
            document[key] = _merge_list(key, document.get(key), value)
        else:
            document[key] = value
    _set_order(document, patch)
    return document


def _retain_keys(document: JsonObject, patch: JsonObject) -> None:
    keep = patch.get("$retainKeys")
    if isinstance(keep, list):
        for key in [key for key in document if key not in keep]:
            del document[key]


def _delete_primitives(document: JsonObject, key: str, values: object) -> None:
    present = document.get(key)
    if isinstance(present, list) and isinstance(values, list):
        document[key] = [member for member in present if member not in values]


def _merge_list(name: str, present: object, patch: list[object]) -> list[object]:
    old = list(present) if isinstance(present, list) else []
    if name in _PRIMITIVE_SETS:
        return old + [member for member in patch if member not in old]
    keys = _MERGE_KEYS.get(name, ())
    members = [member for member in patch if isinstance(member, dict)]
    if any(member.get("$patch") == "replace" for member in members):
        return [member for member in members if "$patch" not in member]
    merge_key = next((k for k in keys if all(k in member for member in members)), None)
    if merge_key is None or len(members) < len(patch):
        return patch
    return _merge_by_key(old, members, merge_key)


def _merge_by_key(old: list[object], patch: list[JsonObject], key: str) -> list[object]:
    for member in patch:
        at = next((i for i, e in enumerate(old) if _value(e, key) == member[key]), None)
        if member.get("$patch") == "delete":
            old = [entry for entry in old if _value(entry, key) != member[key]]
        elif at is None:
            old.append(strategic({}, member))
        else:
            old[at] = strategic(cast("JsonObject", old[at]), member)
    return old


def _value(entry: object, key: str) -> object:
    return entry.get(key) if isinstance(entry, dict) else None


def _set_order(document: JsonObject, patch: JsonObject) -> None:
    for directive, wanted in patch.items():
        name = directive.removeprefix(_ORDER)
        present = document.get(name)
        if name == directive or not isinstance(present, list) or not isinstance(wanted, list):
            continue
        keys = _MERGE_KEYS.get(name, ())
        places = {_identity(entry, keys): place for place, entry in enumerate(wanted)}
        present.sort(key=lambda entry: places.get(_identity(entry, keys), len(places)))


def _identity(entry: object, keys: tuple[str, ...]) -> str:
    if not isinstance(entry, dict):
        return str(entry)
    return next((str(entry[key]) for key in keys if key in entry), "")


def json_patch(document: object, operations: object) -> object:
    """RFC 6902, all six operations.

    Raises ApiError 400 for what is no list of operations, 422 for one that does not apply.
    """
    if not isinstance(operations, list):
        raise ApiError(400, "a JSON patch is a list of operations")
    root: JsonObject = {"": document}
    for entry in operations:
        try:
            _operate(root, cast("JsonObject", entry))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            message = "the server rejected our request due to an error in our request"
            raise ApiError(422, message, reason="Invalid", details={}) from error
    return root[""]


def _operate(root: JsonObject, operation: JsonObject) -> None:
    path = str(operation["path"])
    match operation["op"]:
        case "add":
            _add(root, path, operation["value"])
        case "remove":
            _remove(root, path)
        case "replace":
            _replace(root, path, operation["value"])
        case "move":
            _add(root, path, _remove(root, str(operation["from"])))
        case "copy":
            _add(root, path, _get(root, str(operation["from"])))
        case "test":
            if _get(root, path) != operation["value"]:
                raise ValueError(f"testing value {path} failed")
        case unknown:
            raise ValueError(f"unexpected kind {unknown!r} of operation")


def _resolve(root: JsonObject, pointer: str) -> tuple[object, str]:
    """The container that a pointer's last token is in, and that token."""
    tokens = [t.replace("~1", "/").replace("~0", "~") for t in pointer.split("/")]
    container: object = root
    for token in tokens[:-1]:
        container = _member(container, token)
    return container, tokens[-1]


def _member(container: object, token: str) -> object:
    if isinstance(container, list):
        return container[_index(token)]
    return cast("JsonObject", container)[token]


def _index(token: str) -> int:
    if not token.isdigit():
        raise ValueError(f"invalid array index {token!r}")
    return int(token)


def _get(root: JsonObject, pointer: str) -> object:
    return _member(*_resolve(root, pointer))


def _add(root: JsonObject, pointer: str, value: object) -> None:
    container, token = _resolve(root, pointer)
    if not isinstance(container, list):
        cast("JsonObject", container)[token] = value
        return
    place = len(container) if token == "-" else _index(token)
    if place > len(container):
        raise IndexError(f"index {place} is out of bounds")
    container.insert(place, value)


def _replace(root: JsonObject, pointer: str, value: object) -> None:
    """The member of a list must be there; that of an object need not, on a real server."""
    container, token = _resolve(root, pointer)
    if isinstance(container, list):
        container[_index(token)] = value
    else:
        cast("JsonObject", container)[token] = value


def _remove(root: JsonObject, pointer: str) -> object:
    container, token = _resolve(root, pointer)
    if isinstance(container, list):
        return cast("object", container.pop(_index(token)))
    return cast("JsonObject", container).pop(token)
