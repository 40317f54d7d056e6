"""A policy file is read as upstream reads it, strictly or not, and refused with every mistake."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from reactive_descheduler.api.errors import PolicyError, Problem
from reactive_descheduler.config.corrections import ALL, NONE, Correction, Corrections
from reactive_descheduler.config.doubts import doubts
from reactive_descheduler.config.load import LoadedPolicy, PluginSpec, load_policy
from reactive_descheduler.config.loaded import PolicyLimits

Load = Callable[..., LoadedPolicy]
Refuse = Callable[..., list[Problem]]

WITHOUT = {correction: ALL - {correction} for correction in Correction}

PLAIN = """\
profiles:
- name: p
  pluginConfig:
  - name: Count
    args: {threshold: 3}
  plugins:
    deschedule:
      enabled: [Count]
"""


def test_a_whole_policy_is_read(load: Load) -> None:
    policy = load(
        """\
nodeSelector: pool in (a,b),!spot
maxNoOfPodsToEvictPerNode: 2.0
maxNoOfPodsToEvictPerNamespace: null
maxNoOfPodsToEvictTotal: 0
evictionFailureEventNotification: true
gracePeriodSeconds: 30
metricsCollector: {enabled: true}
metricsProviders:
- source: Prometheus
  prometheus:
    url: http://prometheus.example:9090
    authToken: {secretReference: {namespace: a, name: b}}
profiles:
- name: one
  pluginConfig:
  - name: DefaultEvictor
    args: {apiVersion: x, kind: y, nodeFit: false}
  - name: Count
    args: {threshold: 3}
  - name: Sweep
  - name: Level
    args:
  plugins:
    deschedule: {enabled: [Sweep, Count, Sweep]}
    balance: {enabled: [Level]}
    filter: {enabled: [DefaultEvictor]}
    preEvictionFilter: {enabled: [DefaultEvictor]}
