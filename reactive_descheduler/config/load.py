"""Reads a policy file: all mistakes at once, each with its place; then defaults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from pydantic import ValidationError

from reactive_descheduler.api.errors import PolicyError, Problem

from .corrections import ALL, Correction, parse_corrections
from .findings import (
    Finding,
    Findings,
    brief,
    close_match,
    path_text,
    selector_findings,
    validation_findings,
    value_at,
)
from .loaded import LoadedPolicy, PluginSpec, PolicyLimits
from .places import places
from .policy import (
    API_VERSION,
    KIND,
    METRICS_SOURCES,
    DeschedulerPolicy,
    MetricsProvider,
    metrics_findings,
    unknown_source_findings,
)
from .profiles import EVICTOR, EVICTOR_SPEC, STRATEGY_POINTS, ProfileReader
from .yaml_lines import Document, UnreadableError, read_document

if TYPE_CHECKING:
    from .corrections import Corrections
    from .findings import Path

__all__ = ["LoadedPolicy", "PluginSpec", "load_policy"]


def load_policy(
    text: bytes | str,
    *,
    source: str,
    plugins: Mapping[str, PluginSpec],
    corrections: Corrections | None = None,
) -> LoadedPolicy:
    """Read, validate and complete a policy.

    Args:
        text: YAML or JSON; of several documents the first is read.
        source: the file as the user named it; for messages.
        plugins: every strategy there is, by name. DefaultEvictor need not be among them.
        corrections: from a flag; None takes them from `reactive.corrections`, else all.

    Raises:
        PolicyError: the file cannot be used; holds every mistake.
    """
    try:
        document = read_document(text)
    except UnreadableError as error:
        raise PolicyError(source, [Problem("", error.line, str(error), error.hint)]) from None
    if corrections is None:
        corrections = _raw_corrections(document)
    findings = Findings(strict=Correction.STRICT_DOCUMENTS in corrections)
    policy = _read(_body(document, findings), findings, plugins)
    findings.refuse(selector_findings(policy.node_selector or "", ("nodeSelector",)))
    findings.refuse(metrics_findings(policy))
    findings.refuse_if_strict(unknown_source_findings(policy))
    findings.refuse_if_strict(_doubtful(policy))
    findings.refuse(_unknown_strategies(policy, plugins))
    reader = ProfileReader(plugins, corrections, findings)
    profiles = tuple(
        reader.read(profile, ("profiles", index)) for index, profile in enumerate(policy.profiles)
    )
    findings.refuse_if_strict(document.duplicates)  # last, for what stands below is wrong besides
    if findings.errors:
        raise PolicyError(source, _problems(document, findings.errors))
    return LoadedPolicy(
        source=source,
        profiles=profiles,
        node_selector=policy.node_selector,
        limits=PolicyLimits(
            per_node=policy.max_no_of_pods_to_evict_per_node,
            per_namespace=policy.max_no_of_pods_to_evict_per_namespace,
            total=policy.max_no_of_pods_to_evict_total,
        ),
        grace_period_seconds=policy.grace_period_seconds,
        failure_events=policy.eviction_failure_event_notification,
        metrics_providers=tuple(_metrics_providers(policy)),
        reactive=policy.reactive,
        corrections=corrections,
        warnings=tuple(_problems(document, findings.warnings)),
        places=places(document),
    )


def _problems(document: Document, findings: Iterable[Finding]) -> list[Problem]:
    problems = [
        Problem(path_text(found.path), document.line(found.path), found.message, found.hint)
        for found in findings
    ]
    return sorted(problems, key=lambda problem: problem.line or 0)


def _raw_corrections(document: Document) -> Corrections:
    """Read the setting that says how strictly the rest is read; a wrong one is refused there."""
    match document.data:
        case {"reactive": {"corrections": setting}} if setting is not None:
            try:
                return parse_corrections(setting)
            except ValueError:
                return ALL
    return ALL


def _body(document: Document, findings: Findings) -> dict[str, object]:
    """Return what counts of the document, having looked at its envelope."""
    data = document.data
    if data is None:
        findings.refuse_if_strict([Finding((), "the policy is empty", _START)])
        return {}
    if not isinstance(data, dict):
        findings.refuse([Finding((), f"a policy is a mapping, not {brief(data)}", _START)])
        return {}
    version, kind = data.get("apiVersion"), data.get("kind")
    if version in (None, ""):
        message = "is required; without it upstream reads the policy as empty"
        findings.refuse_if_strict([Finding(("apiVersion",), message, _START)])
        # What upstream does not read, lenient reading must not act on; `reactive` is ours.
        kept = data if findings.strict else {k: data[k] for k in ("reactive",) if k in data}
        return dict(kept)
    if version != API_VERSION:
        message = f"must be {API_VERSION}, not {brief(version)}"
        hint = "v1alpha1 has to be converted by hand" if version == "descheduler/v1alpha1" else ""
        findings.refuse([Finding(("apiVersion",), message, hint)])
    if kind not in (None, "", KIND):
        findings.refuse([Finding(("kind",), f"must be {KIND}, not {brief(kind)}")])
    return dict(data)


_START = f"a policy starts with `apiVersion: {API_VERSION}` and `kind: {KIND}`"


def _read(
    data: dict[str, object], findings: Findings, plugins: Mapping[str, PluginSpec]
) -> DeschedulerPolicy:
    """Read the document, taking out what is wrong so that the rest is looked at too."""
    while True:
        try:
            return DeschedulerPolicy.read(data)
        except ValidationError as error:
            found = [
                _beside_args(finding, data, plugins)
                for finding in validation_findings(error, DeschedulerPolicy, data)
            ]
        findings.refuse(finding for finding in found if not finding.unknown_key)
        findings.refuse_if_strict(finding for finding in found if finding.unknown_key)
        for finding in found:
            _take_out(data, finding.path)


def _beside_args(
    finding: Finding, data: Mapping[str, object], plugins: Mapping[str, PluginSpec]
) -> Finding:
    """Say of a plugin's argument that stands beside `args` where it belongs."""
    match finding.path:
        case ("profiles", int(), "pluginConfig", int(), str(key)) if finding.unknown_key:
            entry = cast(Mapping[str, object], value_at(data, finding.path[:-1]))
            spec = {**plugins, EVICTOR: EVICTOR_SPEC}.get(str(entry.get("name")))
            known = spec.arguments.model_fields.values() if spec else ()
            if any(field.alias == key for field in known):
                return replace(finding, hint="it belongs into args")
    return finding


