"""Every metric with its labels, in one place and in a registry of its own.

Names that the established descheduler publishes are kept with their labels and values, since
dashboards and alerts stand on them; the rest has the prefix `reactive_descheduler_`. The table in
`docs/metrics.md` is compared with this file by a test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The only format served: OpenMetrics cannot hold two counters of which one is named like the other
plus `_total`."""
SERIES_CAP = 10_000
"""Label sets of the eviction counter after which new ones have an empty node: thousands of
short-lived nodes would fill the memory here and in the monitoring system."""
OWN = "reactive_descheduler_"
_LOOP_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500)
_STRATEGY_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100)
_LATENCY_BUCKETS = (
    *(0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5),
    *(1, 2.5, 5, 10, 30, 60, 300, 1800),
)
"""From half a millisecond, the way through when nothing waits, to half an hour, a long settle time
or a full budget."""
_PAUSE_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1)


class Result(StrEnum):
    """Values of `result` of the eviction counter, exactly as upstream has them."""

    SUCCESS = "success"
    ERROR = "error"
    BACKGROUND = "background"
    TOTAL_LIMIT = "maximum number of evicted pods per a descheduling cycle reached"
    NODE_LIMIT = "maximum number of evicted pods per node reached"
    NAMESPACE_LIMIT = "maximum number of evicted pods per namespace reached"


class Family(NamedTuple):
    """One metric as documented."""

    name: str
    kind: str
    """`counter`, `gauge` or `histogram`."""
    labels: tuple[str, ...]
    help: str


class BuildInfo(NamedTuple):
    version: str
    python: str = ""
    git_branch: str = ""
    git_sha: str = ""


