"""`plan`: what one full pass would evict, over a cluster or a dump of one."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

import click
from click.core import ParameterSource

from reactive_descheduler.cli.exit_codes import ExitCode
from reactive_descheduler.cli.group import Command, Option
from reactive_descheduler.cli.options import (
    DIFF,
    TimeType,
    compared_corrections_option,
    input_name,
    output_option,
    policy_input_option,
    read_input,
)
from reactive_descheduler.cli.output import (
    TIME,
    counted,
    full_name,
    print_json,
    print_section,
    warn,
    with_camel_keys,
)

if TYPE_CHECKING:
    from reactive_descheduler.app.plan import Plan, PlannedPod
    from reactive_descheduler.app.snapshot import Snapshot
    from reactive_descheduler.config.corrections import Corrections
    from reactive_descheduler.config.loaded import LoadedPolicy


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
@compared_corrections_option
@output_option
def command(
    *,
    policy_config_file: str,
    kubeconfig: str | None,
    snapshot: str | None,
    now: datetime | None,
    corrections: Corrections | Literal["diff"] | None,
    output: str,
) -> ExitCode:
    """Show what one full pass would evict, and why the rest stays. Nothing is changed.

    With --corrections diff: what upstream would do differently.

    The cluster is the dump of --snapshot, that of --kubeconfig, or the one that $KUBECONFIG,
    ~/.kube/config or the Pod's own service account names.
    """
    from reactive_descheduler.kit.clock import SystemClock

    _one_source(policy_config_file, kubeconfig, snapshot)
    _log_to_standard_error()
    asked = _Asked(
        read_input(policy_config_file),
        input_name(policy_config_file),
        kubeconfig,
        snapshot,
        now or SystemClock().now(),
        as_json=output == "json",
    )
    return _compare(asked) if corrections == DIFF else _plan(asked, corrections)


class _Asked(NamedTuple):
    policy: bytes
    source: str
    kubeconfig: str | None
    dump: str | None
    """Goes before the kubeconfig."""
    now: datetime
    as_json: bool

    def cluster(self, policy: LoadedPolicy) -> Snapshot:
        """Read what this policy asks for."""
        return _dump(policy, self.dump) if self.dump else _cluster(policy, self.kubeconfig)


def _plan(asked: _Asked, corrections: Corrections | None) -> ExitCode:
    from reactive_descheduler.app.plan import make_plan
    from reactive_descheduler.config.load import load_policy
    from reactive_descheduler.strategies import PLUGINS

    policy = load_policy(
        asked.policy, source=asked.source, plugins=PLUGINS, corrections=corrections
    )
    _warn_of(policy)
    plan = make_plan(policy, asked.cluster(policy), now=asked.now)
    if asked.as_json:
        print_json({"policy": policy.source, **with_camel_keys(asdict(plan))})
    else:
        _tell(plan)
    return ExitCode.FAILURE if plan.failed else ExitCode.OK


def _compare(asked: _Asked) -> ExitCode:
    from reactive_descheduler.app.plan_diff import compare, read_both_ways, widest
    from reactive_descheduler.cli.plan_diff import as_data, tell

    reading = read_both_ways(asked.policy, source=asked.source)
    _warn_of(reading.policy)
    comparison = compare(reading, asked.cluster(widest(reading.policy)), now=asked.now)
    if asked.as_json:
        print_json({"policy": asked.source, **as_data(comparison)})
    else:
        tell(asked.source, comparison)
    return ExitCode.FAILURE if comparison.failed else ExitCode.OK


def _warn_of(policy: LoadedPolicy) -> None:
    for problem in policy.warnings:
        warn(problem.told(policy.source))


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
        print_section("Evictions, in their order", columns, map(_row, plan.evictions))
    if plan.observed:
        print_section("Only observed", columns, map(_row, plan.observed))
    if plan.refused_by_budget:
        rows_refused = ((*_row(pod), pod.note) for pod in plan.refused_by_budget)
        print_section("Refused by their budget", (*columns, "note"), rows_refused)
    if plan.held:
        rows_held = ((*_row(pod), pod.note) for pod in plan.held)
        print_section("Held by a limit", (*columns, "note"), rows_held)
    if plan.refused:
        rows = (
            (
                full_name(each.namespace, each.name),
                each.by,
                each.reason,
                "; or ".join(each.lifted_when),
            )
            for each in plan.refused
        )
        print_section("Misplaced, but they stay", ("pod", "by", "reason", "look again when"), rows)
    if plan.later:
        soonest = plan.later[0]
        click.echo()
        click.echo(
            f"Not due yet: {counted(len(plan.later), 'Pod')}; the first is"
            f" {full_name(soonest.namespace, soonest.name)} ({soonest.strategy}) at"
            f" {soonest.due:{TIME}}"
        )
    if plan.failed:
        rows_failed = ((each.profile, each.strategy, each.error) for each in plan.failed)
        print_section("Strategies that failed", ("profile", "strategy", "error"), rows_failed)


def _headline(plan: Plan) -> str:
    parts = [f"{counted(len(plan.evictions), 'Pod')} would be evicted at {plan.time:{TIME}}"]
    # Without oneOfferPerPass several strategies may ask for the same Pod.
    if refused := len({(pod.namespace, pod.name) for pod in plan.refused_by_budget}):
        parts.append(f"{refused} would be refused by {'its' if refused == 1 else 'their'} budget")
    parts.append(f"{plan.nodes_looked_at} of {counted(plan.nodes, 'node')} looked at")
    return "; ".join(parts)


def _row(pod: PlannedPod) -> tuple[str, ...]:
    return (
        full_name(pod.namespace, pod.name),
        pod.node,
        pod.workload,
        pod.profile,
        pod.strategy,
        pod.cause,
        pod.reason,
    )
