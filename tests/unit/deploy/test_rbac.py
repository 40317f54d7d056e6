"""The rights follow the policy."""

from __future__ import annotations

import json

import pytest
import yaml
from click.testing import CliRunner

from reactive_descheduler.app.rbac import needed_rules
from reactive_descheduler.cli import program
from reactive_descheduler.config.load import load_policy
from reactive_descheduler.strategies import PLUGINS

SOME_CLASSES = (
    "{podProtections: {extraEnabled: [PodsWithPVC],"
    " config: {PodsWithPVC: {protectedStorageClasses: [{name: local}]}}}}"
)


def policy_text(evictor: str) -> str:
    return f"""
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: p
  pluginConfig:
  - name: DefaultEvictor
    args: {evictor}
  plugins:
    deschedule: {{enabled: [RemovePodsViolatingNodeTaints]}}
"""


def rights(evictor: str, *, dry_run: bool = False) -> set[tuple[str, str, str]]:
    """(group, resource, verb) of every rule."""
    policy = load_policy(policy_text(evictor), source="test", plugins=PLUGINS)
    return {
        (rule.group, rule.resource, verb)
        for rule in needed_rules(policy, dry_run=dry_run)
        for verb in rule.verbs
    }


def watching(group: str, resource: str) -> set[tuple[str, str, str]]:
    return {(group, resource, "list"), (group, resource, "watch")}


USUAL = {
    *watching("", "nodes"),
    *watching("", "pods"),
    *watching("", "namespaces"),
    *watching("policy", "poddisruptionbudgets"),
    ("", "pods", "get"),
    ("", "pods/eviction", "create"),
    ("events.k8s.io", "events", "create"),
    ("events.k8s.io", "events", "patch"),
}


@pytest.mark.parametrize(
    ("evictor", "more"),
    [
        pytest.param("{}", set(), id="nothing special"),
        pytest.param("{priorityThreshold: {value: 5}}", set(), id="threshold by value"),
        pytest.param(
            "{priorityThreshold: {name: high}}",
            {("scheduling.k8s.io", "priorityclasses", "list")},
            id="threshold by name",
        ),
        pytest.param(
            "{podProtections: {extraEnabled: [PodsWithPVC]}}", set(), id="all claims protect"
        ),
        pytest.param(
            SOME_CLASSES,
            watching("", "persistentvolumeclaims"),
            id="claims of some classes protect",
        ),
    ],
)
def test_a_policy_gets_what_it_needs_and_nothing_else(
    evictor: str, more: set[tuple[str, str, str]]
) -> None:
    assert rights(evictor) == USUAL | more


MEASURED = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
metricsProviders: [{providers}]
profiles:
- name: p
  pluginConfig:
  - name: LowNodeUtilization
    args:
      thresholds: {{{resource}: 20}}
      targetThresholds: {{{resource}: 80}}
      metricsUtilization: {asked}
  plugins: {{balance: {{enabled: [LowNodeUtilization]}}}}
