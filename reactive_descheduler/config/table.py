"""Writes the configuration tables of the docs out of the models, so that the two agree."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Literal,
    NamedTuple,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import BaseModel

from .args import LabelSelector
from .corrections import ALL, Correction
from .durations import format_duration
from .evictor import DefaultEvictorArguments
from .policy import DeschedulerPolicy
from .reactive import Percent, ReactiveSettings

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo


class Row(NamedTuple):
    """One setting."""

    path: str
    type: str
    default: str
    meaning: str


def rows(model: type[BaseModel], prefix: str = "") -> Iterator[Row]:
    """Yield every setting of a model, those inside others after them.

    Our own settings have a table of their own, and arguments stand with their plugin.
    """
    hints = get_type_hints(model, include_extras=True)
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias}"
        kind = hints[name]
        inner, step = _inner(kind)
        if inner is None or inner is ReactiveSettings:
            yield Row(path, _type(kind), _default(field), field.description or "")
            continue
        yield Row(f"{path}{step}", _type(kind), "", field.description or "")
        yield from rows(inner, f"{path}{step}.")


def markdown(table: Iterator[Row]) -> str:
    """Write rows as a table."""
    lines = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for row in table:
        default = f"`{row.default}`" if row.default else ""
        lines.append(f"| `{row.path}` | {row.type} | {default} | {row.meaning} |")
    return "\n".join(lines)


def corrections_table() -> str:
    """Return the table of differences from upstream."""
    lines = ["| name | upstream, and `none` | with the correction |", "|---|---|---|"]
    lines += [f"| `{each}` | {each.upstream} | {each.ours} |" for each in Correction]
    return "\n".join(lines)


TABLES: Mapping[str, Callable[[], str]] = {
    "policy": lambda: markdown(rows(DeschedulerPolicy)),
    "evictor": lambda: markdown(rows(DefaultEvictorArguments)),
    "reactive": lambda: markdown(rows(ReactiveSettings, "reactive.")),
    "corrections": corrections_table,
}
"""Tables by the name that the docs give them."""


def fill_in(page: str) -> str:
    """Return a page of the docs with its tables written anew.

    A table stands between `<!-- table: NAME -->` and `<!-- end -->`.
    """
    return _PLACE.sub(lambda place: f"{place[1]}\n{TABLES[place[2]]()}\n{place[3]}", page)


_PLACE = re.compile(r"(<!-- table: (\w+) -->).*?(<!-- end -->)", re.DOTALL)


def _inner(kind: object) -> tuple[type[BaseModel] | None, str]:
    """Return the model within a type, and how a path steps into it."""
    kind = _bare(kind)
    if get_origin(kind) is tuple:
        return _inner(get_args(kind)[0])[0], "[]"
    if get_origin(kind) is dict:
        return _inner(get_args(kind)[1])[0], ".<name>"
    if isinstance(kind, type) and issubclass(kind, BaseModel) and kind is not LabelSelector:
        return kind, ""
    return None, ""


def _bare(kind: object) -> object:
    """Take off `Annotated` and `| None`."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    several = [each for each in get_args(kind) if each is not NoneType]
    if NoneType in get_args(kind) and len(several) == 1:
        return _bare(several[0])
    return kind


_TYPES: dict[object, str] = {
    str: "text",
    bool: "boolean",
    int: "integer",
    float: "number",
    object: "any",
    timedelta: "duration",
    Percent: "percentage",
    LabelSelector: "label selector",
    int | Percent: "integer or percentage",
    frozenset[Correction]: "`all`, `none` or list of names",
}


def _type(kind: object) -> str:
    kind = _bare(kind)
    if kind in _TYPES:
        return _TYPES[kind]
    arguments = get_args(kind)
    if get_origin(kind) is Literal:
        return ", ".join(f"`{each}`" if each else '`""`' for each in arguments)
    if get_origin(kind) is tuple:
        inner = _type(arguments[0])
        return "list" if inner == "object" else f"list of {inner}"
    return "object"


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True, validated_data={})
    if field.is_required() or value is None or isinstance(value, BaseModel) or value in ("", {}):
        return ""
    if value == ALL:
        return "all"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    return f"{value:g}" if isinstance(value, float) else str(value)
