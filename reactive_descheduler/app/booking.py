"""Booking within one pass: what is taken has room promised to it, on which no other counts then."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from reactive_descheduler.api.eviction import Candidate, Rejection
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.promised import PromisedPods
from reactive_descheduler.config.corrections import Correction
from reactive_descheduler.config.loaded import LoadedPolicy
from reactive_descheduler.framework.filter import Reading
from reactive_descheduler.framework.fitting import fit_rules
from reactive_descheduler.framework.profile import Profile
from reactive_descheduler.framework.rooms import Rooms


def rooms_of(policy: LoadedPolicy) -> Rooms | None:
    """Return where room is looked for to be promised; None without the correction `booking`."""
    if Correction.BOOKING not in policy.corrections:
        return None
    return Rooms(policy.profiles, fit_rules(policy.corrections))


class PassBooking:
    """`lister`: the state less what the pass took, with what is promised here."""

    def __init__(
        self,
        rooms: Rooms | None,
        profiles: Sequence[Profile],
        *,
        promised: PromisedPods,
        lister: Lister,
        now: datetime,
    ) -> None:
        self._rooms = rooms
        self._profiles = profiles
        self._promised = promised
        self._reading = Reading(lister, now)

    def refuses(self, candidate: Candidate) -> Rejection | None:
        """Ask node fit again: a strategy may have listed the candidate before others were taken."""
        if self._rooms is None or not self._promised:
            return None
        if self._rooms.of(candidate, self._reading.lister) is not None:
            return None
        evictor = self._profiles[candidate.key.profile].evictor
        return evictor.pre_eviction(candidate.pod, self._reading)

    def promise(self, candidate: Candidate) -> None:
        """Promise room to a candidate that is taken, if a node would take it."""
        if self._rooms is None:
            return
        node = self._rooms.of(candidate, self._reading.lister)
        if node is not None:
            self._promised.promise(candidate.pod, node.name)
