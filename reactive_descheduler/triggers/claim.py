"""What changed on a PersistentVolumeClaim."""

from __future__ import annotations

from collections.abc import Callable

from reactive_descheduler.api.changes import Action
from reactive_descheduler.api.surroundings import PersistentVolumeClaim


def binding(old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> Action:
    """Coming and going count; so does all that a verdict reads of it."""
    if old and new and _read(old) == _read(new):
        return Action(0)
    return Action.CLAIM


def _read(claim: PersistentVolumeClaim) -> tuple[str, str, bool, str]:
    return (claim.storage_class, claim.volume, claim.deleted, claim.opaque)


EXTRACTORS: tuple[
    Callable[[PersistentVolumeClaim | None, PersistentVolumeClaim | None], Action], ...
] = (binding,)
