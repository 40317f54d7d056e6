"""What a policy may say and hardly anybody means: each kind has a name, and can be silenced."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from reactive_descheduler.api.errors import PolicyError
from reactive_descheduler.config.corrections import ALL, Correction
from reactive_descheduler.config.doubt_kinds import Doubt
from reactive_descheduler.config.doubts import doubt_problems, doubts
from reactive_descheduler.config.load import LoadedPolicy, load_policy
from reactive_descheduler.strategies import PLUGINS

ROOT = Path(__file__).parents[3]
Plugins = dict[str, dict[str, object]]

LOW: dict[str, object] = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}
HIGH: dict[str, object] = {"thresholds": {"cpu": 20}}
BALANCE = {
    "LowNodeUtilization",
    "HighNodeUtilization",
    "RemoveDuplicates",
    "RemovePodsViolatingTopologySpreadConstraint",
}


def profile(
    plugins: Plugins, *, evictor: dict[str, object] | None = None, twice: str = ""
) -> dict[str, object]:
    enabled = [*plugins, *([twice] if twice else [])]
    config: list[dict[str, object]] = [
        {"name": name, "args": args} for name, args in plugins.items()
    ]
    if evictor is not None:
        config.append({"name": "DefaultEvictor", "args": evictor})
    return {
        "name": "p",
        "pluginConfig": config,
        "plugins": {
            "deschedule": {"enabled": [name for name in enabled if name not in BALANCE]},
            "balance": {"enabled": [name for name in enabled if name in BALANCE]},
        },
    }


def policy(*profiles: dict[str, object], **extra: object) -> LoadedPolicy:
    document = {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "profiles": list(profiles),
        **extra,
    }
    return load_policy(yaml.safe_dump(document), source="policy.yaml", plugins=PLUGINS)


AGED = profile({"PodLifeTime": {"maxPodLifeTimeSeconds": 600}})
TAINTS = "RemovePodsViolatingNodeTaints"


def settling(strategy: str, settle: str) -> dict[str, object]:
    return {"strategies": {strategy: {"settle": settle}}}


def fitting(selector: str) -> LoadedPolicy:
    return policy(profile({TAINTS: {}}, evictor={"nodeFit": True, "nodeSelector": selector}))


def choosing(
    arguments: dict[str, object], evictor: dict[str, object], name: str = TAINTS
) -> LoadedPolicy:
    return policy(profile({name: arguments}, evictor=evictor))


def measured(source: str, *configured: str) -> LoadedPolicy:
    providers = [{"source": each} for each in configured]
    arguments = {**LOW, "metricsUtilization": {"source": source}}
    return policy(profile({"LowNodeUtilization": arguments}), metricsProviders=providers)


def labelled(**labels: str) -> dict[str, object]:
    return {"matchLabels": labels}


def without(key: str) -> dict[str, object]:
    return {"matchExpressions": [{"key": key, "operator": "DoesNotExist"}]}


def by_name(*names: str, operator: str = "In") -> dict[str, object]:
    name = "kubernetes.io/metadata.name"
    return {"matchExpressions": [{"key": name, "operator": operator, "values": list(names)}]}


ONLY_FULL: dict[str, object] = {"thresholds": {"cpu": 100}, "targetThresholds": {"cpu": 100}}

CASES: dict[str, tuple[LoadedPolicy, list[tuple[Doubt, str]]]] = {
    "ordinary": (policy(AGED), []),
    "no profile": (policy(), [(Doubt.NO_PROFILE, "profiles")]),
    "no strategy": (policy({"name": "p"}), [(Doubt.NO_STRATEGY, "profiles[0]")]),
    "limit of 0": (
        policy(AGED, maxNoOfPodsToEvictTotal=0),
        [(Doubt.LIMIT_ZERO, "maxNoOfPodsToEvictTotal")],
    ),
    "limit of a node of 0": (
        policy(profile({"LowNodeUtilization": {**LOW, "evictionLimits": {"node": 0}}})),
        [(Doubt.LIMIT_ZERO, "profiles[0].LowNodeUtilization.evictionLimits.node")],
    ),
    "no taint counts": (
        policy(profile({TAINTS: {"includedTaints": []}})),
        [(Doubt.DOES_NOTHING, f"profiles[0].{TAINTS}.includedTaints")],
    ),
    "a taint with its effect": (
        policy(profile({TAINTS: {"excludedTaints": ["gpu", "a=b:NoSchedule"]}})),
        [(Doubt.DOES_NOTHING, f"profiles[0].{TAINTS}.excludedTaints")],
    ),
    "no such affinity": (
        policy(profile({"RemovePodsViolatingNodeAffinity": {"nodeAffinityType": ["required"]}})),
        [(Doubt.DOES_NOTHING, "profiles[0].RemovePodsViolatingNodeAffinity.nodeAffinityType")],
    ),
    "both utilizations": (
        policy(profile({"LowNodeUtilization": LOW, "HighNodeUtilization": HIGH})),
        [(Doubt.UTILIZATION_FIGHT, "profiles[0].HighNodeUtilization")],
    ),
    "both utilizations in two profiles": (
        policy(profile({"LowNodeUtilization": LOW}), profile({"HighNodeUtilization": HIGH})),
        [(Doubt.UTILIZATION_FIGHT, "profiles[1].HighNodeUtilization")],
    ),
    "packing and duplicates": (
        policy(profile({"HighNodeUtilization": HIGH, "RemoveDuplicates": {}})),
        [(Doubt.PACKING_FIGHT, "profiles[0].HighNodeUtilization")],
    ),
    "packing and spreading": (
        policy(
            profile(
                {
                    "HighNodeUtilization": HIGH,
                    "RemovePodsViolatingTopologySpreadConstraint": {},
                }
            )
        ),
        [(Doubt.PACKING_FIGHT, "profiles[0].HighNodeUtilization")],
    ),
    "levelling and spreading": (
        policy(profile({"LowNodeUtilization": LOW, "RemoveDuplicates": {}})),
        [],
    ),
    "targets that cannot be": (
        fitting("pool=a,pool=b"),
        [(Doubt.NO_TARGET, "profiles[0].DefaultEvictor.nodeSelector")],
    ),
    "a target that may not have its label": (
        fitting("pool=a,!pool"),
        [(Doubt.NO_TARGET, "profiles[0].DefaultEvictor.nodeSelector")],
    ),
    "a target whose only value is excluded": (
        fitting("pool=a,pool notin (a,b)"),
        [(Doubt.NO_TARGET, "profiles[0].DefaultEvictor.nodeSelector")],
    ),
    "targets that may be": (fitting("pool in (a,b),pool!=a,zone,!spot"), []),
    "no node": (policy(AGED, nodeSelector="zone=a,zone=b"), [(Doubt.NO_NODE, "nodeSelector")]),
    "some node": (policy(AGED, nodeSelector="zone in (a,b),zone!=a"), []),
    "no Pod": (
        choosing(
            {"labelSelector": {**labelled(app="a"), **without("app")}},
            {},
        ),
        [(Doubt.NO_POD, f"profiles[0].{TAINTS}.labelSelector")],
    ),
    "no Pod of the evictor": (
        choosing({"labelSelector": labelled(app="a")}, {"labelSelector": without("app")}),
        [(Doubt.NO_POD, f"profiles[0].{TAINTS}.labelSelector")],
    ),
    "no Pod for any strategy": (
        choosing({}, {"labelSelector": {**labelled(app="a"), **without("app")}}),
        [(Doubt.NO_POD, "profiles[0].DefaultEvictor.labelSelector")],
    ),
    "some Pod of the evictor": (
        choosing({"labelSelector": labelled(app="a")}, {"labelSelector": labelled(tier="b")}),
        [],
    ),
    "no namespace": (
        choosing({}, {"namespaceLabelSelector": {**labelled(team="a"), **without("team")}}),
        [(Doubt.NO_POD, "profiles[0].DefaultEvictor.namespaceLabelSelector")],
    ),
    "no namespace of those included": (
        choosing({"namespaces": {"include": ["a"]}}, {"namespaceLabelSelector": by_name("b")}),
        [(Doubt.NO_POD, f"profiles[0].{TAINTS}.namespaces")],
    ),
    "some namespace of those included": (
        choosing({"namespaces": {"include": ["a", "b"]}}, {"namespaceLabelSelector": by_name("b")}),
        [],
    ),
    "every namespace excluded": (
        choosing(
            {**HIGH, "evictableNamespaces": {"exclude": ["b"]}},
            {"namespaceLabelSelector": by_name("b")},
            "HighNodeUtilization",
        ),
        [(Doubt.NO_POD, "profiles[0].HighNodeUtilization.evictableNamespaces")],
    ),
    "priorities from 0 on protected": (
        choosing({}, {"priorityThreshold": {"value": 0}}),
        [(Doubt.ALL_PROTECTED, "profiles[0].DefaultEvictor.priorityThreshold.value")],
    ),
    "priorities above 0 protected": (choosing({}, {"priorityThreshold": {"value": 1}}), []),
    "priorities protect nobody": (
        choosing(
            {},
            {
                "priorityThreshold": {"value": 0},
                "podProtections": {"defaultDisabled": ["SystemCriticalPods"]},
            },
        ),
        [],
    ),
    "only taints of other drainers": (
        policy(profile({TAINTS: {"includedTaints": ["ToBeDeletedByClusterAutoscaler=1"]}})),
        [(Doubt.DOES_NOTHING, f"profiles[0].{TAINTS}.includedTaints")],
    ),
    "a taint of another drainer and one more": (
        policy(profile({TAINTS: {"includedTaints": ["ToBeDeletedByClusterAutoscaler", "gpu"]}})),
        [],
    ),
    "taints of other drainers as upstream": (
        policy(
            profile({TAINTS: {"includedTaints": ["ToBeDeletedByClusterAutoscaler"]}}),
            reactive={"corrections": "none"},
        ),
        [],
    ),
    "no node can be over": (
        policy(profile({"LowNodeUtilization": ONLY_FULL})),
        [(Doubt.DOES_NOTHING, "profiles[0].LowNodeUtilization.targetThresholds")],
    ),
    "one resource can be over": (
        policy(
            profile(
                {
                    "LowNodeUtilization": {
                        "thresholds": {"cpu": 20, "pods": 20},
                        "targetThresholds": {"cpu": 100, "pods": 90},
                    }
                }
            )
        ),
        [],
    ),
    "every node is under": (
        policy(profile({"HighNodeUtilization": {"thresholds": {"cpu": 100}}})),
        [(Doubt.DOES_NOTHING, "profiles[0].HighNodeUtilization.thresholds")],
    ),
    "usage that nobody is asked for": (
        measured("KubernetesMetrics"),
        [(Doubt.DOES_NOTHING, "profiles[0].LowNodeUtilization.metricsUtilization")],
    ),
    "usage of a source that is none": (
        measured("Guess", "KubernetesMetrics"),
        [(Doubt.DOES_NOTHING, "profiles[0].LowNodeUtilization.metricsUtilization")],
    ),
    "usage that somebody is asked for": (measured("KubernetesMetrics", "KubernetesMetrics"), []),
    "twice in a profile": (
        policy(profile({"PodLifeTime": {"maxPodLifeTimeSeconds": 600}}, twice="PodLifeTime")),
        [(Doubt.ENABLED_TWICE, "profiles[0].PodLifeTime")],
    ),
    "the same in two profiles": (
        policy(AGED, AGED),
        [(Doubt.ENABLED_TWICE, "profiles[1].PodLifeTime")],
    ),
    "another age in another profile": (
        policy(AGED, profile({"PodLifeTime": {"maxPodLifeTimeSeconds": 60}})),
        [],
    ),
    "another evictor in another profile": (
        policy(
            AGED,
            profile({"PodLifeTime": {"maxPodLifeTimeSeconds": 600}}, evictor={"minReplicas": 3}),
        ),
        [],
    ),
    "settles for longer than the age": (
        policy(AGED, reactive=settling("PodLifeTime", "11m")),
        [(Doubt.SETTLE_LONGER, "reactive.strategies.PodLifeTime.settle")],
    ),
    "settles for longer than the age of failed Pods": (
        policy(
            profile({"RemoveFailedPods": {"minPodLifetimeSeconds": 5}}),
            reactive=settling("RemoveFailedPods", "6s"),
        ),
        [(Doubt.SETTLE_LONGER, "reactive.strategies.RemoveFailedPods.settle")],
    ),
    "settles for less": (policy(AGED, reactive=settling("PodLifeTime", "9m")), []),
    "age of 0": (
        policy(profile({"PodLifeTime": {"maxPodLifeTimeSeconds": 0}})),
        [(Doubt.AGE_ZERO, "profiles[0].PodLifeTime.maxPodLifeTimeSeconds")],
    ),
    "age of 0 for some states": (
        policy(profile({"PodLifeTime": {"maxPodLifeTimeSeconds": 0, "states": ["Failed"]}})),
        [],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_doubtful_is_told_with_its_place(case: str) -> None:
    loaded, expected = CASES[case]
    assert [(found.kind, found.path) for found in doubts(loaded)] == expected


def test_every_kind_is_tested() -> None:
    assert {kind for _, expected in CASES.values() for kind, _ in expected} == set(Doubt)


def test_the_name_stands_in_the_message() -> None:
    (problem,) = doubt_problems(policy())
    assert problem.message == "there is none, so nothing is evicted [noProfile]"


LINES = """apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
maxNoOfPodsToEvictTotal: 0
profiles:
- name: a
  pluginConfig:
  - name: HighNodeUtilization
    args:
      thresholds: {cpu: 20}
  - name: PodLifeTime
    args:
      maxPodLifeTimeSeconds: 0
  plugins:
    deschedule: {enabled: [PodLifeTime]}
    balance:
      enabled:
      - HighNodeUtilization
      - RemoveDuplicates
