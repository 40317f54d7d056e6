"""What is remembered of each key: its last evaluation, filed under what would change it.

A key that yielded nothing and waits for nothing is not here: it stands for "nothing".
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple, TypeVar

from reactive_descheduler.api.changes import Action, At, Key, On, Wake
from reactive_descheduler.api.eviction import Candidate, Rejection
from reactive_descheduler.api.meta import Ref
from reactive_descheduler.api.pod import Shape


class Evaluated(NamedTuple):
    """One evaluation: who was offered, in order, who was refused and why, and what wakes the
    key."""

    offered: tuple[Candidate, ...] = ()
    rejected: tuple[Rejection, ...] = ()
    wakes: tuple[Wake, ...] = ()

    @property
    def nothing(self) -> bool:
        return not self.offered and not self.rejected

    @property
    def due(self) -> datetime | None:
        """Return the first time at which it wants to be looked at again."""
        return min((wake.time for wake in self.wakes if isinstance(wake, At)), default=None)


class Statistics(NamedTuple):
    keys: int
    offering: int
    """Keys with a candidate."""
    parked: int
    """Keys with a rejection."""


class _Waiting(dict[Key, Action]):
    """Keys, and what each of them waits for."""

    actions = Action(0)
    """What any of them waits for, or did: most events are not among it."""

    def add(self, key: Key, action: Action) -> None:
        before = self.get(key)
        # Flags are slow to join, and there may be tens of thousands of wakes; mostly one key waits.
        self[key] = action if before is None or before is action else before | action
        if self.actions is not action:
            self.actions |= action

    def listening(self, actions: Action) -> Iterator[Key]:
        if self.actions & actions:
            yield from (key for key, mask in tuple(self.items()) if mask & actions)


class Parking(Mapping[Key, Evaluated]):
    def __init__(self) -> None:
        self._of_key: dict[Key, Evaluated] = {}
        self._on_object: dict[Ref, _Waiting] = {}
        self._on_any: dict[Shape | None, _Waiting] = {}
        self._offering = self._parked = 0

    def remember(self, key: Key, evaluated: Evaluated) -> None:
        """Let this be what the key came to last."""
        self.forget(key)
        if evaluated.nothing and not evaluated.wakes:
            return
        self._of_key[key] = evaluated
        self._offering += bool(evaluated.offered)
        self._parked += bool(evaluated.rejected)
        for wake in evaluated.wakes:
            if not isinstance(wake, On):
                continue
            if wake.ref is None or wake.shape is not None:
                waiting = self._on_any.setdefault(wake.shape, _Waiting())
            else:
                waiting = self._on_object.setdefault(wake.ref, _Waiting())
            waiting.add(key, wake.action)

    def forget(self, key: Key) -> None:
        evaluated = self._of_key.pop(key, None)
        if evaluated is None:
            return
        self._offering -= bool(evaluated.offered)
        self._parked -= bool(evaluated.rejected)
        for wake in evaluated.wakes:
            if not isinstance(wake, On):
                continue
            if wake.ref is None or wake.shape is not None:
                _take_out(self._on_any, wake.shape, key)
            else:
                _take_out(self._on_object, wake.ref, key)

    def woken(
        self, actions: Action, refs: Iterable[Ref], fits: Callable[[Shape], bool]
    ) -> Iterator[Key]:
        """Yield the keys that wait for one of these actions on one of these objects.

        `fits` is asked once for each shape: whether a Pod of it fits the changed node now. There
        may be a hundred thousand keys, and what is parked may change while they are taken; one may
        come more than once.
        """
        for ref in refs:
            if (waiting := self._on_object.get(ref)) is not None:
                yield from waiting.listening(actions)
        for shape, waiting in tuple(self._on_any.items()):
            if waiting.actions & actions and (shape is None or fits(shape)):
                yield from waiting.listening(actions)

    def statistics(self) -> Statistics:
        return Statistics(len(self._of_key), self._offering, self._parked)

    def items(self) -> ItemsView[Key, Evaluated]:
        """Return all keys with what they came to; far quicker than one look-up after the other."""
        return self._of_key.items()

    def __getitem__(self, key: Key) -> Evaluated:
        return self._of_key[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._of_key)

    def __len__(self) -> int:
        return len(self._of_key)


_Name = TypeVar("_Name", Ref, Shape | None)


def _take_out(index: dict[_Name, _Waiting], name: _Name, key: Key) -> None:
    keys = index.get(name)
    if keys is not None:
        keys.pop(key, None)
        if not keys:
            del index[name]
