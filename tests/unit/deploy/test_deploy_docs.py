"""docs/deploy.md names every right, and its commands are such."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from reactive_descheduler.app.policy import ALWAYS_WATCHED
from reactive_descheduler.app.rbac import Rule, needed_rules
from reactive_descheduler.cli import program
from reactive_descheduler.client.resources import METRICS_GROUP
from reactive_descheduler.config.load import load_policy
from reactive_descheduler.strategies import PLUGINS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
NEEDS_EVERYTHING = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
metricsProviders:
- source: KubernetesMetrics
- source: Prometheus
  prometheus: {url: "http://p", authToken: {secretReference: {namespace: ns, name: token}}}
profiles:
- name: p
  pluginConfig:
  - name: LowNodeUtilization
    args:
      thresholds: {%s: 20}
      targetThresholds: {%s: 80}
      metricsUtilization: %s
  - name: DefaultEvictor
    args:
      nodeFit: true
      priorityThreshold: {name: high}
      podProtections:
        extraEnabled: [PodsWithPVC]
        config: {PodsWithPVC: {protectedStorageClasses: [{name: local}]}}
  plugins:
    deschedule: {enabled: [RemovePodsViolatingNodeTaints]}
    balance: {enabled: [LowNodeUtilization]}
"""
SOURCES = (
    ("cpu", "{source: KubernetesMetrics}"),
    ("MetricResource", "{source: Prometheus, prometheus: {query: busy}}"),
)


def test_the_table_has_every_right_there_is() -> None:
    rules = set[Rule]()
    for resource, asked in SOURCES:
        text = NEEDS_EVERYTHING % (resource, resource, asked)
        rules.update(needed_rules(load_policy(text, source="test", plugins=PLUGINS)))
    assert len({rule.resource for rule in rules}) > len(ALWAYS_WATCHED)
    rights = {(verb, _shown(rule)) for rule in rules for verb in rule.verbs}
    table = PAGE.partition("<!-- rights -->")[2].partition("<!-- end -->")[0]
    rows = re.findall(r"^\| `(\w+)` `([\w/.]+)` \|", table, re.MULTILINE)
    assert len(rows) == len(rights)
    assert set(rows) == rights


def _shown(rule: Rule) -> str:
    """With the group where the same name stands in another one too."""
    return f"{rule.resource}.{rule.group}" if rule.group == METRICS_GROUP else rule.resource


def commands() -> list[list[str]]:
    """The program's own commands on the page, without what a shell would do with the output."""
    lines = re.findall(r"^    reactive-descheduler (.+)$", PAGE, re.MULTILINE)
    return [line.partition(" >")[0].split() for line in lines]


@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
def test_its_commands_parse(arguments: list[str]) -> None:
    name, *rest = arguments
    command = program.get_command(click.Context(program), name)
    assert command is not None
    command.make_context(name, rest)


def test_the_files_that_it_names_are_there() -> None:
    named = set(re.findall(r"(?:deploy|scripts)/[\w/.-]*\w", PAGE))
    assert len(named) > 4
    assert [path for path in named if not (ROOT / path).exists()] == []
