"""Reads YAML or JSON into plain data that remembers the line of everything in it.

Scalars are those of YAML 1.1 as upstream's reader takes them (`on`, `yes` and bare `y` are
booleans, `1e3` is a number; dates and `1:30` are text), keys become text, and only the first
document of several is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

from .findings import Finding, Path

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]

_MOST_VALUES = 100_000
"""Bound on what aliases may unfold to, so that a small file cannot fill the memory."""


class UnreadableError(Exception):
    """The text is no YAML; `line` says where, None if unknown, and `hint` what may mend it.
    Retrying does not help."""

    def __init__(self, message: str, line: int | None = None, hint: str = "") -> None:
        """Keep line and hint beside the message."""
        self.line = line
        self.hint = hint
        super().__init__(message)


@dataclass(slots=True)
class Document:
    """Plain data, where it stands in the file, and keys that were written twice."""

    data: JsonValue = None
    lines: dict[Path, int] = field(default_factory=dict)
    duplicates: list[Finding] = field(default_factory=list)

    def line(self, path: Path) -> int | None:
        """Return the line of a value, or of the nearest thing around it that has one."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)


class _Loader(yaml.SafeLoader):
    """SafeLoader with the scalars of Go's reader where the two differ."""

    bool_values = yaml.SafeLoader.bool_values | {"y": True, "n": False}


_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag.rpartition(":")[2] not in ("timestamp", "int", "float")
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"[yYnN]$"), list("yYnN"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int",
    re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)$"),
    list("-+0123456789"),
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"[-+]?(?:(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|\.(?:inf|Inf|INF))$"
        r"|\.(?:nan|NaN|NAN)$"
    ),
    list("-+0123456789."),
)


def read_document(text: bytes | str) -> Document:
    """Read the first document of a text; an empty one is None.

    Raises:
        UnreadableError: the text is neither YAML nor JSON.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8-sig")
        loader = _Loader(_without_tabs(text))
        node = loader.get_node() if loader.check_node() else None
        document = Document()
        if node is not None:
            document.data = _Reader(loader, document).value(node, ())
    except UnicodeDecodeError as error:
        raise UnreadableError(f"is not UTF-8: {error.reason}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = error.problem or error.context or "no more is known"
        line = mark.line + 1 if mark else None
        raise UnreadableError(f"is not YAML: {message}", line, _hint(error)) from None
    except yaml.YAMLError as error:
        raise UnreadableError(str(error).partition("\n")[0]) from None
    except RecursionError:
        raise UnreadableError("is nested too deeply") from None
    return document


def _hint(error: yaml.MarkedYAMLError) -> str:
    """Say what mostly lies behind a mistake that PyYAML words as its scanner met it."""
    problem, context = error.problem or "", error.context or ""
    began = error.context_mark.line + 1 if error.context_mark else 0
    if r"'\t'" in problem:
        return "indent with spaces, not tabs"
    if "cannot start any token" in problem:
        return "text that begins so has to be in quotes"
    if problem.startswith("mapping values"):
        return "indent it like its neighbours; text with a colon has to be in quotes"
    if context in ("while parsing a flow mapping", "while parsing a flow sequence"):
        return f"the bracket of line {began} lacks its end, or a comma"
    if context == "while parsing a flow node" and "<stream end>" in problem:
        return "a bracket lacks its end"
    if context == "while scanning a quoted scalar":
        return f"the quote of line {began} lacks its end"
    return "indent it like its neighbours" if context.startswith("while parsing a block ") else ""


def _without_tabs(text: str) -> str:
    """Let JSON be indented with tabs, which YAML forbids."""
    if "\t" in text and text.lstrip().startswith("{"):
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return text
        return text.replace("\t", " ")
    return text


class _Reader:
    """Turns nodes into data; aliases stand for the same node, so a path may come twice."""

    def __init__(self, loader: _Loader, document: Document) -> None:
        self._loader = loader
        self._document = document
        self._left = _MOST_VALUES
        self._open: set[yaml.Node] = set()

    def value(self, node: yaml.Node, path: Path) -> JsonValue:
        self._left -= 1
        if self._left < 0:
            raise UnreadableError(f"holds more than {_MOST_VALUES} values", _line(node))
        if node in self._open:
            raise UnreadableError("an alias stands inside its own anchor", _line(node))
        self._document.lines.setdefault(path, _line(node))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        self._open.add(node)
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item, (*path, i)) for i, item in enumerate(node.value)]
            return self._mapping(node, path)
        finally:
            self._open.discard(node)

    def _scalar(self, node: yaml.ScalarNode) -> JsonValue:
        try:
            value = self._loader.construct_object(node)
        except (ValueError, LookupError, TypeError, AttributeError):  # all come out of PyYAML
            raise UnreadableError(f"{node.value[:60]!r} cannot be read", _line(node)) from None
        if isinstance(value, str):
            return _text(value, node)
        if value is None or isinstance(value, bool | int | float):
            return value
        raise UnreadableError(f"a value of type {node.tag} has no place here", _line(node))

    def _mapping(self, node: yaml.Node, path: Path) -> dict[str, JsonValue]:
        data: dict[str, JsonValue] = {}
        merged: dict[str, JsonValue] = {}
        for key_node, value_node in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                for mapping in self._merged(value_node, path):
                    merged = mapping | merged
                continue
            key = self._key(key_node)
            here = (*path, key)
            if key in data:
                first = self._document.lines[here]
                finding = Finding(here, "key is written twice", f"first on line {first}")
                self._document.duplicates.append(finding)
            self._document.lines[here] = _line(key_node)
            data[key] = self.value(value_node, here)
        return merged | data

    def _merged(self, node: yaml.Node, path: Path) -> Iterator[dict[str, JsonValue]]:
        """Read what stands behind `<<`: a mapping, or a list of them, the first of which wins."""
        value = self.value(node, (*path, "<<"))
        for mapping in value if isinstance(value, list) else [value]:
            if not isinstance(mapping, dict):
                raise UnreadableError("<< must stand before a mapping", _line(node))
            yield mapping

    def _key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise UnreadableError("a key must be text", _line(node))
        key = self._scalar(node)
        return key if isinstance(key, str) else json.dumps(key)


def _text(value: str, node: yaml.Node) -> str:
    """Join the surrogate pairs of JSON's escapes; one without the other is no character."""
    try:
        return value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise UnreadableError("holds half a character", _line(node)) from None


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