- {}
reactive: {resync: 1h}
"""
    )
    one, two = policy.profiles
    assert [plugin.name for plugin in one.deschedule] == ["Sweep", "Count", "Sweep"]
    assert one.deschedule[0].arguments is one.deschedule[2].arguments
    assert [plugin.name for plugin in one.balance] == ["Level"]
    assert one.evictor.node_fit_is_written_false
    assert (two.name, two.deschedule, two.balance) == ("", (), ())
    assert not two.evictor.node_fit_is_written_false
    assert policy.limits == PolicyLimits(per_node=2, per_namespace=None, total=0)
    assert (policy.node_selector, policy.grace_period_seconds, policy.failure_events) == (
        "pool in (a,b),!spot",
        30,
        True,
    )
    assert [each.source for each in policy.metrics_providers] == ["KubernetesMetrics", "Prometheus"]
    assert policy.reactive.resync.total_seconds() == 3600
    assert policy.corrections == ALL
    assert policy.warnings == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "profiles:\n",
        "profiles: []\n",
        PLAIN,
        PLAIN + "---\nanything: [goes\n",
        "profiles: [{name: a}, {name: a}]\n",
        "maxNoOfPodsToEvictTotal: 0\n",
        "nodeSelector: ''\n",
        "metricsProviders: [{source: KubernetesMetrics}]\nmetricsCollector: {enabled: false}\n",
        "profiles: [{pluginConfig: [{name: Sweep, args: {only: [], most: 2.0, after: 1h}}]}]\n",
        "profiles: [{plugins: {preevictionfilter: {enabled: [DefaultEvictor]}}}]\n",
        "reactive: {strategies: {Count: {mode: observe}}}\n",
    ],
    ids=repr,
)
def test_a_good_document_is_loaded_without_a_word(load: Load, text: str) -> None:
    assert load(text).warnings == ()


@pytest.mark.parametrize(
    ("text", "path", "line", "said"),
    [
        ("profiles: 5", "profiles", 3, "must be a list"),
        ("profiles:\n- 5", "profiles[0]", 4, "must be a mapping"),
        ("profiles: [{name: 5}]", "profiles[0].name", 3, "must be text, not 5"),
        ("maxNoOfPodsToEvictTotal: '1'", "maxNoOfPodsToEvictTotal", 3,
         "whole number, not '1' without quotes"),
        ("maxNoOfPodsToEvictTotal: 1.5", "maxNoOfPodsToEvictTotal", 3, "whole number"),
        ("maxNoOfPodsToEvictPerNode: -1", "maxNoOfPodsToEvictPerNode", 3, "at least 0"),
        ("maxNoOfPodsToEvictPerNode: true", "maxNoOfPodsToEvictPerNode", 3, "whole number"),
        ("evictionFailureEventNotification: 'yes'", "evictionFailureEventNotification", 3, "true"),
        ("evictionFailureEventNotification: 'true'", "evictionFailureEventNotification", 3,
         "without quotes"),
        ("profiles: [{pluginConfig: [{name: DefaultEvictor, args: {podProtections:"
         " {extraEnabled: [PodsWithPVCs]}}}]}]",
         "profiles[0].pluginConfig[0].args.podProtections.extraEnabled[0]", 3,
         "did you mean PodsWithPVC?"),
        ("reactive: {rateLimit: {evictionsPerSecond: '2.5'}}",
         "reactive.rateLimit.evictionsPerSecond", 3, "without quotes"),
        ("reactive: {rateLimit: {evictionsPerSecond: 25%}}",
         "reactive.rateLimit.evictionsPerSecond", 3, "without %"),
        ("profiles: [{plugins: {deschedule: {enabled: Sweep}}}]",
         "profiles[0].plugins.deschedule.enabled", 3, "write [Sweep]"),
        ("nodeSelector: a in (b", "nodeSelector", 3, "a in (b"),
        ("nodeSelector: {a: b}", "nodeSelector", 3, "must be text"),
        ("profiles: [{pluginConfig: [{name: Nope}]}]", "profiles[0].pluginConfig[0].name", 3,
         "'Nope'"),
        ("profiles:\n- pluginConfig:\n  - args: {}\n", "profiles[0].pluginConfig[0].name", 5, "''"),
        ("profiles: [{pluginConfig: [{name: Count, args: [1]}]}]",
         "profiles[0].pluginConfig[0].args", 3, "must be a mapping"),
        ("profiles:\n- pluginConfig:\n  - name: Count\n    args:\n      threshold: 0\n",
         "profiles[0].pluginConfig[0].args.threshold", 7, "at least 1, not 0"),
        ("profiles:\n- pluginConfig:\n  - name: Count\n    args:\n      thresholdd: 1\n",
         "profiles[0].pluginConfig[0].args.threshold", 6, "is required"),
        ("profiles: [{plugins: {balance: {enabled: [Sweep]}}}]",
         "profiles[0].plugins.balance.enabled[0]", 3, "Sweep is no balance plugin"),
        ("profiles: [{plugins: {deschedule: {enabled: [DefaultEvictor]}}}]",
         "profiles[0].plugins.deschedule.enabled[0]", 3, "no deschedule plugin"),
        ("profiles: [{plugins: {filter: {enabled: [Sweep]}}}]",
         "profiles[0].plugins.filter.enabled[0]", 3, "no filter plugin"),
        ("profiles: [{plugins: {preevictionfilter: {enabled: [Sweep]}}}]",
         "profiles[0].plugins.preevictionfilter.enabled[0]", 3, "no preevictionfilter plugin"),
        ("metricsProviders: [{source: Prometheus}]", "metricsProviders[0].prometheus", 3,
         "required"),
        ("metricsProviders: [{source: Prometheus, prometheus: {}}]",
         "metricsProviders[0].prometheus.url", 3, "required"),
        ("metricsProviders: [{source: Prometheus, prometheus: {url: 'http://[::1'}}]",
         "metricsProviders[0].prometheus.url", 3, "no URL"),
        ("metricsProviders: [{source: Prometheus, prometheus: {url: 'http://a:b'}}]",
         "metricsProviders[0].prometheus.url", 3, "no URL"),
        ("metricsProviders: [{source: Prometheus, prometheus: {url: 'http://a/%zz'}}]",
         "metricsProviders[0].prometheus.url", 3, "no URL"),
        ("metricsProviders: [{source: Prometheus, prometheus: {url: 'http://a', authToken: {}}}]",
         "metricsProviders[0].prometheus.authToken.secretReference", 3, "required"),
        ("metricsProviders: [{source: Prometheus, prometheus:"
         " {url: 'http://a', authToken: {secretReference: {name: x}}}}]",
         "metricsProviders[0].prometheus.authToken.secretReference.namespace", 3, "required"),
        ("metricsProviders: [{source: KubernetesMetrics}, {source: KubernetesMetrics}]",
         "metricsProviders[1].source", 3, "configured twice"),
        ("metricsCollector: {enabled: true}\nmetricsProviders: [{source: KubernetesMetrics}]",
         "metricsProviders[0].source", 4, "metricsCollector"),
        ("reactive: {resync: 5}", "reactive.resync", 3, "must be a duration"),
        ("reactive: {strategies: {Cuont: {}}}", "reactive.strategies.Cuont", 3, "did you mean"),
        ("reactive: {strategies: {DefaultEvictor: {}}}", "reactive.strategies.DefaultEvictor", 3,
         "unknown strategy"),
        ("reactive: 5", "reactive", 3, "must be a mapping"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
@pytest.mark.parametrize("corrections", [ALL, NONE], ids=["all", "none"])
def test_a_mistake_is_refused_however_strict(
    refuse: Refuse, text: str, path: str, line: int, said: str, corrections: Corrections
) -> None:
    problems = refuse(text, corrections=corrections)
    first = next(problem for problem in problems if problem.path == path)
    assert first.line == line
    assert said in f"{first.message} {first.hint}"


@pytest.mark.parametrize(
    ("text", "path", "line", "said"),
    [
        ("dryRun: true", "dryRun", 3, "unknown key"),
        ("MaxNoOfPodsToEvictTotal: 5", "MaxNoOfPodsToEvictTotal", 3,
         "did you mean maxNoOfPodsToEvictTotal?"),
        ("profiles:\n- strategy: x", "profiles[0].strategy", 4, "unknown key"),
        ("profiles:\n- pluginConfigs: []", "profiles[0].pluginConfigs", 4,
         "did you mean pluginConfig?"),
        ("profiles: [{plugins: {evict: {}}}]", "profiles[0].plugins.evict", 3, "unknown key"),
        ("profiles:\n- pluginConfig:\n  - name: Count\n    threshold: 1\n    args: {threshold: 1}",
         "profiles[0].pluginConfig[0].threshold", 6, "it belongs into args"),
        ("profiles: [{pluginConfig: [{name: DefaultEvictor, nodeFit: true}]}]",
         "profiles[0].pluginConfig[0].nodeFit", 3, "it belongs into args"),
        ("profiles: [{plugins: {deschedule: {enable: []}}}]",
         "profiles[0].plugins.deschedule.enable", 3, "did you mean enabled?"),
        ("profiles: [{plugins: {sort: {enabled: [Nope]}}}]",
         "profiles[0].plugins.sort.enabled[0]", 3, "Nope has no effect"),
        ("profiles: [{plugins: {preEvictionFilter: {enabled: [Sweep]}}}]",
         "profiles[0].plugins.preEvictionFilter.enabled[0]", 3, "no preevictionfilter plugin"),
        ("profiles: []\nprofiles: []", "profiles", 4, "written twice (first on line 3)"),
        ("profiles:\n- pluginConfig:\n  - name: Count\n    args: {threshold: 1, threshold: 2}",
         "profiles[0].pluginConfig[0].args.threshold", 6, "written twice"),
        ("profiles: [{pluginConfig: [{name: DefaultEvictor, args: {nodeSelector: 'a in (b'}}]}]",
         "profiles[0].pluginConfig[0].args.nodeSelector", 3, "a in (b"),
        ("metricsProviders: [{source: Graphite}]", "metricsProviders[0].source", 3, "'Graphite'"),
        ("gracePeriodSeconds: -1", "gracePeriodSeconds", 3, "negative"),
        ("reactive: {debouncee: {}}", "reactive.debouncee", 3, "did you mean debounce?"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_upstream_ignores_is_refused_or_warned_of(
    load: Load, refuse: Refuse, text: str, path: str, line: int, said: str
) -> None:
    lenient = load(text, corrections=WITHOUT[Correction.STRICT_DOCUMENTS])
    for problems in (refuse(text), list(lenient.warnings)):
        assert [(problem.path, problem.line) for problem in problems] == [(path, line)]
        message, hint = problems[0].message, problems[0].hint
        assert said in f"{message} ({hint})" or said in message


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("profiles: [{plugins: {deschedule: {disabled: ['*']}}}]",
         "profiles[0].plugins.deschedule.disabled"),
        ("profiles: [{pluginConfig: [{name: DefaultEvictor, args: {minReplicas: 1}}]}]",
         "profiles[0].pluginConfig[0].args.minReplicas"),
    ],
    ids=["disabled", "minReplicas"],
)  # fmt: skip
def test_what_has_no_effect_is_warned_of(load: Load, text: str, path: str) -> None:
    assert [problem.path for problem in load(text).warnings] == [path]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        pytest.param(PLAIN, [], id="busy"),
        pytest.param("profiles: []\n", ["profiles"], id="no profile"),
        pytest.param(PLAIN + "- {name: q}\n", ["profiles[1]"], id="no strategy"),
        pytest.param(
            PLAIN + "maxNoOfPodsToEvictPerNode: 0\nmaxNoOfPodsToEvictPerNamespace: 0\n"
            "maxNoOfPodsToEvictTotal: 0\n",
            [
                "maxNoOfPodsToEvictPerNode",
                "maxNoOfPodsToEvictPerNamespace",
                "maxNoOfPodsToEvictTotal",
            ],
            id="limits of 0",
        ),
    ],
)
def test_a_policy_tells_what_in_it_can_evict_nothing(
    load: Load, text: str, paths: list[str]
) -> None:
    assert [problem.path for problem in doubts(load(text))] == paths


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("", "empty"),
        ("# nothing\n", "empty"),
        ("null\n", "empty"),
        ("kind: DeschedulerPolicy\nprofiles: 5\n", "apiVersion: is required"),
        ("profiles: [{plugins: {deschedule: {enabled: [Nope]}}}]\n", "apiVersion: is required"),
        ("apiVersion: ''\n", "apiVersion: is required"),
    ],
    ids=repr,
)
def test_a_policy_that_upstream_takes_for_empty(
    plugins: Mapping[str, PluginSpec], head: str, said: str
) -> None:
    with pytest.raises(PolicyError, match=said):
        load_policy(head, source="f", plugins=plugins)
    lenient = load_policy(head, source="f", plugins=plugins, corrections=NONE)
    assert lenient.profiles == ()
    assert any(said in f"{warning.path}: {warning.message}" for warning in lenient.warnings)


@pytest.mark.parametrize(
    ("head", "path"),
    [
        ("apiVersion: descheduler/v1alpha1\n", "apiVersion"),
        ("apiVersion: v1alpha2\n", "apiVersion"),
        ("apiVersion: descheduler/__internal\n", "apiVersion"),
        ("apiVersion: 5\n", "apiVersion"),
        ("apiVersion: descheduler/v1alpha2\nkind: Policy\n", "kind"),
        ("- 1\n", ""),
        ("text\n", ""),
        ("a: [\n", ""),
    ],
    ids=repr,
)
@pytest.mark.parametrize("corrections", [ALL, NONE], ids=["all", "none"])
def test_another_document_is_refused(
    refuse: Refuse, head: str, path: str, corrections: Corrections
) -> None:
    problems = refuse("", head=head, corrections=corrections)
    assert [problem.path for problem in problems] == [path]


def test_a_kind_may_be_missing(load: Load) -> None:
    assert load(PLAIN, head="apiVersion: descheduler/v1alpha2\n").profiles[0].name == "p"


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file(refuse: Refuse) -> None:
    problems = refuse(
        """\
