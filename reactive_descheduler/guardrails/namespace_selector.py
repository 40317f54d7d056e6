"""Pods in namespaces that the evictor's selector leaves out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from reactive_descheduler.api.changes import Action, On
from reactive_descheduler.api.eviction import Rejection
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.selectors import Selector, matches
from reactive_descheduler.framework.filter import Reading


class NamespaceSelector:
    """A namespace that is not there, or could not be read, matches nothing."""

    NAME: ClassVar[str] = "namespaceLabelSelector"

    def __init__(self, selector: Selector) -> None:
        self._selector = selector

    def check(self, pod: Pod, reading: Reading, /) -> Rejection | None:
        namespace = reading.lister.namespace(pod.namespace)
        if namespace is None:
            reason = f"namespace {pod.namespace} is not there"
        elif namespace.opaque:
            reason = f"namespace {pod.namespace} could not be read: {namespace.opaque}"
        elif matches(self._selector, namespace.labels):
            return None
        else:
            reason = f"labels of namespace {pod.namespace} do not match namespaceLabelSelector"
        return Rejection(self.NAME, reason, (_relabelled(pod),), pod.ref)

    def depends(self, pod: Pod, _reading: Reading, /) -> Iterable[On]:
        return (_relabelled(pod),)


def _relabelled(pod: Pod) -> On:
    return On(Action.NAMESPACE_LABELS, ("Namespace", "", pod.namespace))
