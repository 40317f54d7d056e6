"""What a reflector reads from, and what it hands on to."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import NamedTuple, Protocol

from reactive_descheduler.api.changes import WatchEvent
from reactive_descheduler.api.meta import KubeObject


class Page(NamedTuple):
    """Part of a list. Only the version of the last page counts: it is where the watch begins."""

    items: Sequence[KubeObject]
    resource_version: str
    gone: Sequence[KubeObject] = ()
    """What earlier pages listed, and what was deleted since (after `items`): a streaming list
    tells what happens while it is sent."""


class ListerWatcher(Protocol):
    """How one resource is read. Both raise the ClientErrors of `api.errors`."""

    @property
    def kind(self) -> str: ...

    def pages(self) -> AsyncGenerator[Page, None]:
        """Yield the pages of one consistent list."""

    def watch(
        self, resource_version: str, *, timeout_seconds: int
    ) -> AsyncGenerator[Sequence[WatchEvent], None]:
        """Yield what came after `resource_version`, as it comes.

        The first block is empty and says that the server accepted; later empty blocks are bytes
        that made no whole event yet. It ends when the server ends the watch.
        """


class Sink(Protocol):
    """Who takes the objects: the informer."""

    def replace(
        self, kind: str, objects: Iterable[KubeObject], resource_version: str
    ) -> Iterable[object]:
        """Take in a whole list, a step each time the answer is asked for the next."""

    def apply(self, event: WatchEvent) -> object: ...
