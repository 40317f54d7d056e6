"""How `plan --corrections diff` is told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from reactive_descheduler.cli.output import (
    TIME,
    counted,
    full_name,
    print_section,
    warn,
    with_camel_keys,
)

if TYPE_CHECKING:
    from reactive_descheduler.app.plan import FailedStrategy
    from reactive_descheduler.app.plan_diff import Comparison, DocumentDifference, PodDifference

_REFUSED_BY = {
    "ours": "We refuse this policy, which upstream reads",
    "upstream": "Upstream refuses this policy, which we read",
}


def as_data(comparison: Comparison) -> dict[str, object]:
    """Return it as plain data for JSON."""
    documents = [
        {**asdict(each), "problems": [problem._asdict() for problem in each.problems]}
        for each in comparison.documents
    ]
    return with_camel_keys({**asdict(comparison), "documents": documents})


def tell(source: str, comparison: Comparison) -> None:
    for message in comparison.warnings:
        warn(message)
    for document in comparison.documents:
        for line in _document(source, document):
            click.echo(line)
    click.echo(_headline(comparison))
    if comparison.deciding:
        print_section(
            "What decides",
            ("correction", "pods", "ours", "upstream"),
            (
                (each.correction, str(each.pods), each.ours, each.upstream)
                for each in comparison.deciding
            ),
        )
    if comparison.pods:
        print_section(
            "Pods that differ",
            ("pod", "node", "strategy", "ours", "upstream", "decided by", "why"),
            map(_row, comparison.pods),
        )
    _tell_failed("Strategies that failed", comparison.failed)
    if comparison.failed_upstream != comparison.failed:
        _tell_failed("Strategies that failed as upstream has them", comparison.failed_upstream)


def _document(source: str, document: DocumentDifference) -> Iterator[str]:
    """Say who does not read the policy and why; a line for each mistake."""
    yield f"{_REFUSED_BY[document.refused_by]}: {document.decided_by}. Compared as if both did."
    for problem in document.problems:
        yield f"  {problem.told(source)}"


def _headline(comparison: Comparison) -> str:
    only_ours, only_upstream = comparison.evicted_by_ours_only, comparison.evicted_by_upstream_only
    otherwise = len(comparison.pods) - only_ours - only_upstream
    parts = [
        f"{counted(comparison.evicted_by_both, 'Pod')} evicted by both",
        f"{only_ours} by ours only",
        f"{only_upstream} by upstream only",
    ]
    if otherwise:
        parts.append(f"{otherwise} with another difference")
    looked_at = f"{comparison.nodes_looked_at} of {counted(comparison.nodes, 'node')} looked at"
    return f"{', '.join(parts)}, at {comparison.time:{TIME}}; {looked_at}"


def _row(pod: PodDifference) -> tuple[str, ...]:
    return (
        full_name(pod.namespace, pod.name),
        pod.node,
        pod.strategy,
        _fate(pod.ours, pod.ours_times),
        _fate(pod.upstream, pod.upstream_times),
        _decided_by(pod),
        pod.why,
    )


def _fate(outcome: str, times: int) -> str:
    return f"{outcome}, asked for {times} times" if times > 1 else outcome


def _decided_by(pod: PodDifference) -> str:
    from reactive_descheduler.app.deciding import Manner

    match pod.manner:
        case Manner.ALONE:
            return pod.decided_by[0]
        case Manner.EACH if len(pod.decided_by) == 1:
            return f"{pod.decided_by[0]}, or others together"
        case Manner.EACH:
            return f"each of: {', '.join(pod.decided_by)}"
        case Manner.TOGETHER:
            return " with ".join(pod.decided_by)


def _tell_failed(title: str, failed: tuple[FailedStrategy, ...]) -> None:
    if failed:
        rows = ((each.profile, each.strategy, each.error) for each in failed)
        print_section(title, ("profile", "strategy", "error"), rows)
