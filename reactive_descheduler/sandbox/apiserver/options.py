"""Which combinations of query parameters are refused, in a real server's words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactive_descheduler.sandbox.apiserver.status import invalid_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reactive_descheduler.sandbox.documents import JsonObject

_MATCH = "resourceVersionMatch"
_INITIAL = "sendInitialEvents"
_WITH_CONTINUE = (_MATCH, f"Forbidden: {_MATCH} is forbidden when continue is provided")
_POLICIES = ("Foreground", "Background", "Orphan")


def check_list_options(query: Mapping[str, str], *, watching: bool) -> None:
    """Raises ApiError 422 where version, match, token and initial events do not go together."""
    problems = _of_watch(query) if watching else _of_list(query)
    if problems:
        raise invalid_options("ListOptions", *problems)


def _of_watch(query: Mapping[str, str]) -> list[tuple[str, str]]:
    match, problems = query.get(_MATCH, ""), []
    if _INITIAL in query and match != "NotOlderThan":
        why = f"Forbidden: {_INITIAL} requires setting {_MATCH} to NotOlderThan"
        problems.append((_MATCH, why))
    if match and _INITIAL not in query:
        why = f"Forbidden: {_MATCH} is forbidden for watch unless {_INITIAL} is provided"
        problems.append((_MATCH, why))
    if match not in ("", "NotOlderThan"):
        problems.append((_MATCH, f'Unsupported value: "{match}": supported values: "NotOlderThan"'))
    if query.get("continue"):
        problems.append(_WITH_CONTINUE)
    return problems


def _of_list(query: Mapping[str, str]) -> list[tuple[str, str]]:
    match, version, problems = query.get(_MATCH, ""), query.get("resourceVersion", ""), []
    if match and not version:
        why = f"Forbidden: {_MATCH} is forbidden unless resourceVersion is provided"
        problems.append((_MATCH, why))
    if match and query.get("continue"):
        problems.append(_WITH_CONTINUE)
    if match not in ("", "Exact", "NotOlderThan"):
        known = '"Exact", "NotOlderThan", ""'
        problems.append((_MATCH, f'Unsupported value: "{match}": supported values: {known}'))
    if match == "Exact" and version == "0":
        why = f'Forbidden: {_MATCH} "exact" is forbidden for resourceVersion "0"'
        problems.append((_MATCH, why))
    if _INITIAL in query:
        problems.append((_INITIAL, f"Forbidden: {_INITIAL} is forbidden for list"))
    return problems


def check_write_options(verb: str, query: Mapping[str, str], options: JsonObject) -> None:
    """Raises ApiError 422 for an unknown kind of dry run, of propagation, or a forced plain patch.

    `options` are those of a deletion.
    """
    kind = {"patch": "PatchOptions", "update": "UpdateOptions", "create": "CreateOptions"}.get(
        verb, "DeleteOptions"
    )
    dry_run = query.get("dryRun", "")
    if dry_run not in ("", "All"):
        why = f'Unsupported value: ["{dry_run}"]: supported values: "All"'
        raise invalid_options(kind, ("dryRun", why))
    if verb == "patch" and "force" in query:
        why = "Forbidden: may not be specified for non-apply patch"
        raise invalid_options(kind, ("force", why))
    policy = options.get("propagationPolicy")
    if policy is not None and policy not in _POLICIES:
        known = ", ".join(f'"{name}"' for name in (*_POLICIES, "nil"))
        why = f'Unsupported value: "{policy}": supported values: {known}'
        raise invalid_options(kind, ("propagationPolicy", why))
