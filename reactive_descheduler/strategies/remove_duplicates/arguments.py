"""What RemoveDuplicates takes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reactive_descheduler.config.args import Arguments, Listed, Namespaces


class DuplicatesArguments(Arguments):
    """Arguments of RemoveDuplicates."""

    namespaces: Annotated[
        Namespaces, Field(description="Namespaces whose Pods are looked at; none means all.")
    ] = Namespaces()
    exclude_owner_kinds: Annotated[
        Listed[str],
        Field(description="Pods with an owner of one of these kinds are not looked at."),
    ] = ()
