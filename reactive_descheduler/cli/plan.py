"""`plan`: what one full pass would evict, over a cluster or a dump of one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from reactive_descheduler.cli.exit_codes import ExitCode
from reactive_descheduler.cli.group import Command, Option
from reactive_descheduler.cli.options import (
    TimeType,
    corrections_option,
    input_name,
    output_option,
    policy_input_option,
    read_input,
)
from reactive_descheduler.cli.output import print_json, print_table, warn, with_camel_keys

if TYPE_CHECKING:
    from reactive_descheduler.app.plan import Plan, PlannedPod
    from reactive_descheduler.app.snapshot import Snapshot
    from reactive_descheduler.config.corrections import Corrections
    from reactive_descheduler.config.loaded import LoadedPolicy

_TIME = "%Y-%m-%dT%H:%M:%SZ"


@click.command("plan", cls=Command)
@policy_input_option
@click.option(
    "--kubeconfig", "kubeconfig", cls=Option, metavar="FILE", help="Plan over this cluster."
)
@click.option(
    "--snapshot",
    cls=Option,
    metavar="DUMP",
    help="Plan over what `kubectl get nodes,pods,ns,pdb,pvc,pv,pc -A -o json` (or yaml) printed: a"
    " file, or - for standard input.",
)
@click.option(
    "--now",
    cls=Option,
    type=TimeType(),
    metavar="TIME",
    help="The time that ages are measured at, RFC 3339; default the present.",
)
@corrections_option
@output_option
def command(
    *,
    policy_config_file: str,
    kubeconfig: str | None,
    snapshot: str | None,
    now: datetime | None,
    corrections: Corrections | None,
    output: str,
) -> ExitCode:
    """Show what one full pass would evict, and why the rest stays. Nothing is changed.

    The cluster is the dump of --snapshot, that of --kubeconfig, or the one that $KUBECONFIG,
    ~/.kube/config or the Pod's own service account names.
    """
    from reactive_descheduler.app.plan import make_plan
    from reactive_descheduler.config.load import load_policy
    from reactive_descheduler.kit.clock import SystemClock
    from reactive_descheduler.strategies import PLUGINS

    _one_source(policy_config_file, kubeconfig, snapshot)
    _log_to_standard_error()
    policy = load_policy(
        read_input(policy_config_file),
        source=input_name(policy_config_file),
        plugins=PLUGINS,
        corrections=corrections,
    )
    for problem in policy.warnings:
        place = f"{policy.source}:{problem.line}" if problem.line else policy.source
        warn(f"{place}: {problem.path}: {problem.message}")
    cluster = _dump(policy, snapshot) if snapshot is not None else _cluster(policy, kubeconfig)
    plan = make_plan(policy, cluster, now=now or SystemClock().now())
    if output == "json":
        print_json({"policy": policy.source, **with_camel_keys(asdict(plan))})
    else:
        _tell(plan)
    return ExitCode.FAILURE if plan.failed else ExitCode.OK


def _one_source(policy: str, kubeconfig: str | None, snapshot: str | None) -> None:
    context = click.get_current_context()
    given = context.get_parameter_source("kubeconfig") is ParameterSource.COMMANDLINE
    if kubeconfig and snapshot and given:
        raise click.UsageError("--kubeconfig and --snapshot exclude each other")
    if policy == snapshot == "-":
        raise click.UsageError("only one of policy and dump can come from standard input")


def _log_to_standard_error() -> None:
    import sys

    from reactive_descheduler.kit.clock import SystemClock
    from reactive_descheduler.observability.logs import set_up

    set_up(stream=sys.stderr, clock=SystemClock())


def _dump(policy: LoadedPolicy, name: str) -> Snapshot:
    from reactive_descheduler.app.plan import check_dump
    from reactive_descheduler.app.snapshot import read_snapshot

    source = input_name(name)
    dump = read_snapshot(read_input(name), source=source)
    check_dump(policy, dump, source=source)
    return dump


def _cluster(policy: LoadedPolicy, kubeconfig: str | None) -> Snapshot:
    import anyio

    from reactive_descheduler.app.cluster_snapshot import read_cluster
    from reactive_descheduler.app.plan import kinds_to_read

    return anyio.run(read_cluster, kubeconfig, kinds_to_read(policy), policy)


def _tell(plan: Plan) -> None:
    for message in plan.warnings:
        warn(message)
    click.echo(_headline(plan))
    columns = ("pod", "node", "workload", "profile", "strategy", "cause", "reason")
    if plan.evictions:
        _section("Evictions, in their order", columns, map(_row, plan.evictions))
    if plan.observed:
        _section("Only observed", columns, map(_row, plan.observed))
    if plan.refused_by_budget:
        rows_refused = ((*_row(pod), pod.note) for pod in plan.refused_by_budget)
        _section("Refused by their budget", (*columns, "note"), rows_refused)
    if plan.held:
        rows_held = ((*_row(pod), pod.note) for pod in plan.held)
        _section("Held by a limit", (*columns, "note"), rows_held)
    if plan.refused:
        rows = (
            (_name(each.namespace, each.name), each.by, each.reason, "; or ".join(each.lifted_when))
            for each in plan.refused
        )
        _section("Misplaced, but they stay", ("pod", "by", "reason", "look again when"), rows)
    if plan.later:
        soonest = plan.later[0]
        click.echo()
        click.echo(
            f"Not due yet: {_count(len(plan.later), 'Pod')}; the first is"
            f" {_name(soonest.namespace, soonest.name)} ({soonest.strategy}) at"
            f" {soonest.due:{_TIME}}"
        )
    if plan.failed:
        rows_failed = ((each.profile, each.strategy, each.error) for each in plan.failed)
        _section("Strategies that failed", ("profile", "strategy", "error"), rows_failed)


def _headline(plan: Plan) -> str:
    parts = [f"{_count(len(plan.evictions), 'Pod')} would be evicted at {plan.time:{_TIME}}"]
    # Without oneOfferPerPass several strategies may ask for the same Pod.
    if refused := len({(pod.namespace, pod.name) for pod in plan.refused_by_budget}):
        parts.append(f"{refused} would be refused by {'its' if refused == 1 else 'their'} budget")
    parts.append(f"{plan.nodes_looked_at} of {_count(plan.nodes, 'node')} looked at")
    return "; ".join(parts)


def _section(title: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    click.echo()
    print_table(columns, rows, title=title)


def _row(pod: PlannedPod) -> tuple[str, ...]:
    return (
        _name(pod.namespace, pod.name),
        pod.node,
        pod.workload,
        pod.profile,
        pod.strategy,
        pod.cause,
        pod.reason,
    )


def _name(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if name else "-"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