- name: b
"""


def test_a_warning_has_the_line_of_the_setting_or_of_where_the_plugin_is_enabled() -> None:
    loaded = load_policy(LINES, source="policy", plugins=PLUGINS)
    assert {(each.path, each.line) for each in doubt_problems(loaded)} == {
        ("maxNoOfPodsToEvictTotal", 3),
        ("profiles[1]", 19),
        ("profiles[0].HighNodeUtilization", 17),
        ("profiles[0].PodLifeTime.maxPodLifeTimeSeconds", 12),
    }


LENIENT = ALL - {Correction.STRICT_DOCUMENTS}


def test_what_counts_of_a_key_written_twice_bears_no_harm_from_the_other() -> None:
    text = LINES.replace(
        "profiles:\n", "profiles: [{plugins: {balance: {enabled: [A, B]}}}, {}, {}]\nprofiles:\n", 1
    )
    loaded = load_policy(text, source="policy", plugins=PLUGINS, corrections=LENIENT)
    assert loaded.line("maxNoOfPodsToEvictTotal") == 3
    assert loaded.line("profiles[0].PodLifeTime") == 15
    assert loaded.line("nowhere.at[0].all") == 1


def test_what_is_silenced_is_told_no_more() -> None:
    loaded = policy(maxNoOfPodsToEvictTotal=0, reactive={"silencedWarnings": ["noProfile"]})
    assert [found.kind for found in doubts(loaded)] == [Doubt.LIMIT_ZERO]


def test_an_unknown_name_is_refused_with_what_was_meant() -> None:
    with pytest.raises(PolicyError, match=r"unknown warning 'noprofil'; did you mean noProfile\?"):
        policy(AGED, reactive={"silencedWarnings": ["noprofil"]})


def test_every_kind_is_documented() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    told = re.findall(
        r"^\| `(\w+)` \|", page.partition("## Warnings")[2].partition("\n## ")[0], re.MULTILINE
    )
    assert told == [str(each) for each in Doubt]
