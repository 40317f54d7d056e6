"""What changed on a PersistentVolumeClaim."""

from __future__ import annotations

from collections.abc import Callable

from reactive_descheduler.api.changes import Action
from reactive_descheduler.api.surroundings import PersistentVolumeClaim


def storage_class(old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> Action:
    if old and new and (old.storage_class, old.opaque) == (new.storage_class, new.opaque):
        return Action(0)
    return Action.CLAIM


EXTRACTORS: tuple[
    Callable[[PersistentVolumeClaim | None, PersistentVolumeClaim | None], Action], ...
] = (storage_class,)
