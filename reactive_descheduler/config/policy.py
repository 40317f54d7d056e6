"""Upstream's DeschedulerPolicy, `descheduler/v1alpha2`, as it stands in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field

from .args import Arguments, Int64, Listed, Unsigned
from .findings import Finding, close_match
from .reactive import ReactiveSettings

API_VERSION = "descheduler/v1alpha2"
KIND = "DeschedulerPolicy"
METRICS_SOURCES = ("KubernetesMetrics", "Prometheus")


class PluginConfig(Arguments):
    """Arguments of one plugin."""

    name: Annotated[str, Field(description="Name of the plugin.")] = ""
    args: dict[str, object] = Field(
        default_factory=dict, description="Its arguments; apiVersion and kind are ignored."
    )


class PluginSet(Arguments):
    """Plugins of one extension point."""

    enabled: Annotated[Listed[str], Field(description="Plugins, in the order they run.")] = ()
    disabled: Annotated[Listed[str], Field(description="Has no effect, as upstream.")] = ()


class Plugins(Arguments):
    """Which plugins run where."""

    deschedule: Annotated[
        PluginSet, Field(description="Strategies that judge each Pod by itself.")
    ] = PluginSet()
    balance: Annotated[
        PluginSet, Field(description="Strategies that compare nodes or domains; run second.")
    ] = PluginSet()
    filter: Annotated[
        PluginSet, Field(description="DefaultEvictor, which is added where it is missing.")
    ] = PluginSet()
    preevictionfilter: Annotated[
        PluginSet, Field(description="The same, just before the eviction.")
    ] = PluginSet()
    pre_eviction_filter: Annotated[
        PluginSet, Field(description="The same in another spelling, which upstream ignores.")
    ] = PluginSet()
    presort: Annotated[PluginSet, Field(description="Has no effect, as upstream.")] = PluginSet()
    sort: Annotated[PluginSet, Field(description="Has no effect, as upstream.")] = PluginSet()


class Profile(Arguments):
    """A set of plugins with arguments of their own."""

    name: Annotated[
        str, Field(description="Name in metrics and logs; may be empty or repeated.")
    ] = ""
    plugin_config: Annotated[
        Listed[PluginConfig],
        Field(description="Arguments; the first entry of a plugin counts, all are validated."),
    ] = ()
    plugins: Annotated[Plugins, Field(description="Which plugins run where.")] = Plugins()


class MetricsCollector(Arguments):
    """Old way to ask for the source KubernetesMetrics."""

    enabled: Annotated[bool, Field(description="Old: same as a provider KubernetesMetrics.")] = (
        False
    )


class SecretReference(Arguments):
    """Where the token of Prometheus is kept, under the key `prometheusAuthToken`."""

    namespace: Annotated[str, Field(description="Namespace of the Secret.")] = ""
    name: Annotated[str, Field(description="Name of the Secret.")] = ""


class AuthToken(Arguments):
    """How Prometheus is told who asks."""

    secret_reference: Annotated[
        SecretReference | None, Field(description="Secret with the key prometheusAuthToken.")
    ] = None


class Prometheus(Arguments):
    """A Prometheus server."""

    url: Annotated[str, Field(description="Where it is reached.")] = ""
    auth_token: Annotated[
        AuthToken | None, Field(description="Token sent along; by default the Pod's own.")
    ] = None


class MetricsProvider(Arguments):
    """A source of measured usage."""

    source: Annotated[str, Field(description="KubernetesMetrics or Prometheus.")] = ""
    prometheus: Annotated[
        Prometheus | None, Field(description="Needed with source Prometheus.")
    ] = None


class DeschedulerPolicy(Arguments):
    """The whole file."""

    api_version: Annotated[str, Field(description=f"{API_VERSION}.")] = ""
    kind: Annotated[str, Field(description=f"{KIND}.")] = ""
    profiles: Annotated[Listed[Profile], Field(description="Profiles, in the order they run.")] = ()
    node_selector: Annotated[
        str | None, Field(description="Selector of the nodes that are looked at; default all.")
    ] = None
    max_no_of_pods_to_evict_per_node: Annotated[
        Unsigned | None,
        Field(description="Evictions per node; 0 evicts none; default no limit."),
    ] = None
    max_no_of_pods_to_evict_per_namespace: Annotated[
        Unsigned | None,
        Field(description="Evictions per namespace; 0 evicts none; default no limit."),
    ] = None
    max_no_of_pods_to_evict_total: Annotated[
        Unsigned | None, Field(description="Evictions in all; 0 evicts none; default no limit.")
    ] = None
    eviction_failure_event_notification: Annotated[
        bool, Field(description="Tell of failed evictions by a Kubernetes Event on the Pod.")
    ] = False
    grace_period_seconds: Annotated[
        Int64 | None,
        Field(description="Grace period sent with each eviction, in seconds; default the Pod's."),
    ] = None
    metrics_collector: Annotated[
        MetricsCollector, Field(description="Old way to ask for measured usage.")
    ] = MetricsCollector()
    metrics_providers: Annotated[
        Listed[MetricsProvider], Field(description="Sources of measured usage.")
    ] = ()
    reactive: Annotated[
        ReactiveSettings, Field(description="Settings of our own; upstream ignores the key.")
    ] = ReactiveSettings()


def metrics_findings(policy: DeschedulerPolicy) -> Iterator[Finding]:
    """Say what is wrong with the sources of measured usage, but for unknown ones."""
    sources = [provider.source for provider in policy.metrics_providers]
    for index, provider in enumerate(policy.metrics_providers):
        path = ("metricsProviders", index)
        if provider.source in sources[:index]:
            yield Finding((*path, "source"), f"{provider.source} is configured twice")
        if provider.source == "KubernetesMetrics" and policy.metrics_collector.enabled:
            yield Finding(
                (*path, "source"),
                "KubernetesMetrics and metricsCollector.enabled exclude each other",
                "remove metricsCollector, the older of the two",
            )
        if provider.source == "Prometheus":
            for finding in _prometheus_findings(provider.prometheus):
                yield Finding((*path, *finding.path), finding.message, finding.hint)


def unknown_source_findings(policy: DeschedulerPolicy) -> Iterator[Finding]:
    """Name the sources of measured usage that mean nothing, which upstream ignores."""
    for index, provider in enumerate(policy.metrics_providers):
        if provider.source not in METRICS_SOURCES:
            yield Finding(
                ("metricsProviders", index, "source"),
                f"unknown source {provider.source!r}",
                close_match(provider.source, METRICS_SOURCES)
                or f"known are {' and '.join(METRICS_SOURCES)}",
            )


def _prometheus_findings(prometheus: Prometheus | None) -> Iterator[Finding]:
    if prometheus is None:
        yield Finding(("prometheus",), "is required with source Prometheus")
        return
    if not prometheus.url:
        yield Finding(("prometheus", "url"), "is required")
    elif not _is_url(prometheus.url):
        yield Finding(("prometheus", "url"), f"{prometheus.url!r} is no URL")
    if (token := prometheus.auth_token) is None:
        return
    path = ("prometheus", "authToken", "secretReference")
    if (secret := token.secret_reference) is None:
        yield Finding(path, "is required with authToken")
        return
    for key, value in (("namespace", secret.namespace), ("name", secret.name)):
        if not value:
            yield Finding((*path, key), "is required")


_NOT_IN_URLS = re.compile(r"[\x00-\x20\x7f]|%(?![0-9A-Fa-f]{2})|^:")


def _is_url(url: str) -> bool:
    """Whether Go would parse it, which takes much for a URL."""
    try:
        _ = urlsplit(url).port  # asks for what raises
    except ValueError:
        return False
    return _NOT_IN_URLS.search(url) is None
