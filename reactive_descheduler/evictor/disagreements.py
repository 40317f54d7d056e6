"""How often the check before a request has fallen out otherwise than the evaluation before it.

That is ordinary where something changed in between. Where nothing did, the key would be evaluated,
offered and dropped for ever, at one moment of the clock: such a key waits, longer each time.

To find that a candidate is no longer offered takes a look through its whole key. Where a change
ended hundreds of them at once, the key would be looked through for each, on the way of evictions:
after some, the rest waits for the evaluation that was asked for.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from reactive_descheduler.api.changes import Key

_ORDINARY = 3
"""Drops one after the other, each of a new evaluation, before the key waits."""
_AT_ONCE = timedelta(seconds=1)
"""Drops further apart have to do with what happened in between."""
_FIRST, _LONGEST = timedelta(seconds=1), timedelta(seconds=60)
_REMEMBERED = 1000
_MOST_OF_ONE = 8
"""Drops one after the other of one evaluation, before the rest waits for the next."""


class _Dropped(NamedTuple):
    times: int
    last: datetime
    """When the key was dropped last, or would have been looked at again."""
    of_evaluation: int
    """Drops since the last evaluation: of one, many candidates may be dropped together."""


class Disagreements:
    def __init__(self) -> None:
        self._of_key: dict[Key, _Dropped] = {}

    def evaluated(self, key: Key) -> None:
        """The key was evaluated anew."""
        if (known := self._of_key.get(key)) is not None:
            self._of_key[key] = known._replace(of_evaluation=0)

    def sent(self, key: Key) -> None:
        """A candidate of the key has passed the check."""
        self._of_key.pop(key, None)

    def is_void(self, key: Key) -> bool:
        """Say whether nothing of the key is to be tried before it is evaluated anew."""
        known = self._of_key.get(key)
        return known is not None and known.of_evaluation >= _MOST_OF_ONE

    def dropped(self, key: Key, now: datetime) -> timedelta:
        """Note that a candidate of the key has not passed; return how long the key is to wait."""
        known = self._of_key.get(key)
        is_first = known is None or now - known.last > _AT_ONCE
        of_evaluation = 0 if known is None else known.of_evaluation
        times = 1 if known is None or is_first else known.times + (of_evaluation == 0)
        excess = times - _ORDINARY
        wait = min(_FIRST * 2 ** min(excess, 16), _LONGEST) if excess >= 0 else timedelta(0)
        if known is None and len(self._of_key) >= _REMEMBERED:
            del self._of_key[next(iter(self._of_key))]
        self._of_key[key] = _Dropped(times, now + wait, of_evaluation + 1)
        return wait
