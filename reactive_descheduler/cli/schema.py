"""`schema`: a JSON schema of the policy file, for editors."""

from __future__ import annotations

import click

from reactive_descheduler.cli.group import Command
from reactive_descheduler.cli.output import print_json


@click.command("schema", cls=Command)
def command() -> None:
    """Print a JSON schema of the policy file, `reactive:` and the arguments of plugins included.

    An editor that is given it completes keys and marks mistakes; `validate` finds more, such as
    settings that exclude each other.
    """
    from reactive_descheduler.config.schema import policy_schema
    from reactive_descheduler.strategies import PLUGINS

    print_json(policy_schema(PLUGINS))