maxNoOfPodsToEvictTotal: -1
oops: 1
profiles:
- name: 5
  pluginConfig:
  - 7
  - name: Count
    args: {threshold: 0}
  - name: DefaultEvictor
    args: {nodeFit: 1, minReplicas: -1}
  plugins:
    deschedule: {enabled: [Cuont, 5]}
reactive: {resync: x}
"""
    )
    assert [(problem.line, problem.path) for problem in problems] == [
        (3, "maxNoOfPodsToEvictTotal"),
        (4, "oops"),
        (6, "profiles[0].name"),
        (8, "profiles[0].pluginConfig[0]"),
        (10, "profiles[0].pluginConfig[1].args.threshold"),
        (12, "profiles[0].pluginConfig[2].args.nodeFit"),
        (12, "profiles[0].pluginConfig[2].args.minReplicas"),
        (14, "profiles[0].plugins.deschedule.enabled[1]"),
        (14, "profiles[0].plugins.deschedule.enabled[0]"),
        (15, "reactive.resync"),
    ]


@pytest.mark.parametrize("name", ["PodsWithPVC", "PodsWithPVCs"])
def test_old_and_new_protections_clash_also_beside_a_typo(refuse: Refuse, name: str) -> None:
    problems = refuse(
        "profiles: [{pluginConfig: [{name: DefaultEvictor, args: {ignorePvcPods: true,"
        f" podProtections: {{extraEnabled: [{name}]}}}}}}]}}]"
    )
    clashes = [each for each in problems if "ignorePvcPods and podProtections" in each.message]
    assert [each.path for each in clashes] == ["profiles[0].pluginConfig[0].args"]


def test_a_mistake_below_a_key_written_twice_is_told_too(refuse: Refuse) -> None:
    problems = refuse("profiles: []\nprofiles:\n- name: 5\n")
    assert [problem.path for problem in problems] == ["profiles", "profiles[0].name"]


def test_a_refusal_reads_well(load: Load) -> None:
    with pytest.raises(PolicyError) as refusal:
        load("profiles:\n- plugin: []\n")
    assert (
        str(refusal.value)
        == "policy.yaml:4: profiles[0].plugin: unknown key (did you mean plugins?)"
    )


ENABLED = "profiles: [{name: p, plugins: {deschedule: {enabled: [%s]}}}]"


def test_a_plugin_without_config_runs_with_defaults(load: Load) -> None:
    (plugin,) = load(ENABLED % "Sweep").profiles[0].deschedule
    assert plugin.arguments == type(plugin.arguments)()


def test_a_plugin_that_needs_arguments_says_which(refuse: Refuse) -> None:
    (problem,) = refuse(ENABLED % "Count")
    assert "Count" in problem.message
    assert "threshold: is required" in problem.message
    assert "pluginConfig" in problem.hint


@pytest.mark.parametrize("name", ["Sweep", "Count"])
def test_a_plugin_without_config_is_refused_as_upstream_does(refuse: Refuse, name: str) -> None:
    (problem,) = refuse(ENABLED % name, corrections=WITHOUT[Correction.MISSING_PLUGIN_CONFIG])
    assert problem.path == "profiles[0].plugins.deschedule.enabled[0]"
    assert f"{name} is enabled, but has no entry in pluginConfig" in problem.message


def test_the_first_of_two_configs_counts(load: Load) -> None:
    text = "profiles: [{pluginConfig: [%s], plugins: {deschedule: {enabled: [Sweep]}}}]"
    entries = [f"{{name: Sweep, args: {{most: {most}}}}}" for most in (1, 2)]
    (plugin,) = load(text % ", ".join(entries)).profiles[0].deschedule
    assert plugin.arguments.model_dump()["most"] == 1


def test_the_second_of_two_configs_is_validated(refuse: Refuse) -> None:
    text = "profiles: [{pluginConfig: [{name: Sweep}, {name: Sweep, args: {most: -1}}]}]"
    assert [problem.path for problem in refuse(text)] == ["profiles[0].pluginConfig[1].args.most"]


def test_absent_differs_from_empty(load: Load) -> None:
    text = "profiles: [{pluginConfig: [{name: Sweep, args: {only: %s}}], plugins: {deschedule: {enabled: [Sweep]}}}]"  # noqa: E501
    found = [load(text % only).profiles[0].deschedule[0].arguments for only in ("[]", "null")]
    assert [arguments.model_dump()["only"] for arguments in found] == [(), None]


@pytest.mark.parametrize(
    ("setting", "flag", "in_force"),
    [
        ("", None, ALL),
        ("reactive: {corrections: null}", None, ALL),
        ("reactive: {corrections: none}", None, NONE),
        ("reactive: {corrections: [cordonAlone]}", None, {Correction.CORDON_ALONE}),
        ("reactive: {corrections: none}", ALL, ALL),
        ("reactive: {corrections: all}", NONE, NONE),
    ],
)
def test_a_flag_goes_before_the_file(
    load: Load, setting: str, flag: Corrections | None, in_force: Corrections
) -> None:
    assert load(setting, corrections=flag).corrections == in_force


def test_the_file_says_how_strictly_it_is_read(load: Load) -> None:
    policy = load("oops: 1\nreactive: {corrections: none}")
    assert [warning.path for warning in policy.warnings] == ["oops"]


def test_a_wrong_correction_is_refused_with_a_hint(refuse: Refuse) -> None:
    (problem,) = refuse("reactive:\n  corrections: [cordonalone]")
    assert problem[:2] == ("reactive.corrections", 4)
    assert "did you mean cordonAlone?" in problem.message


def test_json_is_read(load: Load) -> None:
    text = '{\n\t"apiVersion": "descheduler/v1alpha2",\n\t"profiles": [{"name": "p"}]\n}'
    assert load(text, head="").profiles[0].name == "p"