"""
QUERY = "{source: Prometheus, prometheus: {query: busy}}"
TOKEN = "authToken: {secretReference: {namespace: monitoring, name: token}}"
LISTED = {("metrics.k8s.io", "nodes", "list"), ("metrics.k8s.io", "pods", "list")}


@pytest.mark.parametrize(
    ("resource", "asked", "providers", "more"),
    [
        pytest.param(
            *("cpu", "{source: KubernetesMetrics}", "{source: KubernetesMetrics}", LISTED),
            id="metrics-server",
        ),
        pytest.param(
            *("cpu", "{metricsServer: true}", "{source: KubernetesMetrics}", LISTED), id="as of old"
        ),
        pytest.param(
            *("cpu", "{source: KubernetesMetrics}", "", set()), id="a source without a provider"
        ),
        pytest.param(
            "MetricResource",
            QUERY,
            f"{{source: Prometheus, prometheus: {{url: http://p, {TOKEN}}}}}",
            {("", "secrets", "get")},
            id="Prometheus with a token",
        ),
        pytest.param(
            "MetricResource",
            QUERY,
            "{source: Prometheus, prometheus: {url: http://p}}",
            set(),
            id="Prometheus with the own token",
        ),
        pytest.param(
            "cpu",
            "{source: KubernetesMetrics}",
            f"{{source: Prometheus, prometheus: {{url: http://p, {TOKEN}}}}}",
            set(),
            id="a provider nobody asks",
        ),
    ],
)
def test_measured_usage_adds_what_is_asked_for(
    resource: str, asked: str, providers: str, more: set[tuple[str, str, str]]
) -> None:
    text = MEASURED.format(resource=resource, asked=asked, providers=providers)
    policy = load_policy(text, source="test", plugins=PLUGINS)
    found = {
        (rule.group, rule.resource, verb) for rule in needed_rules(policy) for verb in rule.verbs
    }
    assert found - more == found - LISTED - {("", "secrets", "get")}
    assert more <= found


def test_the_token_alone_may_be_read_of_all_secrets(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    provider = f"{{source: Prometheus, prometheus: {{url: http://p, {TOKEN}}}}}"
    file = tmp_path_factory.mktemp("policy") / "policy.yaml"
    file.write_text(MEASURED.format(resource="MetricResource", asked=QUERY, providers=provider))
    with pytest.raises(SystemExit, match="0"):
        program.main(["rbac", "-f", str(file), "--namespace", "ops"])
    everywhere, _, role, binding = yaml.safe_load_all(capsys.readouterr().out)
    assert "secrets" not in {each for rule in everywhere["rules"] for each in rule["resources"]}
    assert role["metadata"] == binding["metadata"]
    assert role["metadata"]["namespace"] == "monitoring"
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["token"], "verbs": ["get"]}
    ]
    assert binding["roleRef"]["kind"] == "Role"
    assert binding["subjects"][0]["namespace"] == "ops"


def test_a_dry_run_goes_without_the_right_to_evict() -> None:
    assert rights("{}", dry_run=True) == USUAL - {("", "pods/eviction", "create")}


def test_the_right_to_evict_comes_first_for_overlays_to_take_it_away() -> None:
    policy = load_policy(policy_text("{}"), source="test", plugins=PLUGINS)
    assert needed_rules(policy)[0].resource == "pods/eviction"


def test_names_are_those_asked_for(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path_factory.mktemp("policy") / "policy.yaml"
    file.write_text(policy_text("{}"))
    with pytest.raises(SystemExit, match="0"):
        program.main(
            [
                *("rbac", "-f", str(file), "-o", "json"),
                *("--namespace", "ops", "--service-account", "mover"),
            ]
        )
    role, binding = json.loads(capsys.readouterr().out)["items"]
    assert role["metadata"]["name"] == binding["metadata"]["name"] == "mover"
    assert binding["roleRef"]["name"] == "mover"
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "mover", "namespace": "ops"}]


def test_a_refused_policy_gets_no_rights(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path_factory.mktemp("policy") / "policy.yaml"
    file.write_text(policy_text("{priorityTreshold: {}}"))
    with pytest.raises(SystemExit, match="2"):
        program.main(["rbac", "-f", str(file)])
    printed = capsys.readouterr()
    assert not printed.out
    assert "priorityTreshold" in printed.err


ROOM = policy_text("{nodeFit: true}")
BY_NAME = policy_text("{priorityThreshold: {name: high}}")
BALANCING = policy_text("{}").replace(
    "  plugins:\n    deschedule: {enabled: [RemovePodsViolatingNodeTaints]}",
    "  plugins: {balance: {enabled: [RemoveDuplicates]}}",
)
USAGE = MEASURED.format(
    resource="cpu", asked="{metricsServer: true}", providers="{source: KubernetesMetrics}"
)
SECRET = MEASURED.format(
    resource="MetricResource",
    asked=QUERY,
    providers=f"{{source: Prometheus, prometheus: {{url: 'http://p', {TOKEN}}}}}",
)


@pytest.mark.parametrize(
    ("text", "resource", "reason"),
    [
        pytest.param(
            ROOM,
            "persistentvolumes",
            "to see from which nodes it can be reached: profiles[0].DefaultEvictor.nodeFit",
            id="volumes-for-node-fit",
        ),
        pytest.param(
            BALANCING,
            "persistentvolumeclaims",
            "to see what storage Pods use: profiles[0].RemoveDuplicates",
            id="claims-for-a-strategy-that-looks-for-room",
        ),
        pytest.param(
            policy_text(SOME_CLASSES),
            "persistentvolumeclaims",
            "to see what storage Pods use:"
            " profiles[0].DefaultEvictor.podProtections.config.PodsWithPVC",
            id="claims-for-a-protection",
        ),
        pytest.param(
            BY_NAME,
            "priorityclasses",
            "to read, once, the value that a name has:"
            " profiles[0].DefaultEvictor.priorityThreshold.name",
            id="a-threshold-by-name",
        ),
        pytest.param(
            USAGE,
            "nodes",
            "to ask a metrics-server what nodes use:"
            " profiles[0].LowNodeUtilization.metricsUtilization",
            id="usage",
        ),
        pytest.param(
            SECRET,
            "secrets",
            "to read the token for Prometheus: profiles[0].LowNodeUtilization.metricsUtilization",
            id="a-token",
        ),
        pytest.param(ROOM, "namespaces", "to match their labels", id="what-every-policy-needs"),
    ],
)
def test_each_right_names_the_setting_that_needs_it(text: str, resource: str, reason: str) -> None:
    policy = load_policy(text, source="test", plugins=PLUGINS)
    reasons = [rule.reason for rule in needed_rules(policy) if rule.resource == resource]
    assert reason in reasons

    shown = CliRunner().invoke(program, ["rbac", "-f", "-"], input=text).output
    assert f"# {reason}\n" in shown
