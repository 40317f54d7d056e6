"""`version`."""

from __future__ import annotations

import platform

import click

from reactive_descheduler import __version__
from reactive_descheduler.cli.group import Command


@click.command("version", cls=Command)
def command() -> None:
    """Print the version."""
    click.echo(f"reactive-descheduler {__version__} (Python {platform.python_version()})")
