"""What changed on a PersistentVolume."""

from __future__ import annotations

from collections.abc import Callable

from reactive_descheduler.api.changes import Action
from reactive_descheduler.api.surroundings import PersistentVolume


def reach(old: PersistentVolume | None, new: PersistentVolume | None) -> Action:
    """Coming and going count: a volume that is not known counts as out of reach."""
    if old and new and _read(old) == _read(new):
        return Action(0)
    return Action.VOLUME


def _read(volume: PersistentVolume) -> tuple[object, ...]:
    return (volume.affinity, volume.places, volume.opaque)


EXTRACTORS: tuple[Callable[[PersistentVolume | None, PersistentVolume | None], Action], ...] = (
    reach,
)
