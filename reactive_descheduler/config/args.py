"""Building blocks of the arguments of plugins.

They decode as upstream's Go does, so that the same file serves both: keys are case-sensitive and
unknown ones refused, null is the same as absent, types are strict (`"1"` is no number, a number
no duration), except that `2.0` is a whole number. Absent and empty differ where a field's default
is None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Annotated, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)
from pydantic.alias_generators import to_camel

from reactive_descheduler.api.selectors import LABEL_OPERATORS, check_selector, flaw

from .durations import parse_duration
from .findings import brief

_Item = TypeVar("_Item")


class Arguments(BaseModel):
    """Base of every model of a document: strict, frozen, camelCase keys, nothing unknown.

    Python code names fields in snake_case; `read` takes only the spelling of documents.
    """

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        validate_default=False,
        allow_inf_nan=False,
        hide_input_in_errors=True,
    )

    @classmethod
    def read(cls, document: object) -> Self:
        """Read plain data of a document.

        Raises:
            pydantic.ValidationError: something in it is wrong; holds every mistake.
        """
        return cls.model_validate(document, by_alias=True, by_name=False)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, document: object) -> object:
        # As Go decodes JSON. An unknown key stays, and is refused.
        if not isinstance(document, Mapping):
            return document
        known = {field.alias for field in cls.model_fields.values()}
        return {
            key: value for key, value in document.items() if value is not None or key not in known
        }


def _listed(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _duration(value: object) -> object:
    if isinstance(value, timedelta):
        return value
    hint = 'write a text such as "100ms", "90s" or "1h30m"'
    if not isinstance(value, str):
        raise ValueError(f"must be a duration, not {brief(value)}; {hint}")  # noqa: TRY004
    try:
        return parse_duration(value)
    except ValueError as error:
        raise ValueError(f"invalid duration: {error}; {hint}") from None


def _not_negative(value: timedelta) -> timedelta:
    if value < timedelta():
        raise ValueError("must not be negative")
    return value


Listed = Annotated[tuple[_Item, ...], BeforeValidator(_listed)]
"""A list in the document, a tuple here."""
Unsigned = Annotated[int, BeforeValidator(_whole), Field(ge=0, lt=2**64)]
"""Go's `uint`."""
Int32 = Annotated[int, BeforeValidator(_whole), Field(ge=-(2**31), lt=2**31)]
"""Go's `int32`."""
Int64 = Annotated[int, BeforeValidator(_whole), Field(ge=-(2**63), lt=2**63)]
"""Go's `int64`."""
Positive32 = Annotated[int, BeforeValidator(_whole), Field(ge=1, lt=2**31)]
"""Go's `int32` where upstream asks for at least 1."""
Duration = Annotated[timedelta, BeforeValidator(_duration)]
"""Go's `metav1.Duration`: always a text."""
Span = Annotated[Duration, AfterValidator(_not_negative)]
"""A duration of zero or more."""


class Namespaces(Arguments):
    """Namespaces whose Pods are looked at; empty lists are the same as none."""

    include: Annotated[
        Listed[str], Field(description="Only Pods of these namespaces; literal names, no globs.")
    ] = ()
    exclude: Annotated[
        Listed[str], Field(description="No Pods of these namespaces; literal names, no globs.")
    ] = ()

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if self.include and self.exclude:
            raise ValueError("only one of include and exclude may be set in namespaces")
        return self

    def choice(self) -> Callable[[str], bool]:
        """Return what says of a namespace's name whether its Pods are looked at."""
        include, exclude = frozenset(self.include), frozenset(self.exclude)
        return lambda name: (not include or name in include) and name not in exclude


class LabelSelectorRequirement(Arguments):
    """One expression of a label selector."""

    key: Annotated[str, Field(description="Key of the label.")]
    operator: Annotated[
        Literal["In", "NotIn", "Exists", "DoesNotExist"],
        Field(description="NotIn also matches objects without the key."),
    ]
    values: Annotated[
        Listed[str],
        Field(description="At least one for In and NotIn, none for the others."),
    ] = ()

    @model_validator(mode="after")
    def _well_formed(self) -> Self:
        if mistake := flaw(self, LABEL_OPERATORS):
            raise ValueError(mistake)
        return self


class LabelSelector(Arguments):
    """Kubernetes' label selector; all of it must match, and an empty one matches everything.

    `api.selectors.matches` takes it as it is.
    """

    match_labels: Annotated[
        dict[str, str], Field(description="Labels that must have these values.")
    ] = {}
    match_expressions: Annotated[
        Listed[LabelSelectorRequirement], Field(description="Further requirements.")
    ] = ()

    @model_validator(mode="after")
    def _well_formed(self) -> Self:
        check_selector(self)
        return self
