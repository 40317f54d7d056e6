"""Plugins as a layer above would declare them, with arguments of each kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

import pytest
from pydantic import Field

from reactive_descheduler.api.errors import PolicyError, Problem
from reactive_descheduler.config.args import (
    Arguments,
    Duration,
    Int32,
    LabelSelector,
    Listed,
    Namespaces,
    Positive32,
    Unsigned,
)
from reactive_descheduler.config.corrections import Corrections
from reactive_descheduler.config.load import LoadedPolicy, PluginSpec, load_policy


class SweepArguments(Arguments):
    """Arguments that all have a default."""

    namespaces: Namespaces = Namespaces()
    label_selector: LabelSelector | None = None
    only: Listed[str] | None = None
    after: Duration | None = None
    most: Unsigned | None = None
    codes: Listed[Int32] = ()


class CountArguments(Arguments):
    """Arguments one of which must be given."""

    threshold: Annotated[Positive32, Field(description="At least 1.")]


@pytest.fixture(scope="session")
def plugins() -> Mapping[str, PluginSpec]:
    deschedule, balance = frozenset({"deschedule"}), frozenset({"balance"})
    specs = (
        PluginSpec("Sweep", deschedule, SweepArguments),
        PluginSpec("Count", deschedule, CountArguments),
        PluginSpec("Level", balance, SweepArguments),
    )
    return {spec.name: spec for spec in specs}


Load = Callable[..., LoadedPolicy]
Refuse = Callable[..., list[Problem]]

_HEAD = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n"


@pytest.fixture(scope="session")
def load(plugins: Mapping[str, PluginSpec]) -> Load:
    """Load a text below the two lines of the head."""

    def loaded(
        text: str, *, head: str = _HEAD, corrections: Corrections | None = None
    ) -> LoadedPolicy:
        return load_policy(
            head + text, source="policy.yaml", plugins=plugins, corrections=corrections
        )

    return loaded


@pytest.fixture(scope="session")
def refuse(load: Load) -> Refuse:
    """Load a text that is refused, and return why."""

    def refused(text: str, **options: object) -> list[Problem]:
        with pytest.raises(PolicyError) as refusal:
            load(text, **options)
        return refusal.value.problems

    return refused
