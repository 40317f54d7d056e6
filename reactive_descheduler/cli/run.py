"""`run`: the descheduler itself, with upstream's flags."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from reactive_descheduler.cli.exit_codes import ExitCode
from reactive_descheduler.cli.group import Command, Option, switch, variable
from reactive_descheduler.cli.options import (
    corrections_option,
    feature_gates_option,
    policy_file_option,
)

if TYPE_CHECKING:
    from reactive_descheduler.app.pass_driver import PassReport
    from reactive_descheduler.config.corrections import Corrections
    from reactive_descheduler.config.feature_gates import FeatureGates


class DurationType(click.ParamType[timedelta]):
    """A duration as Go writes it; not negative."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        from reactive_descheduler.config.durations import parse_duration

        try:
            found = parse_duration(str(value))
        except ValueError as error:
            self.fail(f"{error}, such as 90s, 5m or 1h30m", param, ctx)
        if found < timedelta():
            self.fail("must not be negative", param, ctx)
        return found


_USUAL_REFUSALS = frozenset({404, 409, 429})
"""The Pod was gone, or another of its name was there, or its budget was used up."""
_ELECTION_DETAILS = (
    "--leader-elect-lease-duration",
    "--leader-elect-renew-deadline",
    "--leader-elect-retry-period",
    "--leader-elect-resource-lock",
    "--leader-elect-resource-name",
    "--leader-elect-resource-namespace",
)
"""Upstream's flags that say nothing as long as --leader-elect is off."""


def _election_details(function: Callable[..., object]) -> Callable[..., object]:
    for flag in _ELECTION_DETAILS:
        function = click.option(flag, cls=Option, hidden=True, expose_value=False)(function)
    return function


def _no_election(_: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        raise click.BadParameter(
            "leader election is not built yet: run one replica", param=parameter
        )


@click.command("run", cls=Command)
@policy_file_option
@click.option(
    "--kubeconfig",
    "--client-connection-kubeconfig",
    "kubeconfig",
    cls=Option,
    envvar=[variable("--kubeconfig"), variable("--client-connection-kubeconfig")],
    metavar="FILE",
    help="Default: $KUBECONFIG, ~/.kube/config or the Pod's own service account, the first that"
    " exists.",
)
@switch("--dry-run", help="Decide everything, send no eviction.")
@switch("--once", help="Do one full pass, then exit.")
@click.option(
    "--descheduling-interval",
    cls=Option,
    type=DurationType(),
    metavar="DURATION",
    help="How often to look at everything as a backstop; goes before the policy's `resync`. 0 is"
    " --once.",
)
@corrections_option
@feature_gates_option
@click.option(
    "--bind-address",
    cls=Option,
    default="0.0.0.0",
    show_default=True,
    metavar="IP",
    help="Where metrics, health and status are served.",
)
@click.option(
    "--secure-port",
    cls=Option,
    type=click.IntRange(0, 65535),
    default=10258,
    show_default=True,
    metavar="PORT",
    help="Their HTTPS port; 0 serves nothing.",
)
@click.option(
    "--tls-cert-file",
    cls=Option,
    default="",
    metavar="FILE",
    help="Certificate; default one that signs itself and is kept in memory.",
)
@click.option(
    "--tls-private-key-file", cls=Option, default="", metavar="FILE", help="Its private key."
)
@switch("--disable-metrics", help="Serve no metrics.")
@click.option(
    "-v",
    "--v",
    "verbosity",
    cls=Option,
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="LEVEL",
    help="Verbosity: 3 steps, 4 why a Pod stays, 5 details.",
)
@click.option(
    "--logging-format",
    cls=Option,
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the log on standard error.",
)
@click.option(
    "--leader-elect",
    cls=Option,
    type=click.BOOL,
    is_flag=False,
    flag_value="true",
    default=False,
    expose_value=False,
    callback=_no_election,
    metavar="[=BOOL]",
    help="Not built yet; only false is accepted.",
)
@_election_details
def command(
    *,
    policy_config_file: str,
    kubeconfig: str | None,
    dry_run: bool,
    once: bool,
    descheduling_interval: timedelta | None,
    corrections: Corrections | None,
    feature_gates: FeatureGates,
    bind_address: str,
    secure_port: int,
    tls_cert_file: str,
    tls_private_key_file: str,
    disable_metrics: bool,
    verbosity: int,
    logging_format: str,
) -> ExitCode:
    """Watch the cluster and evict misplaced Pods the moment it changes.

    SIGTERM or Ctrl-C ends it: nothing new is sent, what is in flight ends first.
    """
    if bool(tls_cert_file) != bool(tls_private_key_file):
        raise click.UsageError("--tls-cert-file and --tls-private-key-file go together")

    import sys

    import anyio

    from reactive_descheduler.api.errors import AddressError
    from reactive_descheduler.app.process import run_daemon, run_once
    from reactive_descheduler.app.settings import RunSettings
    from reactive_descheduler.kit.clock import SystemClock
    from reactive_descheduler.observability.logs import set_up

    set_up(verbosity=verbosity, format=logging_format, stream=sys.stderr, clock=SystemClock())
    settings = RunSettings(
        policy_config_file=policy_config_file,
        kubeconfig=kubeconfig,
        dry_run=dry_run,
        once=once,
        descheduling_interval=descheduling_interval,
        corrections=corrections,
        feature_gates=feature_gates,
        bind_address=bind_address,
        secure_port=secure_port,
        tls_cert_file=tls_cert_file,
        tls_private_key_file=tls_private_key_file,
        disable_metrics=disable_metrics,
    )
    if settings.one_pass:
        return _judged(anyio.run(run_once, settings))
    try:
        anyio.run(run_daemon, settings)
    except AddressError as error:
        error.hint = "choose others with --bind-address and --secure-port; port 0 serves nothing"
        raise
    return ExitCode.OK


def _judged(report: PassReport) -> ExitCode:
    """Log what the pass came to, and say whether all of it went as it should."""
    from reactive_descheduler.observability.logs import get_logger

    get_logger("run").info(
        "Pass ended",
        evicted=len(report.evicted),
        refused=len(report.refused),
        in_background=len(report.in_background),
        held=len(report.held),
        rejected=len(report.rejected),
        failed_strategies=[each.strategy for each in report.failed],
    )
    if not report.failures_show:
        return ExitCode.OK
    broken = any(each.refusal.code not in _USUAL_REFUSALS for each in report.refused)
    return ExitCode.FAILURE if report.failed or broken else ExitCode.OK
