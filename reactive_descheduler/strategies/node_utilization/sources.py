"""Where usage is read from: requests, metrics-server, or a Prometheus query (spec/strategies 4.9).

A source that cannot be used raises, and nothing is evicted: UsageError where the policy has to
change, NotMeasured where the next sample may mend it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from reactive_descheduler.api.changes import Action, At, On, Wakes
from reactive_descheduler.api.errors import UsageError
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.quantity import NANOS
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.usage import METRICS_SERVER, PROMETHEUS, Usage
from reactive_descheduler.framework.strategy import View

from .arguments import METRIC_RESOURCE, MetricsUtilization
from .sums import Amounts, NodeUse, Shares, capacity_of, shares_of

ALWAYS = ("cpu", "memory", "pods")
"""What counts beside the resources that have thresholds."""


class NotMeasured(UsageError):
    """Raised when samples are missing, partial, or too old."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.wakes: Wakes = (On(Action.USAGE, None),)


class Reading(Protocol):
    """One state of the usage of all nodes."""

    samples: int
    """How many samples in a row have to be over."""

    def of_node(self, node: Node, /) -> NodeUse: ...
    def of_pod(self, pod: Pod, /) -> Amounts | str | None:
        """Return what leaves with a Pod, or why that is not known. None: it is never known."""

    def left(self, node: Node, /) -> int:
        """Return how many Pods have begun to go since the node was measured, where what leaves with
        them is not known; else 0."""


class Source(Protocol):
    @property
    def names(self) -> Sequence[str]:
        """The resources that it counts."""

    def read(self, view: View, /) -> Reading:
        """Raise UsageError or NotMeasured where the usage of some node of the cycle is not
        known."""


def source_of(measured: MetricsUtilization | None, named: Collection[str]) -> Source:
    """Return what the arguments ask for. `named`: the resources that have thresholds."""
    if measured is None:
        return RequestSource(named)
    if measured.asked == METRICS_SERVER:
        return MetricsServerSource(named)
    if measured.asked == PROMETHEUS and measured.prometheus is not None:
        return PrometheusSource(measured.prometheus.query)
    return UnknownSource(measured.asked)


class RequestSource:
    """What Pods request; always known."""

    def __init__(self, named: Collection[str]) -> None:
        self.names: Sequence[str] = _counted(named)
        self._named = named

    def read(self, view: View, /) -> Reading:
        return _Requests(view.lister, self.names, self._named)


class _Requests:
    samples = 1

    def __init__(self, lister: Lister, names: Sequence[str], named: Collection[str]) -> None:
        self._lister = lister
        self._names = names
        self._named = named

    def of_node(self, node: Node, /) -> NodeUse:
        requests = self._lister.requests_on(node.name)
        used = {name: requests.get(name, 0) for name in self._names}
        unreadable = self._lister.unreadable_on(node.name)
        # Not even whether they have finished is known of these.
        used["pods"] = (self._lister.active_pods_on(node.name) - len(unreadable)) * NANOS
        return NodeUse(node, used, self._named, unreadable=next(iter(unreadable), None))

    def of_pod(self, pod: Pod, /) -> Amounts:
        requests = pod.template.requests
        return {name: requests.get(name, 0) for name in self._names} | {"pods": NANOS}

    def left(self, _node: Node, /) -> int:
        return 0


class MetricsServerSource:
    """What metrics-server measured: cpu and memory; Pods are counted."""

    def __init__(self, named: Collection[str]) -> None:
        self.names: Sequence[str] = _counted(named)
        self._named = named

    def read(self, view: View, /) -> Reading:
        usage = _configured(view, METRICS_SERVER)
        unknown = [name for name in self.names if name not in ALWAYS]
        if unknown:
            raise UsageError(f"metrics-server does not measure {unknown[0]}")
        taken = []
        for name in view.nodes:
            samples = usage.node(name)
            if not samples:
                raise NotMeasured(f"metrics-server has not measured node {name}")
            latest = samples[-1]
            if not {"cpu", "memory"} <= latest.usage.keys():
                raise NotMeasured(f"metrics-server measured only a part of node {name}")
            taken.append((min(latest.sampled, latest.received), f"node {name}"))
        _check_age(view, usage, taken)
        return _Measured(view, usage, self._named)


