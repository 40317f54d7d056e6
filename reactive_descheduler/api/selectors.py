"""Label selectors: objects as Kubernetes writes them, and the string syntax of policies.

Requirements follow apimachinery's `labels.NewRequirement`; node affinity terms use them too
(`scheduling.node_affinity`). Whether one is well formed is remembered by content, since the same
few selectors are asked about thousands of Pods.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

from reactive_descheduler.api.terms import Requirement

_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_LABEL_NAME = re.compile(_NAME)
_LABEL_VALUE = re.compile(rf"(?:{_NAME})?")
_PREFIX = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_INTEGER = re.compile(r"[+-]?[0-9]+")

LABEL_OPERATORS = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})
ALL_OPERATORS = LABEL_OPERATORS | {"Gt", "Lt"}


class SelectorError(ValueError):
    """Raised when a selector is malformed; names the part at fault. No retry helps."""


class Expression(Protocol):
    """What `api.terms.Requirement` and the model of a policy's selector have in common."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def values(self) -> tuple[str, ...] | None: ...


class Selector(Protocol):
    """What `api.terms.LabelSelector` and the model of a policy's selector have in common."""

    @property
    def match_labels(self) -> Mapping[str, str] | None: ...
    @property
    def match_expressions(self) -> Sequence[Expression] | None: ...


def matches(selector: Selector | None, labels: Mapping[str, str]) -> bool:
    """Say whether all of the selector holds: None matches nothing, an empty one everything.

    Raises:
        SelectorError: some part of it is malformed, whatever the others say.
    """
    if selector is None:
        return False
    check_selector(selector)
    wanted = selector.match_labels or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        holds(expression, labels) for expression in selector.match_expressions or ()
    )


def check_selector(selector: Selector) -> None:
    """Check that a selector is well formed.

    Raises:
        SelectorError: it is not; the message names key, operator or value.
    """
    for key, value in (selector.match_labels or {}).items():
        mistake = _key_mistake(key) or _value_mistake(value)
        if mistake:
            raise SelectorError(mistake)
    for expression in selector.match_expressions or ():
        mistake = flaw(expression, LABEL_OPERATORS)
        if mistake:
            raise SelectorError(mistake)


def flaw(expression: Expression, operators: frozenset[str] = ALL_OPERATORS) -> str:
    """Return what is wrong with one requirement; empty when nothing is."""
    return _flaw(expression.key, expression.operator, expression.values or (), operators)


@lru_cache(maxsize=4096)
def _flaw(key: str, operator: str, values: tuple[str, ...], operators: frozenset[str]) -> str:
    if operator not in operators:
        return f"operator {operator!r} is none of {', '.join(sorted(operators))}"
    return (
        _key_mistake(key)
        or _number_mistake(operator, values)
        or next(filter(None, map(_value_mistake, values)), "")
    )


def _number_mistake(operator: str, values: Sequence[str]) -> str:
    if operator in ("In", "NotIn") and not values:
        return f"operator {operator} needs at least one value"
    if operator in ("Exists", "DoesNotExist") and values:
        return f"operator {operator} takes no values"
    if operator in ("Gt", "Lt") and (len(values) != 1 or _integer(values[0]) is None):
        return f"operator {operator} needs exactly one value, a whole number"
    return ""


@lru_cache(maxsize=4096)
def _key_mistake(key: str) -> str:
    prefix, slash, name = key.rpartition("/")
    prefixed = not slash or (len(prefix) <= 253 and _PREFIX.fullmatch(prefix) is not None)
    if prefixed and _LABEL_NAME.fullmatch(name) is not None:
        return ""
    return f"{key!r} is no label key"


@lru_cache(maxsize=4096)
def _value_mistake(value: str) -> str:
    return "" if _LABEL_VALUE.fullmatch(value) is not None else f"{value!r} is no label value"


def _integer(text: str) -> int | None:
    if _INTEGER.fullmatch(text) is None:
        return None
    number = int(text) if len(text) <= 32 else 2**63
    return number if -(2**63) <= number < 2**63 else None


def holds(expression: Expression, labels: Mapping[str, str]) -> bool:
    """Say whether one well-formed requirement holds; a missing key satisfies the negative ones."""
    values, found = expression.values or (), labels.get(expression.key)
    match expression.operator:
        case "In":
            return found is not None and found in values
        case "NotIn":
            return found is None or found not in values
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
    return found is not None and _compares(expression.operator, found, values[0])


def _compares(operator: str, found: str, bound: str) -> bool:
    left, right = _integer(found), _integer(bound)
    if left is None or right is None:
        return False
    return left > right if operator == "Gt" else left < right


class Requirements(NamedTuple):
    """A selector read from the string syntax: all of it must hold; empty matches everything."""

    requirements: tuple[Requirement, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(holds(requirement, labels) for requirement in self.requirements)


def parse_selector(text: str) -> Requirements:
    """Read `k=v`, `k==v`, `k!=v`, `k in (a,b)`, `k notin (a,b)`, `k`, `!k`, `k>1`, `k<1`, joined by
    commas.

    Raises:
        SelectorError: it is malformed; names the part at fault.
    """
    return Requirements(tuple(_Parser(text).requirements()))


_TOKEN = re.compile(r"==|!=|[=!(),<>]|[^\s=!(),<>]+")
_SPECIAL = frozenset({"", "==", "!=", "=", "!", "(", ")", ",", "<", ">"})
_OPERATORS = {
    "=": "In",
    "==": "In",
    "in": "In",
    "!=": "NotIn",
    "notin": "NotIn",
    ">": "Gt",
    "<": "Lt",
}


class _Parser:
    """Reads tokens left to right; the empty token is the end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = [*_TOKEN.findall(text), ""]
        self._next = 0

    def requirements(self) -> Iterable[Requirement]:
        if self._peek() == "":
            return
        while True:
            requirement = self._requirement()
            mistake = flaw(requirement)
            if mistake:
                raise SelectorError(f"{mistake} in selector {self._text!r}")
            yield requirement
            if self._peek() == "":
                return
            self._expect(",")

    def _requirement(self) -> Requirement:
        if self._peek() == "!":
            self._take()
            return Requirement(self._word("a key"), "DoesNotExist")
        key = self._word("a key")
        if self._peek() in ("", ","):
            return Requirement(key, "Exists")
        sign = self._take()
        operator = _OPERATORS.get(sign)
        if operator is None:
            raise self._unexpected(sign, "an operator")
        values = self._values() if sign in ("in", "notin") else (self._value(),)
        return Requirement(key, operator, values)

    def _value(self) -> str:
        return "" if self._peek() in ("", ",") else self._word("a value")

    def _values(self) -> tuple[str, ...]:
        # An empty place in the list is the empty value, as upstream reads it.
        self._expect("(")
        values = [self._listed_value()]
        while self._peek() == ",":
            self._take()
            values.append(self._listed_value())
        self._expect(")")
        return tuple(values)

    def _listed_value(self) -> str:
        return "" if self._peek() in (",", ")") else self._word("a value")

    def _word(self, wanted: str) -> str:
        token = self._take()
        if token in _SPECIAL:
            raise self._unexpected(token, wanted)
        return token

    def _expect(self, wanted: str) -> None:
        token = self._take()
        if token != wanted:
            raise self._unexpected(token, repr(wanted))

    def _unexpected(self, token: str, wanted: str) -> SelectorError:
        found = repr(token) if token else "its end"
        return SelectorError(f"selector {self._text!r} has {found} where {wanted} is expected")

    def _peek(self) -> str:
        return self._tokens[self._next]

    def _take(self) -> str:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token
