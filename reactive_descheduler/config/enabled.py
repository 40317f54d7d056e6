"""What a policy enables, and where that stands in the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .args import Arguments
    from .loaded import LoadedPlugin, LoadedPolicy, LoadedProfile


def numbered(policy: LoadedPolicy) -> Iterator[tuple[str, LoadedProfile]]:
    for index, profile in enumerate(policy.profiles):
        yield f"profiles[{index}]", profile


def plugins_of(profile: LoadedProfile) -> tuple[LoadedPlugin, ...]:
    return (*profile.deschedule, *profile.balance)


def each_once(path: str, profile: LoadedProfile) -> Iterator[tuple[str, LoadedPlugin]]:
    """Yield the strategies of the profile at `path`, each with its own path."""
    for name, plugin in {each.name: each for each in plugins_of(profile)}.items():
        yield f"{path}.{name}", plugin


def all_plugins(policy: LoadedPolicy) -> Iterator[tuple[str, LoadedPlugin]]:
    for path, profile in numbered(policy):
        yield from each_once(path, profile)


def argument(arguments: Arguments, field: str) -> object:
    """Return an argument that only some strategies have; this layer does not know their classes."""
    return getattr(arguments, field, None)
