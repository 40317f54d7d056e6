"""DefaultEvictor: who may be evicted, why not, and what would lift that."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reactive_descheduler.api.changes import Action, At, Never, On
from reactive_descheduler.api.eviction import Rejection
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.config.corrections import ALL, NONE, Corrections
from reactive_descheduler.config.evictor import DefaultEvictorArguments
from reactive_descheduler.framework.filter import EvictorFilter, Reading
from reactive_descheduler.guardrails import build_evictor_filter
from tests.builders import (
    Manifest,
    cluster,
    make_budget,
    make_claim,
    make_namespace,
    make_node,
    make_pod,
    owner,
    taint,
)

NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)
EVICT = "descheduler.alpha.kubernetes.io/evict"
PREFER_NOT = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
MIRROR = {"kubernetes.io/config.mirror": "x"}
SOURCE = "kubernetes.io/config.source"
POD = ("Pod", "default", "p")


def evictor(
    arguments: Manifest | None = None,
    *,
    threshold: int = 2_000_000_000,
    corrections: Corrections = ALL,
) -> EvictorFilter:
    return build_evictor_filter(
        DefaultEvictorArguments.read(arguments or {}),
        priority_threshold=threshold,
        corrections=corrections,
    )


def ask(asked: EvictorFilter, lister: Lister, now: datetime = NOW) -> Rejection | None:
    pod = lister.pod_named("default", "p")
    assert pod is not None
    reading = Reading(lister, now)
    return asked.filter(pod, reading) or asked.pre_eviction(pod, reading)


def depends(asked: EvictorFilter, lister: Lister) -> list[On]:
    pod = lister.pod_named("default", "p")
    assert pod is not None
    return list(asked.depends(pod, Reading(lister, NOW), ask(asked, lister), placed=True))


def by(rejection: Rejection | None) -> str | None:
    return rejection.by if rejection else None


def disabled(*names: str) -> Manifest:
    return {"podProtections": {"defaultDisabled": [*names]}}


def enabled(*names: str) -> Manifest:
    return {"podProtections": {"extraEnabled": [*names]}}


EMPTY_DIR = [{"name": "v", "emptyDir": {}}]
CLAIM = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
DAEMON = [owner("agent", kind="DaemonSet")]


@pytest.mark.parametrize(
    ("pod", "arguments", "expected"),
    [
        pytest.param(make_pod("p"), {}, None, id="replica"),
        pytest.param(make_pod("p", annotations=MIRROR), {}, "mirrorPod", id="mirror"),
        pytest.param(make_pod("p", annotations={SOURCE: "file"}), {}, "staticPod", id="static"),
        pytest.param(make_pod("p", annotations={SOURCE: "api"}), {}, None, id="from-the-api"),
        pytest.param(make_pod("p", deleted=NOW), {}, "terminating", id="terminating"),
        pytest.param(make_pod("p", owners=[]), {}, "FailedBarePods", id="bare"),
        pytest.param(
            make_pod("p", owners=[], phase="Failed"), {}, "FailedBarePods", id="bare-and-failed"
        ),
        pytest.param(
            make_pod("p", owners=[]),
            disabled("FailedBarePods"),
            "FailedBarePods",
            id="bare-allowed",
        ),
        pytest.param(
            make_pod("p", owners=[], phase="Failed"),
            disabled("FailedBarePods"),
            None,
            id="bare-failed-allowed",
        ),
        pytest.param(make_pod("p", volumes=EMPTY_DIR), {}, "PodsWithLocalStorage", id="emptyDir"),
        pytest.param(
            make_pod("p", volumes=EMPTY_DIR),
            {"evictLocalStoragePods": True},
            None,
            id="emptyDir-allowed",
        ),
        pytest.param(make_pod("p", owners=DAEMON), {}, "DaemonSetPods", id="daemon"),
        pytest.param(
            make_pod("p", owners=DAEMON), disabled("DaemonSetPods"), None, id="daemon-allowed"
        ),
        pytest.param(
            make_pod("p", priority=2_000_000_000), {}, "SystemCriticalPods", id="critical"
        ),
        pytest.param(
            make_pod("p", priority=2_000_000_000),
            disabled("SystemCriticalPods"),
            None,
            id="critical-allowed",
        ),
        pytest.param(make_pod("p", volumes=CLAIM), {}, None, id="claim-allowed"),
        pytest.param(
            make_pod("p", volumes=CLAIM), enabled("PodsWithPVC"), "PodsWithPVC", id="claim"
        ),
        pytest.param(
            make_pod("p", spec={"resourceClaims": [{"name": "gpu"}]}),
            enabled("PodsWithResourceClaims"),
            "PodsWithResourceClaims",
            id="resource-claim",
        ),
        pytest.param(
            make_pod("p", annotations={PREFER_NOT: ""}),
            {"noEvictionPolicy": "Mandatory"},
            "noEvictionPolicy",
            id="prefers-not-and-may",
        ),
        pytest.param(
            make_pod("p", annotations={PREFER_NOT: "true"}),
            {"noEvictionPolicy": "Preferred"},
            None,
            id="prefers-not",
        ),
        pytest.param(
            make_pod("p", labels={"app": "db"}),
            {"labelSelector": {"matchLabels": {"app": "web"}}},
            "labelSelector",
            id="label",
        ),
        pytest.param(make_pod("p"), {"labelSelector": {}}, None, id="empty-selector"),
        pytest.param(make_pod("p"), {"minReplicas": 2}, "minReplicas", id="too-few-replicas"),
        pytest.param(make_pod("p"), {"minReplicas": 1}, None, id="one-replica-is-always-there"),
        pytest.param(
            make_pod("p", owners=[owner("a"), owner("b")]),
            {"minReplicas": 2},
            None,
            id="replicas-of-two-owners",
        ),
        pytest.param(
            make_pod("p", started=None), {"minPodAge": "0s"}, "minPodAge", id="not-started"
        ),
        pytest.param(make_pod("p"), {"minPodAge": "1h"}, None, id="old-enough"),
        pytest.param(make_pod("p"), {"minPodAge": "1h1s"}, "minPodAge", id="too-young"),
        pytest.param(
            make_pod("p"),
            {"namespaceLabelSelector": {"matchLabels": {"a": "b"}}},
            "namespaceLabelSelector",
            id="namespace-not-there",
        ),
    ],
)
def test_protection_refuses_the_pod(
    pod: Manifest, arguments: Manifest, expected: str | None
) -> None:
    assert by(ask(evictor(arguments), cluster(pod))) == expected


@pytest.mark.parametrize(
    ("priority", "threshold", "expected"),
    [
        (None, -5, None),
        (-6, -5, None),
        (-5, -5, "priorityThreshold"),
        (1000, 1000, "priorityThreshold"),
        (999, 1000, None),
    ],
)
def test_priority_must_be_below_the_threshold(
    priority: int | None, threshold: int, expected: str | None
) -> None:
    found = ask(evictor(threshold=threshold), cluster(make_pod("p", priority=priority)))

    assert by(found) == expected


def test_threshold_goes_with_the_protection_of_critical_pods() -> None:
    allowing = evictor(disabled("SystemCriticalPods"), threshold=0)

    assert ask(allowing, cluster(make_pod("p", priority=5))) is None


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        pytest.param(None, "is not there", id="missing"),
        pytest.param(make_claim(storage_class=None), "names no storage class", id="no-class"),
        pytest.param(make_claim(storage_class="fast"), "class fast", id="protected"),
        pytest.param(make_claim(storage_class="slow"), None, id="other"),
    ],
)
def test_storage_classes_narrow_the_protection_of_claims(
    claim: Manifest | None, expected: str | None
) -> None:
    config = {"PodsWithPVC": {"protectedStorageClasses": [{"name": "fast"}]}}
    arguments: dict[str, object] = {
        "podProtections": {"extraEnabled": ["PodsWithPVC"], "config": config}
    }
    lister = cluster(make_pod("p", volumes=CLAIM), *([claim] if claim else []))
    claim_ref = ("PersistentVolumeClaim", "default", "data")

    found = ask(evictor(arguments), lister)

    if expected is None:
        assert found is None
        assert On(Action.CLAIM, claim_ref) in depends(evictor(arguments), lister)
    else:
        assert found is not None
        assert expected in found.reason
        assert On(Action.CLAIM, claim_ref) in found.wakes


@pytest.mark.parametrize(
    ("budget", "corrections", "expected"),
    [
        pytest.param(None, ALL, "PodsWithoutPDB", id="none"),
        pytest.param(make_budget(), ALL, None, id="covered"),
        pytest.param(
            make_budget(selector={"matchLabels": {"app": "x"}}), ALL, "PodsWithoutPDB", id="other"
        ),
        pytest.param(make_budget(), NONE, "PodsWithoutPDB", id="upstream-sees-no-budget"),
    ],
)
def test_pods_without_budget_are_protected(
    budget: Manifest | None, corrections: Corrections, expected: str | None
) -> None:
    lister = cluster(make_pod("p"), *([budget] if budget else []))

    found = ask(evictor(enabled("PodsWithoutPDB"), corrections=corrections), lister)

    assert by(found) == expected


@pytest.mark.parametrize(
    ("annotations", "corrections", "pod", "expected"),
    [
        pytest.param({EVICT: "true"}, ALL, make_pod("p", owners=[]), None, id="lifts-protection"),
        pytest.param(
            {EVICT: "false"}, ALL, make_pod("p", owners=[]), "FailedBarePods", id="false-lifts-none"
        ),
        pytest.param(
            {EVICT: "true", **MIRROR}, ALL, make_pod("p"), "mirrorPod", id="facts-stay-mirror"
        ),
        pytest.param(
            {EVICT: "true"}, ALL, make_pod("p", deleted=NOW), "terminating", id="facts-stay-going"
        ),
        pytest.param({EVICT: "false"}, NONE, make_pod("p", owners=[]), None, id="upstream-false"),
        pytest.param({EVICT: "", **MIRROR}, NONE, make_pod("p"), None, id="upstream-mirror"),
        pytest.param({EVICT: ""}, NONE, make_pod("p", deleted=NOW), None, id="upstream-going"),
    ],
)
def test_evict_annotation(
    annotations: dict[str, str], corrections: Corrections, pod: Manifest, expected: str | None
) -> None:
    annotated = {**pod, "metadata": {**_metadata(pod), "annotations": annotations}}

    assert by(ask(evictor(corrections=corrections), cluster(annotated))) == expected


def _metadata(manifest: Manifest) -> Manifest:
    found = manifest["metadata"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("corrections", [ALL, NONE], ids=["all", "none"])
def test_evict_annotation_lifts_no_placement(corrections: Corrections) -> None:
    lister = cluster(make_pod("p", node="n1", annotations={EVICT: "true"}), make_node("n1"))

    assert by(ask(evictor({"nodeFit": True}, corrections=corrections), lister)) == "nodeFit"


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([{**make_pod("p", node="n1"), "spec": {"tolerations": 7}}], id="pod"),
        pytest.param(
            [make_pod("p", node="n1"), {**make_node("n1"), "spec": {"taints": 7}}], id="node"
        ),
        pytest.param([make_pod("p"), {**make_budget(), "spec": {"selector": 7}}], id="budget"),
    ],
)
@pytest.mark.parametrize("corrections", [ALL, NONE], ids=["all", "none"])
def test_pod_that_has_to_do_with_an_unreadable_object_stays(
    objects: list[Manifest], corrections: Corrections
) -> None:
    assert by(ask(evictor(corrections=corrections), cluster(*objects))) == "opaque"


def wakes(rejection: Rejection | None) -> set[object]:
    assert rejection is not None
    return set(rejection.wakes)


LIFTED = On(Action.POD_ANNOTATIONS, POD)


@pytest.mark.parametrize(
    ("pod", "arguments", "expected"),
    [
        pytest.param(make_pod("p", deleted=NOW), {}, {Never("uid-default-p")}, id="terminating"),
        pytest.param(make_pod("p", volumes=EMPTY_DIR), {}, {LIFTED}, id="local-storage"),
        pytest.param(
            make_pod("p", owners=DAEMON), {}, {LIFTED, On(Action.POD_OWNERS, POD)}, id="daemon"
        ),
        pytest.param(
            make_pod("p"),
            {"minPodAge": "61m"},
            {LIFTED, At(NOW + timedelta(minutes=1))},
            id="age",
        ),
        pytest.param(
            make_pod("p", started=None),
            {"minPodAge": "1m"},
            {LIFTED, On(Action.POD_STARTED, POD)},
            id="not-started",
        ),
        pytest.param(
            make_pod("p"),
            {"minReplicas": 2},
            {
                LIFTED,
                On(
                    Action.POD_ADDED | Action.POD_DELETED | Action.POD_OWNERS,
                    ("Owner", "", "uid-replicaset-web"),
                ),
            },
            id="replicas",
        ),
        pytest.param(
            make_pod("p"),
            enabled("PodsWithoutPDB"),
            {LIFTED, On(Action.BUDGET_SELECTION, ("Namespace", "", "default"))},
            id="budget",
        ),
    ],
)
def test_refusal_names_what_would_lift_it(
    pod: Manifest, arguments: Manifest, expected: set[object]
) -> None:
    assert wakes(ask(evictor(arguments), cluster(pod))) == expected


def test_labels_of_the_namespace_lift_its_refusal() -> None:
    asked = evictor({"namespaceLabelSelector": {"matchLabels": {"team": "a"}}})
    lister = cluster(make_pod("p"), make_namespace(labels={"team": "b"}))
    wake = On(Action.NAMESPACE_LABELS, ("Namespace", "", "default"))

    assert wakes(ask(asked, lister)) == {wake}
    passing = cluster(make_pod("p"), make_namespace(labels={"team": "a"}))
    assert ask(asked, passing) is None
    assert wake in depends(asked, passing)


@pytest.mark.parametrize(
    ("others", "arguments", "expected"),
    [
        pytest.param([make_node("n2")], {}, None, id="fits"),
        pytest.param([], {}, "nodeFit", id="own-node-does-not-count"),
        pytest.param([make_node("n2", ready=False)], {}, "nodeFit", id="not-ready"),
        pytest.param([make_node("n2", taints=[taint()])], {}, "nodeFit", id="tainted"),
        pytest.param(
            [make_node("n2", taints=[taint()]), make_node("n3")], {}, None, id="one-of-two"
        ),
        pytest.param(
            [make_node("n2", labels={"a": "b"})], {"nodeSelector": "a=b"}, None, id="selected"
        ),
        pytest.param([make_node("n2")], {"nodeSelector": "a=b"}, "nodeFit", id="not-selected"),
        pytest.param([make_node("n2")], {"nodeSelector": "a=="}, "nodeFit", id="empty-value"),
        pytest.param([make_node("n2")], {"nodeSelector": "a b"}, "nodeFit", id="malformed"),
    ],
)
def test_node_fit_asks_for_another_node(
    others: list[Manifest], arguments: Manifest, expected: str | None
) -> None:
    lister = cluster(make_pod("p", node="n1"), make_node("n1"), *others)

    assert by(ask(evictor({"nodeFit": True, **arguments}), lister)) == expected


def test_pass_of_node_fit_rests_on_the_node_that_was_found() -> None:
    asked = evictor({"nodeFit": True})
    lister = cluster(make_pod("p", node="n1"), make_node("n1"), make_node("n2"))

    found = [wake for wake in depends(asked, lister) if wake.ref == ("Node", "", "n2")]

    assert len(found) == 1
    assert Action.POD_BOUND | Action.NODE_TAINTS | Action.NODE_REMOVED in found[0].action


def test_refusal_of_node_fit_waits_for_room_for_that_shape() -> None:
    lister = cluster(make_pod("p", node="n1"), make_node("n1"))

    found = ask(evictor({"nodeFit": True}, corrections=NONE), lister)

    assert found is not None
    assert all(isinstance(wake, On) and wake.shape is not None for wake in found.wakes)
