"""Mistakes found in plain data, before they are given the file and the line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, cast, get_args

from pydantic import BaseModel

from reactive_descheduler.api.selectors import SelectorError, parse_selector

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

Path = tuple[str | int, ...]
"""Way from the root of a document to a value: keys, and indexes of lists."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A mistake at a place in a document."""

    path: Path
    message: str
    hint: str = ""
    unknown_key: bool = False
    """A key that means nothing; upstream ignores some of those."""


def path_text(path: Path) -> str:
    """Write a path as users know it: `profiles[0].plugins.deschedule`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def close_match(name: str, known: Iterable[str]) -> str:
    """Return "did you mean ...?" for a misspelt name, or nothing; case of letters is no matter."""
    by_folded = {each.casefold(): each for each in known}
    matches = get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.7)
    return f"did you mean {by_folded[matches[0]]}?" if matches else ""


def selector_findings(text: str, path: Path) -> Iterator[Finding]:
    """Say what is wrong with a label selector in the string syntax."""
    try:
        parse_selector(text)
    except SelectorError as error:
        yield Finding(path, str(error), 'such as "pool=blue" or "zone in (a,b),!spot"')


def validation_findings(
    error: ValidationError, model: type[BaseModel], document: object, at: Path = ()
) -> Iterator[Finding]:
    """Turn pydantic's mistakes in `document`, which stands at path `at`, into ours."""
    for details in error.errors(include_url=False):
        location = details["loc"]
        path = at + _path(location, document)
        hint, unknown = "", details["type"] == "extra_forbidden"
        if unknown:
            hint = close_match(str(location[-1]), _keys(_model_at(model, location[:-1])))
        elif isinstance(details["input"], str):
            hint = _text_hint(details, details["input"])
        yield Finding(path, _message(details), hint, unknown)


def _text_hint(details: ErrorDetails, text: str) -> str:
    """Say what would mend a text that is none of those allowed, or that should be no text."""
    kind = details["type"]
    if kind == "literal_error":
        return close_match(text, re.findall("'([^']*)'", details["ctx"]["expected"]))
    if kind == "tuple_type":
        return f"write [{text}]" if re.fullmatch(r"[\w.-]+", text) else ""
    if kind in ("int_type", "float_type") and re.fullmatch(r"\d+(\.\d+)? ?%", text):
        return "a bare number, without %"
    pattern = _UNQUOTED.get(kind)
    return "without quotes" if pattern and re.fullmatch(pattern, text) else ""


_UNQUOTED = {
    "int_type": r"-?\d+",
    "float_type": r"-?\d+(\.\d+)?",
    "bool_type": "true|false",
}
"""What a text holds that would be right as what it looks like, by the type that is asked for."""
_MESSAGES = {
    "extra_forbidden": "unknown key",
    "missing": "is required",
    "tuple_type": "must be a list",
    "model_type": "must be a mapping",
    "dict_type": "must be a mapping",
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
}
_REWORDED = (
    ("Input should be", "must be"),
    ("greater than or equal to", "at least"),
    ("less than or equal to", "at most"),
)


def _message(details: ErrorDetails) -> str:
    kind = details["type"]
    if kind == "value_error":
        return details["msg"].removeprefix("Value error, ")
    if kind in ("extra_forbidden", "missing"):
        return _MESSAGES[kind]
    if kind == "too_short":
        return "must not be empty"
    message = _MESSAGES.get(kind) or details["msg"].replace("'", '"')
    for theirs, ours in _REWORDED:
        message = message.replace(theirs, ours, 1)
    return f"{message}, not {brief(details['input'])}"


def brief(value: object) -> str:
    """Write a value of a document for a message, however long it is."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, int) and value.bit_length() > 256:
        return "a huge number"
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def value_at(document: object, path: Path) -> object:
    """Return what stands at a path of a document; None if nothing does."""
    for part in path:
        try:
            document = cast(Mapping[str | int, object], document)[part]
        except (LookupError, TypeError):
            return None
    return document


def _path(location: Path, document: object) -> Path:
    """Drop what pydantic adds to a location beside keys and indexes, such as `[key]`."""
    path: list[str | int] = []
    for part in location:
        inside = isinstance(document, list) and isinstance(part, int) and part < len(document)
        if inside or (isinstance(document, Mapping) and part in document):
            path.append(part)
            document = cast(dict[str | int, object], document)[part]
        elif part is location[-1] and part != "[key]":
            path.append(part)
    return tuple(path)


def _model_at(model: type[BaseModel] | None, location: Path) -> type[BaseModel] | None:
    for part in location:
        if model is None:
            return None
        field = next((f for f in model.model_fields.values() if f.alias == part), None)
        model = _model_in(field.annotation) if field else model
    return model


def _model_in(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for arg in get_args(annotation) if (found := _model_in(arg))), None)


def _keys(model: type[BaseModel] | None) -> list[str]:
    return [field.alias or "" for field in model.model_fields.values()] if model else []


class Findings:
    """Gathers what is found in one document."""

    def __init__(self, *, strict: bool) -> None:
        """Start with none; `strict` refuses also what upstream silently ignores."""
        self.strict = strict
        self.errors: list[Finding] = []
        self.warnings: list[Finding] = []
        self._refused: set[Path] = set()

    def refuse(self, findings: Iterable[Finding]) -> None:
        """Take mistakes, but for what only follows from one at the same place or around it."""
        new = [
            finding
            for finding in findings
            if not any(finding.path[:end] in self._refused for end in range(len(finding.path) + 1))
        ]
        self.errors += new
        self._refused.update(finding.path for finding in new)

    def warn(self, findings: Iterable[Finding]) -> None:
        """Take what is worth saying."""
        self.warnings += findings

    def refuse_if_strict(self, findings: Iterable[Finding]) -> None:
        """Take what upstream ignores: a mistake under `strictDocuments`, else a warning."""
        (self.refuse if self.strict else self.warn)(findings)
