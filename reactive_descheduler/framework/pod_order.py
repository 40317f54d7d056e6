"""The order in which Pods go where some must: the least important first (spec/strategies 2.7)."""

from __future__ import annotations

from collections.abc import Iterable

from reactive_descheduler.api.pod import PREFER_NO_EVICTION_ANNOTATION, Pod

_QOS = {"BestEffort": 0, "Burstable": 1, "Guaranteed": 2}


def low_priority_first(pods: Iterable[Pod]) -> list[Pod]:
    """Return Pods without a priority first, then by priority, QoS class, and the annotation
    `prefer-no-eviction`; Pods that are alike stay in the order in which they came."""
    return sorted(pods, key=importance)


def importance(pod: Pod) -> tuple[bool, int, int, bool]:
    priority = pod.template.priority
    return (
        priority is not None,
        priority or 0,
        _QOS.get(pod.qos, len(_QOS)),
        PREFER_NO_EVICTION_ANNOTATION in pod.annotations,
    )
