"""The command line. Commands are loaded when they are called, so that starting one is quick.

To add one: a file with a click command named `command`, and its line in COMMANDS.
"""

from __future__ import annotations

from collections.abc import Mapping

from reactive_descheduler.cli.group import Entry, Program

COMMANDS: Mapping[str, Entry] = {
    "run": Entry("run", "Watch the cluster and evict what is misplaced, or do one pass."),
    "plan": Entry("plan", "Show what one full pass would evict, and why the rest stays."),
    "validate": Entry("validate", "Check a policy file; list every mistake in it."),
    "schema": Entry("schema", "Print a JSON schema of the policy file, for editors."),
    "rbac": Entry("rbac", "Print the least rights that a policy needs, for kubectl."),
    "triggers": Entry("triggers", "List which change makes which strategy look at what."),
    "strategies": Entry("strategies", "List the strategies with their arguments."),
    "sandbox": Entry("sandbox", "Run an embedded cluster for any Kubernetes client."),
    "demo": Entry("demo", "Show the descheduler at work on a cluster of its own."),
    "version": Entry("version", "Print the version."),
}
"""By name: the module of the command, and what the list of commands says of it."""

program = Program(COMMANDS)
