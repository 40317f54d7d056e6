"""What changed on a Namespace."""

from __future__ import annotations

from collections.abc import Callable

from reactive_descheduler.api.changes import Action
from reactive_descheduler.api.surroundings import Namespace


def labels(old: Namespace | None, new: Namespace | None) -> Action:
    """Coming and going count: a selector matches no namespace that is not there."""
    if old and new and (old.labels, old.opaque) == (new.labels, new.opaque):
        return Action(0)
    return Action.NAMESPACE_LABELS


EXTRACTORS: tuple[Callable[[Namespace | None, Namespace | None], Action], ...] = (labels,)