def _take_out(data: dict[str, object], path: Path) -> None:
    """Remove the value at `path`, or the nearest around it, such that other paths stay true."""
    holder: object = data
    where: list[tuple[object, str | int]] = []
    for part in path:
        if isinstance(holder, dict | list):
            try:
                inside = holder[cast(int, part)]
            except (LookupError, TypeError):
                continue
            where.append((holder, part))
            holder = inside
    for parent, key in reversed(where):
        if isinstance(parent, dict):
            del parent[key]
            return
        # An item of a list leaves something of the right type in its place, found by trying.
        items, index = cast(list[object], parent), cast(int, key)
        if items[index] != "":
            items[index] = "" if items[index] == {} else {}
            return
    data.clear()


def _doubtful(policy: DeschedulerPolicy) -> Iterator[Finding]:
    """Name values that upstream takes without a look and that then fail at every use."""
    if policy.grace_period_seconds is not None and policy.grace_period_seconds < 0:
        message = "must not be negative: the API server refuses such evictions"
        yield Finding(("gracePeriodSeconds",), message)


def _unknown_strategies(
    policy: DeschedulerPolicy, plugins: Mapping[str, PluginSpec]
) -> Iterator[Finding]:
    strategies = [name for name, spec in plugins.items() if spec.extension_points & STRATEGY_POINTS]
    for name in policy.reactive.strategies:
        if name not in strategies:
            path = ("reactive", "strategies", name)
            yield Finding(path, f"unknown strategy {name!r}", close_match(name, strategies))


def _metrics_providers(policy: DeschedulerPolicy) -> Iterator[MetricsProvider]:
    if policy.metrics_collector.enabled:
        yield MetricsProvider(source="KubernetesMetrics")
    for provider in policy.metrics_providers:
        if provider.source in METRICS_SOURCES:
            yield provider
