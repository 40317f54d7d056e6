"""Namespaces whose Pods cannot be counted, since one of them cannot be read.

It may be anybody's and stand anywhere: strategies that compare numbers would take it for missing,
and evict others to make up for it.
"""

from __future__ import annotations

from reactive_descheduler.api.changes import Action, On
from reactive_descheduler.api.eviction import Rejection
from reactive_descheduler.framework.strategy import View


def uncounted(view: View, strategy: str, namespace: str) -> Rejection | None:
    """Return why nobody of the namespace is to go, if so; what would change that is noted."""
    wake = On(Action.POD_OPAQUE, ("Namespace", "", namespace))
    view.note(wake)
    unreadable = view.lister.unreadable(namespace)
    if not unreadable:
        return None
    reason = f"Pods of namespace {namespace} cannot be counted: {unreadable[0].name} is unreadable"
    return Rejection(strategy, reason, (wake,))
