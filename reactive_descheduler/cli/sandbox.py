"""`sandbox`: the embedded cluster alone, for kubectl or any other client."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from reactive_descheduler.cli.group import Command, Option


@click.command("sandbox", cls=Command)
@click.option(
    "--nodes",
    cls=Option,
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="How many nodes to start with.",
)
@click.option(
    "--port",
    cls=Option,
    type=click.IntRange(0, 65535),
    default=0,
    metavar="PORT",
    help="Where to listen on loopback; 0, the default, takes a free one.",
)
@click.option(
    "--kubeconfig-out",
    cls=Option,
    metavar="FILE",
    help="Where to write the kubeconfig; default a file that goes with the sandbox.",
)
def command(*, nodes: int, port: int, kubeconfig_out: str | None) -> None:
    """Run an embedded cluster until Ctrl-C.

    An API server over HTTPS on loopback, with a scheduler, controllers and a kubelet. Prints the
    line that points a shell at it. Nothing of it outlives the command.
    """
    from tempfile import TemporaryDirectory

    import anyio

    from reactive_descheduler.api.errors import AddressError

    with TemporaryDirectory(prefix="reactive-descheduler-") as folder:
        path = Path(kubeconfig_out) if kubeconfig_out else Path(folder) / "kubeconfig"
        try:
            anyio.run(_serve, nodes, port, path.absolute())
        except AddressError as error:
            error.hint = "choose another with --port; 0 takes a free one"
            raise


async def _serve(nodes: int, port: int, path: Path) -> None:
    import signal

    import anyio

    from reactive_descheduler.sandbox.cluster import running_sandbox

    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with running_sandbox(nodes=nodes, port=port) as cluster:
            await cluster.write_kubeconfig(path)
            click.echo(f"export KUBECONFIG={shlex.quote(str(path))}")
            click.echo(f"{nodes} nodes at {cluster.url}; Ctrl-C ends it", err=True)
            async for _ in signals:
                return