class Metrics:
    """All collectors, as public attributes; nothing is registered anywhere else.

    What is an amount at a moment (queues, tokens, ages) is best set by a callback given to
    `on_scrape`, which costs nothing while nobody looks.
    """

    def __init__(self, build: BuildInfo) -> None:
        # Each counter would be served twice, the second time as a date. The library has only a
        # switch for the process.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.families: list[Family] = []
        self._refreshers: list[Callable[[], None]] = []
        self._eviction_series: set[tuple[str, ...]] = set()
        self._add_upstream(build)
        self._add_latencies()
        self._add_decisions()
        self._add_queues()
        self._add_streams()
        self._add_usage()
        self._add_health()

    def on_scrape(self, refresh: Callable[[], None]) -> None:
        """Have `refresh`, which sets gauges, called in the event loop before each scrape."""
        self._refreshers.append(refresh)

    def refresh(self) -> None:
        """Set what is only set when somebody looks. In the event loop, before `render`."""
        for refresh in self._refreshers:
            refresh()

    def render(self) -> bytes:
        """Return all series of ours in the text format `CONTENT_TYPE`.

        Takes 0.2 s with as many series as there may be; safe in another thread.
        """
        text = generate_latest(self.registry)
        # The library names the type of a counter only where the name ends in _total.
        type_line = b"# TYPE descheduler_pods_evicted %s\n"
        return text.replace(type_line % b"untyped", type_line % b"counter")

    def count_eviction(
        self, result: Result, *, strategy: str, profile: str, namespace: str, node: str
    ) -> None:
        """Count one request, or one candidate that met a limit; see SERIES_CAP for the node."""
        labels: tuple[str, ...] = (result, strategy, profile, namespace, node)
        if labels not in self._eviction_series:
            if len(self._eviction_series) >= SERIES_CAP:
                labels = (*labels[:-1], "")
            self._eviction_series.add(labels)
        self.pods_evicted.labels(*labels).inc()

    # What follows is the table itself.

    def _add_upstream(self, build: BuildInfo) -> None:
        evicted = ("result", "strategy", "profile", "namespace", "node")
        self.pods_evicted = self._counter(
            "descheduler_pods_evicted_total", "Evicted Pods, by result.", evicted
        )
        self._twin(self.pods_evicted, "descheduler_pods_evicted", evicted)
        info = self._gauge(
            "descheduler_build_info",
            "Constant 1, labelled with the build.",
            ("GoVersion", "AppVersion", "DeschedulerVersion", "GitBranch", "GitSha1"),
        )
        # Dashboards read the label GoVersion as "what it runs on".
        info.labels(
            build.python, build.version, build.version, build.git_branch, build.git_sha
        ).set(1)
        self.loop_duration = self._histogram(
            "descheduler_loop_duration_seconds", "Time of one full pass.", (), _LOOP_BUCKETS
        )
        self._twin(self.loop_duration, "descheduler_descheduler_loop_duration_seconds", ())
        by = ("strategy", "profile")
        self.strategy_duration = self._histogram(
            "descheduler_strategy_duration_seconds",
            "Time of one run of a strategy: in the daemon of one key.",
            by,
            _STRATEGY_BUCKETS,
        )
        self._twin(self.strategy_duration, "descheduler_descheduler_strategy_duration_seconds", by)

    def _add_latencies(self) -> None:
        self.cause_to_verdict = self._histogram(
            OWN + "cause_to_verdict_seconds",
            "From seeing the change to the verdict on a candidate.",
            ("strategy",),
            _LATENCY_BUCKETS,
        )
        self.cause_to_request = self._histogram(
            OWN + "cause_to_request_seconds",
            "From seeing the change to sending the eviction request.",
            ("strategy",),
            _LATENCY_BUCKETS,
        )
        self.request_duration = self._histogram(
            OWN + "eviction_request_seconds",
            "From sending an eviction request to its answer.",
            ("answer",),
            _LATENCY_BUCKETS,
        )

    def _add_decisions(self) -> None:
        self.cluster_events = self._counter(
            OWN + "cluster_events_total", "Changed properties of objects, by action.", ("action",)
        )
        self.triggered_runs = self._counter(
            OWN + "triggered_runs_total",
            "Keys queued because of a cluster event.",
            ("action", "strategy"),
        )
        self.evaluations = self._counter(
            OWN + "evaluations_total",
            "Keys evaluated, by what came out of it.",
            ("strategy", "result"),
        )
        self.evaluate_errors = self._counter(
            OWN + "evaluate_errors_total",
            "Evaluations that raised; the key is tried again.",
            ("strategy",),
        )
        self.narrow_errors = self._counter(
            OWN + "narrow_errors_total",
            "Narrowings that raised; the key was evaluated all the same.",
            ("strategy",),
        )
        self.pods_looked_at = self._counter(
            OWN + "pods_looked_at_total", "Pods that strategies looked at.", ("strategy",)
        )
        self.rejections = self._counter(
            OWN + "rejections_total", "Candidates refused, by filter or gate.", ("filter",)
        )
        self.holds = self._counter(
            OWN + "holds_total", "Candidates told to wait, by gate.", ("gate",)
        )
        self.dropped = self._counter(
            OWN + "dropped_total",
            "Candidates no longer offered at the check before the request.",
            ("strategy",),
        )
        self.answers = self._counter(
            OWN + "answers_total", "Answers to eviction requests.", ("answer",)
        )
        self.dry_run_reports = self._counter(
            OWN + "dry_run_reports_total",
            "Evictions that a dry run would have asked for.",
            ("strategy",),
        )
        self.resync_findings = self._counter(
            OWN + "resync_findings_total",
            "Candidates that only a resync found. Must stay 0: a trigger is missing otherwise.",
            ("strategy",),
        )

    def _add_queues(self) -> None:
        self.queue_depth = self._gauge(OWN + "queue_depth", "Entries that wait.", ("queue",))
        self.queue_delay = self._histogram(
            OWN + "queue_delay_seconds",
            "How long after its due time an entry was taken up.",
            ("queue",),
            _LATENCY_BUCKETS,
        )
        self.parked_keys = self._gauge(
            OWN + "parked_keys", "Keys that wait for one of their wakes.", ()
        )
        self.remembered_candidates = self._gauge(
            OWN + "remembered_candidates", "Candidates in the eviction queue.", ()
        )
        self.held_candidates = self._gauge(
            OWN + "held_candidates", "Candidates that a gate holds now.", ("gate",)
        )
        self.bucket_tokens = self._gauge(OWN + "bucket_tokens", "Tokens in the bucket.", ())
        self.bucket_rate = self._gauge(
            OWN + "bucket_rate", "Evictions a second that the bucket allows now.", ()
        )
        self.lanes_in_flight = self._gauge(
            OWN + "lanes_in_flight", "Disruption budgets with a request in flight.", ()
        )

    def _add_streams(self) -> None:
        self.watch_age = self._gauge(
            OWN + "watch_age_seconds", "Seconds since the stream's last sign of life.", ("kind",)
        )
        self.watch_synced = self._gauge(
            OWN + "watch_synced", "1 once the first list is in the cache.", ("kind",)
        )
        self.relists = self._counter(OWN + "relists_total", "Lists, the first included.", ("kind",))
        self.watch_restarts = self._counter(
            OWN + "watch_restarts_total", "Watches opened after the first.", ("kind",)
        )
        self.watch_events = self._counter(
            OWN + "watch_events_total", "Watch events received, bookmarks included.", ("kind",)
        )
        self.opaque_objects = self._gauge(
            OWN + "opaque_objects", "Objects that cannot be read; their Pods stay.", ("kind",)
        )

    def _add_usage(self) -> None:
        by = ("source", "query")
        self.usage_age = self._gauge(
            OWN + "usage_age_seconds", "Age of the oldest sample in the last answer.", by
        )
        self.usage_errors = self._counter(
            OWN + "usage_errors_total", "Polls of measured usage that gave nothing to use.", by
        )

    def _add_health(self) -> None:
        self.loop_lag = self._histogram(
            OWN + "loop_lag_seconds", "How late the event loop is.", (), _PAUSE_BUCKETS
        )
        self.gc_pause = self._histogram(
            OWN + "gc_pause_seconds", "Garbage collections of our schedule.", (), _PAUSE_BUCKETS
        )
        self.clock_jumps = self._counter(
            OWN + "clock_jumps_total", "Times that the wall clock jumped.", ()
        )
        self.policy_reloads = self._counter(
            OWN + "policy_reloads_total",
            "Changes of the policy file that were put in force, or refused.",
            ("result",),
        )
        self.task_crashes = self._counter(
            OWN + "task_crashes_total", "Eternal tasks that ended or raised.", ("task",)
        )
        self.hook_errors = self._counter(
            OWN + "hook_errors_total", "Exceptions raised by a hook.", ("hook",)
        )

    def _counter(self, name: str, text: str, labels: Sequence[str]) -> Counter:
        self.families.append(Family(name, "counter", tuple(labels), text))
        return Counter(name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, labels: Sequence[str]) -> Gauge:
        self.families.append(Family(name, "gauge", tuple(labels), text))
        return Gauge(name, text, labels, registry=self.registry)

    def _histogram(
        self, name: str, text: str, labels: Sequence[str], buckets: Sequence[float]
    ) -> Histogram:
        self.families.append(Family(name, "histogram", tuple(labels), text))
        return Histogram(name, text, labels, buckets=buckets, registry=self.registry)

    def _twin(self, of: Counter | Histogram, name: str, labels: Sequence[str]) -> None:
        twin = _Twin(of, name)
        self.families.append(Family(name, twin.kind, tuple(labels), twin.text))
        self.registry.register(twin)


def render_process() -> bytes:
    """Return the usual series of any Python process in the same format. Reads /proc: not for the
    event loop."""
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    return generate_latest(registry)


class _Twin(Collector):
    """A metric's former name: the same samples read at each scrape, so the two are always equal."""

    def __init__(self, of: Counter | Histogram, name: str) -> None:
        self._of = of
        self._name = name
        (family,) = of.collect()
        self._prefix = family.name + ("_total" if family.type == "counter" else "")
        self.kind = family.type
        self.text = f"Former name of {self._prefix}."

    def collect(self) -> Iterable[Metric]:
        # "counter" would have the library append _total to the name.
        twin = Metric(self._name, self.text, "unknown" if self.kind == "counter" else self.kind)
        for family in self._of.collect():
            for sample in family.samples:
                name = self._name + sample.name.removeprefix(self._prefix)
                twin.samples.append(Sample(name, sample.labels, sample.value))
        yield twin
