"""Arguments of LowNodeUtilization and HighNodeUtilization."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from reactive_descheduler.cache.usage import METRICS_SERVER, PROMETHEUS
from reactive_descheduler.config.args import Arguments, Int64, Listed, Namespaces, Unsigned
from reactive_descheduler.framework.pod_strategy import one_of

METRIC_RESOURCE = "MetricResource"
"""The name under which thresholds stand for what a Prometheus query tells."""
ONLY_THRESHOLDING = "OnlyThresholdingResources"

Percentage = Annotated[float, Field(ge=0, le=100)]


def _not_empty(thresholds: Mapping[str, float]) -> Mapping[str, float]:
    if not thresholds:
        raise ValueError("must name at least one resource")
    return thresholds


def _only_excludes(namespaces: Namespaces) -> Namespaces:
    if namespaces.include:
        raise ValueError("include is not supported in evictableNamespaces, only exclude")
    return namespaces


Thresholds = Annotated[dict[str, Percentage], AfterValidator(_not_empty)]
"""Percentages from 0 to 100 by resource name, at least one."""
EvictableNamespaces = Annotated[Namespaces, AfterValidator(_only_excludes)]


class UtilizationArguments(Arguments):
    """What both strategies take."""

    thresholds: Annotated[
        Thresholds,
        Field(
            description="Percent of a node, by resource, up to which it is underutilized; all of"
            " them must hold."
        ),
    ]
    number_of_nodes: Annotated[
        Int64, Field(description="Acts only if more nodes than this are underutilized.")
    ] = 0
    evictable_namespaces: Annotated[
        EvictableNamespaces,
        Field(description="Namespaces whose Pods stay, under exclude; they count all the same."),
    ] = Namespaces()


class PrometheusQuery(Arguments):
    """What is asked of Prometheus."""

    query: Annotated[
        str,
        Field(description="Instant query: a vector of shares from 0 to 1, by the label instance."),
    ] = ""


class MetricsUtilization(Arguments):
    """Where measured usage comes from; what no source is named in fails every run."""

    metrics_server: Annotated[bool, Field(description="Old: same as source KubernetesMetrics.")] = (
        False
    )
    source: Annotated[str, Field(description="KubernetesMetrics or Prometheus.")] = ""
    prometheus: Annotated[
        PrometheusQuery | None, Field(description="Needed with source Prometheus.")
    ] = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.source == METRICS_SERVER:
            if self.metrics_server:
                raise ValueError(f"metricsServer and source {METRICS_SERVER} exclude each other")
            if self.prometheus is not None:
                raise ValueError(f"prometheus must not be set with source {METRICS_SERVER}")
        if self.source == PROMETHEUS and not (self.prometheus and self.prometheus.query):
            raise ValueError(f"prometheus.query is required with source {PROMETHEUS}")
        return self

    @property
    def asked(self) -> str:
        """Return the source that is meant."""
        return METRICS_SERVER if self.metrics_server else self.source


class EvictionLimits(Arguments):
    """Bounds of one run."""

    node: Annotated[
        Unsigned | None,
        Field(description="Evictions from each node in one run; 0 evicts none; default no limit."),
    ] = None


class LowNodeUtilizationArguments(UtilizationArguments):
    """Arguments of LowNodeUtilization."""

    target_thresholds: Annotated[
        Thresholds,
        Field(
            description="Percent of a node, by the same resources, above which it is overutilized;"
            " one of them is enough."
        ),
    ]
    use_deviation_thresholds: Annotated[
        bool,
        Field(description="Read both as distances below and above the mean of all nodes."),
    ] = False
    metrics_utilization: Annotated[
        MetricsUtilization | None,
        Field(description="Use measured usage in place of requests."),
    ] = None
    eviction_limits: Annotated[EvictionLimits, Field(description="Bounds of one run.")] = (
        EvictionLimits()
    )

    @model_validator(mode="after")
    def _agree(self) -> Self:
        low, high = self.thresholds, self.target_thresholds
        if low.keys() != high.keys():
            raise ValueError("thresholds and targetThresholds must name the same resources")
        above = [name for name in sorted(low) if low[name] > high[name]]
        if above and not self.use_deviation_thresholds:
            raise ValueError(f"thresholds.{above[0]} must not be above targetThresholds.{above[0]}")
        measured = self.metrics_utilization
        if measured is not None and measured.asked == PROMETHEUS and set(low) != {METRIC_RESOURCE}:
            raise ValueError(
                f"thresholds and targetThresholds must name {METRIC_RESOURCE} alone with source"
                f" {PROMETHEUS}"
            )
        return self


class HighNodeUtilizationArguments(UtilizationArguments):
    """Arguments of HighNodeUtilization."""

    eviction_modes: Annotated[
        Listed[Annotated[str, AfterValidator(one_of(frozenset({ONLY_THRESHOLDING})))]],
        Field(
            description="OnlyThresholdingResources: only Pods go that request a resource that has"
            " a threshold."
        ),
    ] = ()