class _Measured:
    def __init__(self, view: View, usage: Usage, named: Collection[str]) -> None:
        self._view = view
        self._usage = usage
        self._named = named
        self.samples = usage.samples

    def of_node(self, node: Node, /) -> NodeUse:
        lister = self._view.lister
        gone = lister.gone_on(node.name)
        unreadable = lister.unreadable_on(node.name) if "pods" in self._named else ()
        pods = (lister.active_pods_on(node.name) - len(unreadable)) * NANOS
        found = [
            {
                "cpu": amounts.get("cpu", 0),
                "memory": amounts.get("memory", 0),
                "pods": pods,
            }
            for amounts in (
                self._usage.amounts(node.name, sample, gone)
                for sample in self._usage.node(node.name)
            )
        ]
        capacity = capacity_of(node, found[-1])
        before = [shares_of(used, capacity, self._named) for used in found[:-1]]
        first = next(iter(unreadable), None)
        return NodeUse(node, found[-1], self._named, before, unreadable=first)

    def of_pod(self, pod: Pod, /) -> Amounts | str:
        sample = self._usage.pod(pod)
        if sample is None or (pod.created is not None and sample.sampled < pod.created):
            return "metrics-server has not measured it"
        if self._view.now - min(sample.sampled, sample.received) >= self._usage.max_age:
            return "what metrics-server measured of it is too old"
        if not {"cpu", "memory"} <= sample.usage.keys():
            return "metrics-server measured only a part of it"
        return {"cpu": sample.usage["cpu"], "memory": sample.usage["memory"], "pods": NANOS}

    def left(self, _node: Node, /) -> int:
        return 0


class PrometheusSource:
    """What a query says of each node, as a share. What a Pod uses is not known."""

    def __init__(self, query: str) -> None:
        self.names: Sequence[str] = (METRIC_RESOURCE,)
        self._query = query

    def read(self, view: View, /) -> Reading:
        usage = _configured(view, PROMETHEUS)
        vectors = usage.vectors(self._query)
        if not vectors:
            raise NotMeasured("Prometheus has not answered the query")
        latest = vectors[-1]
        if latest.error:
            raise NotMeasured(f"Prometheus' answer cannot be used: {latest.error}")
        for instance, share in sorted(latest.values.items()):
            if not 0 <= share <= 1:
                raise NotMeasured(f"Prometheus tells {share} of {instance}, which is no share of 1")
        for name in view.nodes:
            if name not in latest.values:
                raise NotMeasured(f"Prometheus tells nothing of node {name}")
        _check_age(view, usage, [(min(latest.sampled, latest.received), "all nodes")])
        earlier = [each.values for each in vectors[:-1] if not each.error]
        return _Shares(view.lister, usage, latest.values, earlier, latest.sampled)


class _Shares:
    def __init__(
        self,
        lister: Lister,
        usage: Usage,
        latest: Mapping[str, float],
        earlier: list[Mapping[str, float]],
        sampled: datetime,
    ) -> None:
        self._lister = lister
        self._usage = usage
        self._latest = latest
        self._earlier = earlier
        self._sampled = sampled
        self.samples = usage.samples

    def of_node(self, node: Node, /) -> NodeUse:
        before: list[Shares] = [
            {METRIC_RESOURCE: float(math.trunc(values[node.name] * 100))}
            for values in self._earlier
            if node.name in values
        ]
        percent = math.trunc(self._latest[node.name] * 100)
        return NodeUse(node, {METRIC_RESOURCE: percent * NANOS}, (METRIC_RESOURCE,), before)

    def of_pod(self, _pod: Pod, /) -> None:
        return None

    def left(self, node: Node, /) -> int:
        gone = self._lister.gone_on(node.name)
        return self._usage.leaving(node.name, self._sampled, gone)


class UnknownSource:
    """A source that nobody knows, or none: upstream takes it and fails at every run."""

    def __init__(self, name: str) -> None:
        self.names: Sequence[str] = ()
        self._name = name

    def read(self, _view: View, /) -> Reading:
        raise UsageError(f"metricsUtilization.source {self._name!r} is not known")


def _counted(named: Collection[str]) -> Sequence[str]:
    return tuple(dict.fromkeys((*named, *ALWAYS)))


def _configured(view: View, source: str) -> Usage:
    usage = view.usage
    if usage is None or source not in usage.sources:
        raise UsageError(f"metricsProviders does not configure {source}")
    view.note(On(Action.USAGE, None))
    return usage


def _check_age(view: View, usage: Usage, taken: list[tuple[datetime, str]]) -> None:
    if not taken:
        return
    oldest, what = min(taken)
    age = view.now - oldest
    if age >= usage.max_age:
        raise NotMeasured(f"the usage of {what} was measured {age.total_seconds():.0f} s ago")
    view.note(At(oldest + usage.max_age))
